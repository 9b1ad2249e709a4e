// SPDX-License-Identifier: Apache-2.0
//! A CONNECT-IP client over HTTP/2 on the h2 crate: RFC 9484 (extended CONNECT) or, with --protocol cf-connect-ip, the
//! form of Cloudflare's clients (plain CONNECT, bare packets). One JSON line per event.

mod tun;

use bytes::Bytes;
use h2::{client, RecvStream, SendStream};
use std::collections::HashMap;
use std::io::BufReader;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tun::Tun;

type Error = Box<dyn std::error::Error>;

fn emit(event: &str, more: &str) {
    println!("{{\"event\":\"{event}\"{more}}}");
}

fn quoted(s: &str) -> String {
    s.chars().map(|c| if c == '"' || c == '\\' || c.is_control() { '?' } else { c }).collect()
}

struct Options(HashMap<String, String>);

impl Options {
    fn get(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.to_string())
    }
}

fn options() -> Result<Options, Error> {
    let mut map = HashMap::new();
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let name = a.strip_prefix("--").ok_or(format!("unexpected argument {a}"))?;
        map.insert(name.to_string(), args.next().ok_or(format!("{a} needs a value"))?);
    }
    Ok(Options(map))
}

fn tls(o: &Options) -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    for c in rustls_pemfile::certs(&mut BufReader::new(std::fs::File::open(o.get("ca", ""))?)) {
        roots.add(c?)?;
    }
    let certs = rustls_pemfile::certs(&mut BufReader::new(std::fs::File::open(o.get("cert", ""))?)).collect::<Result<Vec<_>, _>>()?;
    let key = rustls_pemfile::private_key(&mut BufReader::new(std::fs::File::open(o.get("key", ""))?))?.ok_or("no key in --key")?;
    let mut c = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(certs, key)?;
    c.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(c)))
}

fn put_varint(v: u64, to: &mut Vec<u8>) {
    match v {
        0..=63 => to.push(v as u8),
        64..=16383 => to.extend_from_slice(&(v as u16 | 0x4000).to_be_bytes()),
        _ => to.extend_from_slice(&(v as u32 | 0x8000_0000).to_be_bytes()),
    }
}

fn get_varint(p: &[u8]) -> Option<(u64, usize)> {
    let n = 1usize << (p.first()? >> 6);
    if p.len() < n {
        return None;
    }
    let mut v = (p[0] & 0x3f) as u64;
    for b in &p[1..n] {
        v = v << 8 | *b as u64;
    }
    Some((v, n))
}

fn v6(p: &[u8]) -> Ipv6Addr {
    let mut a = [0u8; 16];
    a.copy_from_slice(&p[..16]);
    Ipv6Addr::from(a)
}

#[derive(Default)]
struct Setup {
    addr: Option<Ipv6Addr>,
    routes: Option<Vec<(Ipv6Addr, u32)>>,
}

impl Setup {
    fn assigned(&mut self, mut p: &[u8]) -> Option<()> {
        while !p.is_empty() {
            let (_, n) = get_varint(p)?;
            let size = if p[n] == 4 { 4 } else { 16 };
            if size == 16 && p[n + 17] < 128 && self.addr.is_none() {
                self.addr = Some(Ipv6Addr::from(u128::from(v6(&p[n + 1..])) + 1));
            }
            p = &p[n + size + 2..];
        }
        Some(())
    }

    fn advertised(&mut self, mut p: &[u8]) {
        let mut routes = Vec::new();
        while !p.is_empty() {
            let size = if p[0] == 4 { 4 } else { 16 };
            if size == 16 {
                let (a, b) = (u128::from(v6(&p[1..])), u128::from(v6(&p[17..])));
                routes.push((Ipv6Addr::from(a), (a ^ b).leading_zeros())); // the edge sends prefixes
            }
            p = &p[2 * size + 2..];
        }
        self.routes = Some(routes);
    }
}

