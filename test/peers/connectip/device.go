// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// device is the connector's TUN interface. It outlives sessions, as in a real client: applications keep their sockets, and
// packets that find no session are dropped and counted.
type device struct {
	name             string
	file             *os.File                     // nil: no device
	writer           atomic.Pointer[packetWriter] // of the session; nil: none
	addrs, routes    []netip.Prefix
	in, out, dropped atomic.Uint64
}

// packetWriter sends a packet into a session; what it returns goes back to the local kernel.
type packetWriter interface {
	WritePacket([]byte) (icmp []byte, err error)
}

// unchecked sends packets past the library, which drops what a well-behaved client never sends: a wrong source, say. They go
// out as HTTP datagrams of the connection's first request (quarter stream ID 0) with context ID 0.
type unchecked struct{ qc *quic.Conn }

func (u unchecked) WritePacket(p []byte) ([]byte, error) {
	return nil, u.qc.SendDatagram(append([]byte{0, 0}, p...))
}

func newDevice(name string, mtu int) (*device, error) {
	d := &device{name: name}
	if name == "" {
		return d, nil
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, fmt.Errorf("-tun %q: %w", name, err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return nil, fmt.Errorf("TUNSETIFF %s: %w", name, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // before os.NewFile, so that the runtime's poller is used
		return nil, err
	}
	d.file = os.NewFile(uintptr(fd), "/dev/net/tun")
	return d, ip("link", "set", name, "mtu", fmt.Sprint(mtu), "addrgenmode", "none", "up")
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// configure sets addresses (the first of each prefix after its base) and routes; nothing is done when they did not change.
func (d *device) configure(prefixes, routes []netip.Prefix) error {
	if d.file == nil || (slices.Equal(prefixes, d.addrs) && slices.Equal(routes, d.routes)) {
		return nil
	}
	if err := ip("-6", "addr", "flush", "dev", d.name); err != nil {
		return err
	}
	for _, p := range prefixes {
		a := p.Addr()
		if p.Bits() < a.BitLen() {
			a = a.Next()
		}
		args := []string{"addr", "add", netip.PrefixFrom(a, a.BitLen()).String(), "dev", d.name}
		if a.Is6() {
			args = append(args, "nodad")
		}
		if err := ip(args...); err != nil {
			return err
		}
	}
	for _, r := range routes {
		if err := ip("route", "replace", r.String(), "dev", d.name); err != nil {
			return err
		}
	}
	d.addrs, d.routes = slices.Clone(prefixes), slices.Clone(routes)
	return nil
}

func (d *device) attach(w packetWriter) { d.writer.Store(&w) }
func (d *device) detach()               { d.writer.Store(nil) }

// readLoop moves packets from the device to whatever session there is.
func (d *device) readLoop() {
	if d.file == nil {
		return
	}
	buf := make([]byte, 65535)
	for {
		n, err := d.file.Read(buf)
		if err != nil {
			emit(event{Event: "device", Error: err.Error()})
			return
		}
		w := d.writer.Load()
		if w == nil {
			d.dropped.Add(1)
			continue
		}
		icmp, err := (*w).WritePacket(buf[:n])
		switch {
		case err != nil: // the session is ending, or the packet is of the kernel's own noise
			d.dropped.Add(1)
		case len(icmp) > 0: // Packet Too Big, for the local kernel
			d.dropped.Add(1)
			d.write(icmp)
		default:
			d.out.Add(1)
		}
	}
}

func (d *device) write(p []byte) {
	if d.file == nil {
		d.dropped.Add(1)
		return
	}
	if _, err := d.file.Write(p); err != nil {
		d.dropped.Add(1)
		return
	}
	d.in.Add(1)
}
