// SPDX-License-Identifier: Apache-2.0
//! The connector's TUN device: made once, configured by each session.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Command;
use tokio::io::unix::AsyncFd;

pub struct Tun {
    pub name: String,
    fd: AsyncFd<File>,
}

fn ip(args: &[&str]) -> io::Result<()> {
    let out = Command::new("ip").args(args).output()?;
    if out.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim())))
}

impl Tun {
    pub fn new(name: &str, mtu: u32) -> io::Result<Tun> {
        let node = CString::new("/dev/net/tun").unwrap();
        let fd = unsafe { libc::open(node.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = unsafe { File::from_raw_fd(fd) };
        let mut req = [0u8; 40]; // struct ifreq
        req[..name.len()].copy_from_slice(name.as_bytes());
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
        req[16..18].copy_from_slice(&flags.to_ne_bytes());
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, req.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        ip(&["link", "set", name, "mtu", &mtu.to_string(), "addrgenmode", "none", "up"])?;
        Ok(Tun { name: name.to_string(), fd: AsyncFd::new(file)? })
    }

    pub fn configure(&self, addr: Ipv6Addr, routes: &[(Ipv6Addr, u32)]) -> io::Result<()> {
        ip(&["-6", "addr", "flush", "dev", &self.name])?;
        ip(&["addr", "add", &format!("{addr}/128"), "dev", &self.name, "nodad"])?;
        for (p, len) in routes {
            ip(&["route", "replace", &format!("{p}/{len}"), "dev", &self.name])?;
        }
        Ok(())
    }

    pub async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.fd.readable().await?;
            if let Ok(r) = guard.try_io(|f| f.get_ref().read(buf)) {
                return r;
            }
        }
    }

    /// A packet that the kernel does not take is lost, as on any link.
    pub fn write(&self, pkt: &[u8]) {
        let _ = self.fd.get_ref().write(pkt);
    }
}
