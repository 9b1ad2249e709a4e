// SPDX-License-Identifier: Apache-2.0

// A CONNECT-IP client straight on quic-go's HTTP/3: its own capsules and datagrams, none of connect-ip-go. With
// -protocol cf-connect-ip it asks as Cloudflare's clients do. One JSON line per event.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/sys/unix"
)

var (
	edge      = flag.String("edge", "", "[ADDRESS]:PORT of the edge")
	authority = flag.String("authority", "masque.test:4433", "host:port of :authority")
	protocol  = flag.String("protocol", "connect-ip", "connect-ip or cf-connect-ip")
	ca        = flag.String("ca", "", "CA of the edges")
	cert      = flag.String("cert", "", "client certificate")
	key       = flag.String("key", "", "its key")
	tun       = flag.String("tun", "hfc0", "TUN device to make")
	mtu       = flag.Int("mtu", 1280, "its MTU")
	keepAlive = flag.Duration("keepalive", 2*time.Second, "QUIC keep-alive; the idle time-out is three times that")
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

// assigned reads ADDRESS_ASSIGN: the first IPv6 prefix, and in it the address after its base.
func assigned(r io.Reader) (a netip.Addr, err error) {
	q := quicvarint.NewReader(r)
	for {
		if _, err := quicvarint.Read(q); err != nil {
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

func capsules(str *http3.RequestStream) error {
	var addr netip.Addr
	var routes []netip.Prefix
	up := false
	parser := http3.NewCapsuleParser(str)
	for {
		kind, value, err := parser.Next()
		if err != nil {
			return err
		}
		switch kind {
		case 1:
			addr, err = assigned(&value)
		case 3:
			routes, err = advertised(&value)
		}
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, &value); err != nil {
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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	qc, err := quic.DialAddr(ctx, *edge, tc, &quic.Config{EnableDatagrams: true, InitialPacketSize: 1400,
		MaxIdleTimeout: 3 * *keepAlive, KeepAlivePeriod: *keepAlive})
	if err != nil {
		return err
	}
	defer qc.CloseWithError(0x100, "")
	hc := (&http3.Transport{EnableDatagrams: true}).NewClientConn(qc)
	select {
	case <-hc.ReceivedSettings():
	case <-ctx.Done():
		return ctx.Err()
	}
	if s := hc.Settings(); !s.EnableExtendedConnect || !s.EnableDatagrams {
		return errors.New("the edge's SETTINGS have no extended CONNECT or no datagrams")
	}
	str, err := hc.OpenRequestStream(ctx)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodConnect, "https://"+*authority+"/.well-known/masque/ip/*/*/", nil)
	if err != nil {
		return err
	}
	rq.Proto = *protocol
	rq.Host = *authority
	rq.Header.Set("Capsule-Protocol", "?1")
	if err := str.SendRequestHeader(rq); err != nil {
		return err
	}
	rsp, err := str.ReadResponse()
	if err != nil {
		return err
	}
	if rsp.StatusCode != 200 {
		body, _ := io.ReadAll(io.LimitReader(rsp.Body, 4096))
		emit("refused", map[string]any{"status": rsp.StatusCode, "reason": strings.TrimSpace(string(body))})
		return fmt.Errorf("status %d", rsp.StatusCode)
	}
	ended := make(chan error, 2)
	go func() { ended <- capsules(str) }()
	go func() {
		for {
			b, err := str.ReceiveDatagram(qc.Context())
			if err != nil {
				ended <- err
				return
			}
			if id, n, err := quicvarint.Parse(b); err == nil && id == 0 {
				dev.Write(b[n:])
			}
		}
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-qc.Context().Done():
			return context.Cause(qc.Context())
		case p := <-pkts:
			err := str.SendDatagram(append([]byte{0}, p...))
			var large *quic.DatagramTooLargeError
			if err != nil && !errors.As(err, &large) {
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
	tc := &tls.Config{ServerName: host, RootCAs: roots, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13,
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
		fmt.Fprintln(os.Stderr, "holdfast-quicgo:", err)
		os.Exit(2)
	}
}
