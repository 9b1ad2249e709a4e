// SPDX-License-Identifier: Apache-2.0

// A CONNECT-IP client over HTTP/2 on golang.org/x/net/http2: extended CONNECT, capsules of its own. One JSON line per event.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
)

var (
	edge      = flag.String("edge", "", "[ADDRESS]:PORT of the edge")
	authority = flag.String("authority", "masque.test:4433", "host:port of :authority")
	ca        = flag.String("ca", "", "CA of the edges")
	cert      = flag.String("cert", "", "client certificate")
	key       = flag.String("key", "", "its key")
	tun       = flag.String("tun", "hfc0", "TUN device to make")
	mtu       = flag.Int("mtu", 1280, "its MTU")
	keepAlive = flag.Duration("keepalive", 2*time.Second, "a PING after so long without a frame; the end after twice that")
)

func emit(event string, more map[string]any) {
	m := map[string]any{"event": event}
	for k, v := range more {
		m[k] = v
	}
	b, _ := json.Marshal(m)
	os.Stdout.Write(append(b, '\n'))
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func openTun() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ifr, err := unix.NewIfreq(*tun)
	if err != nil {
		return nil, err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tun"), ip("link", "set", *tun, "mtu", fmt.Sprint(*mtu), "addrgenmode", "none", "up")
}

func configure(addr netip.Addr, routes []netip.Prefix) error {
	if err := ip("-6", "addr", "flush", "dev", *tun); err != nil {
		return err
	}
	if err := ip("addr", "add", addr.String()+"/128", "dev", *tun, "nodad"); err != nil {
		return err
	}
	for _, r := range routes {
		if err := ip("route", "replace", r.String(), "dev", *tun); err != nil {
			return err
		}
	}
	return nil
}

// varint reads a QUIC variable-length integer.
func varint(r io.ByteReader) (uint64, error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	v := uint64(b & 0x3f)
	for range 1<<(b>>6) - 1 {
		if b, err = r.ReadByte(); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		v = v<<8 | uint64(b)
	}
	return v, nil
}

// assigned reads ADDRESS_ASSIGN: the first IPv6 prefix, and in it the address after its base.
func assigned(r io.Reader) (a netip.Addr, err error) {
	q := bufio.NewReader(r)
	for {
		if _, err := varint(q); err != nil {
			return a, nil // the end
		}
		version, err := q.ReadByte()
		if err != nil {
			return a, err
		}
		b := make([]byte, map[byte]int{4: 4, 6: 16}[version]+1)
		if _, err := io.ReadFull(q, b); err != nil {
			return a, err
		}
		if version == 6 && b[16] < 128 && !a.IsValid() {
			a = netip.AddrFrom16([16]byte(b[:16])).Next()
		}
	}
}

// advertised reads ROUTE_ADVERTISEMENT; the edge sends ranges that are prefixes.
func advertised(r io.Reader) (ps []netip.Prefix, err error) {
	for {
		var v [1]byte
		if _, err := io.ReadFull(r, v[:]); err != nil {
			return ps, nil
		}
		b := make([]byte, 2*map[byte]int{4: 4, 6: 16}[v[0]]+1)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if v[0] != 6 {
			continue
		}
		n := 0
		for i := range 16 {
			z := bits.LeadingZeros8(b[i] ^ b[16+i])
			n += z
			if z < 8 {
				break
			}
		}
		ps = append(ps, netip.PrefixFrom(netip.AddrFrom16([16]byte(b[:16])), n))
	}
}

func capsules(r *bufio.Reader, dev *os.File) error {
	var addr netip.Addr
	var routes []netip.Prefix
	up := false
	for {
		kind, err := varint(r)
		if err != nil {
			return err
		}
		n, err := varint(r)
		if err != nil {
			return err
		}
		if n > 1<<20 {
			return fmt.Errorf("a capsule of %d bytes", n)
		}
		value := make([]byte, n)
		if _, err := io.ReadFull(r, value); err != nil {
			return err
		}
		switch kind {
		case 0:
			if n > 0 && value[0] == 0 { // context 0
				dev.Write(value[1:])
			}
		case 1:
			addr, err = assigned(strings.NewReader(string(value)))
		case 3:
			routes, err = advertised(strings.NewReader(string(value)))
		}
		if err != nil {
			return err
		}
		if !up && addr.IsValid() && routes != nil {
			if err := configure(addr, routes); err != nil {
				return err
			}
			emit("connected", map[string]any{"address": addr.String()})
			up = true
		}
	}
}

func session(tc *tls.Config, pkts <-chan []byte, dev *os.File) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", *edge, tc)
	if err != nil {
		return err
	}
	defer conn.Close()
	if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
		return fmt.Errorf("the edge chose %q, not h2", p)
	}
	t := &http2.Transport{ReadIdleTimeout: *keepAlive, PingTimeout: 2 * *keepAlive}
	cc, err := t.NewClientConn(conn)
	if err != nil {
		return err
	}
	body, w := io.Pipe()
	defer w.Close()
	rq, err := http.NewRequestWithContext(ctx, http.MethodConnect, "https://"+*authority+"/.well-known/masque/ip/*/*/", body)
	if err != nil {
		return err
	}
	rq.Host = *authority
	rq.Header[":protocol"] = []string{"connect-ip"}
	rq.Header.Set("Capsule-Protocol", "?1")
	rsp, err := cc.RoundTrip(rq)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if rsp.StatusCode != 200 {
		text, _ := io.ReadAll(io.LimitReader(rsp.Body, 4096))
		emit("refused", map[string]any{"status": rsp.StatusCode, "reason": strings.TrimSpace(string(text))})
		return fmt.Errorf("status %d", rsp.StatusCode)
	}
	ended := make(chan error, 1)
	go func() { ended <- capsules(bufio.NewReaderSize(rsp.Body, 1<<16), dev) }()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = errors.New("the edge ended the stream")
			}
			return err
		case p := <-pkts:
			c := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(p)+1)|0x80000000)
			if _, err := w.Write(append(append(c, 0), p...)); err != nil {
				return err
			}
		}
	}
}

func run() error {
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	kp, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(*authority)
	if err != nil {
		return err
	}
	tc := &tls.Config{ServerName: host, RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{kp}}
	dev, err := openTun()
	if err != nil {
		return err
	}
	pkts := make(chan []byte, 512)
	go func() {
		for {
			b := make([]byte, 2048)
			n, err := dev.Read(b)
			if err != nil {
				return
			}
			select {
			case pkts <- b[:n]:
			default: // no session, or a slow one
			}
		}
	}()
	for {
		emit("closed", map[string]any{"error": fmt.Sprint(session(tc, pkts, dev))})
		time.Sleep(200 * time.Millisecond)
	}
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-xnet-h2:", err)
		os.Exit(2)
	}
}