async fn receive(mut body: RecvStream, tun: &Tun, bare: bool) -> Result<(), Error> {
    let (mut buf, mut setup, mut up) = (Vec::new(), Setup::default(), false);
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        buf.extend_from_slice(&chunk);
        let mut at = 0;
        while let Some((kind, a)) = get_varint(&buf[at..]) {
            let Some((len, b)) = get_varint(&buf[at + a..]) else { break };
            let (from, to) = (at + a + b, at + a + b + len as usize);
            if to > buf.len() {
                break;
            }
            let value = &buf[from..to];
            match kind {
                0 if bare => tun.write(value),
                0 => {
                    if let Some((0, n)) = get_varint(value) {
                        tun.write(&value[n..])
                    }
                }
                1 => setup.assigned(value).ok_or("bad ADDRESS_ASSIGN")?,
                3 => setup.advertised(value),
                _ => (),
            }
            at = to;
        }
        buf.drain(..at);
        if let (false, Some(addr), Some(routes)) = (up, setup.addr, &setup.routes) {
            tun.configure(addr, routes)?;
            emit("connected", &format!(",\"address\":\"{addr}\""));
            up = true;
        }
    }
    Ok(())
}

async fn send(mut stream: SendStream<Bytes>, tun: &Tun, bare: bool) -> Result<(), Error> {
    let mut pkt = vec![0u8; 65536];
    loop {
        let n = tun.read(&mut pkt).await?;
        let mut out = vec![0u8];
        put_varint(n as u64 + u64::from(!bare), &mut out);
        if !bare {
            out.push(0);
        }
        out.extend_from_slice(&pkt[..n]);
        stream.reserve_capacity(out.len());
        while stream.capacity() < out.len() {
            std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.ok_or("the stream has ended")??;
        }
        stream.send_data(Bytes::from(out), false)?;
    }
}

async fn session(o: &Options, tls: &TlsConnector, tun: &Tun) -> Result<(), Error> {
    let authority = o.get("authority", "masque.test:4433");
    let bare = o.get("protocol", "connect-ip") == "cf-connect-ip";
    let tcp = TcpStream::connect(o.get("edge", "")).await?;
    tcp.set_nodelay(true)?;
    let name = authority.rsplit_once(':').map_or(authority.as_str(), |x| x.0).to_string();
    let stream = tls.connect(ServerName::try_from(name)?, tcp).await?;
    let (mut http, conn) = client::Builder::new()
        .enable_push(false)
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 22)
        .handshake::<_, Bytes>(stream)
        .await?;
    let mut conn = Box::pin(conn);
    let request = async {
        let mut rq = http::Request::builder().method("CONNECT");
        if bare {
            rq = rq.uri(&authority).header("cf-connect-proto", "cf-connect-ip");
        } else {
            for _ in 0..200 {
                if http.is_extended_connect_protocol_enabled() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            rq = rq
                .uri(format!("https://{authority}/.well-known/masque/ip/*/*/"))
                .header("capsule-protocol", "?1")
                .extension(h2::ext::Protocol::from("connect-ip"));
        }
        http = http.ready().await?;
        let (answer, stream) = http.send_request(rq.body(())?, false)?;
        let answer = answer.await?;
        if answer.status() != 200 {
            emit("refused", &format!(",\"status\":{}", answer.status().as_u16()));
            return Err::<(), Error>("refused".into());
        }
        tokio::select! {
            r = receive(answer.into_body(), tun, bare) => r,
            r = send(stream, tun, bare) => r,
        }
    };
    tokio::select! {
        r = &mut conn => r.map_err(Into::into),
        r = request => r,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let o = options()?;
    let tun = Tun::new(&o.get("tun", "hfc0"), o.get("mtu", "1280").parse()?)?;
    let tls = tls(&o)?;
    loop {
        match session(&o, &tls, &tun).await {
            Ok(()) => emit("closed", ""),
            Err(e) => emit("closed", &format!(",\"error\":\"{}\"", quoted(&e.to_string()))),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

