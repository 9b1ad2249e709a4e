// SPDX-License-Identifier: Apache-2.0

package main

// One session of -churn, over either transport.

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
	"holdfast.test/peers/connectip/capsule"
)

type addr = netip.Addr

// probeStream is the stream number of a packet of ours.
func probeStream(p []byte) (uint32, bool) {
	if len(p) < 48+probeHead || p[6] != 17 || binary.BigEndian.Uint32(p[48:]) != probeMagic {
		return 0, false
	}
	return binary.BigEndian.Uint32(p[52:]), true
}

// closeSilently: in repair mode the kernel forgets a connection without telling its peer (needs CAP_NET_ADMIN).
func closeSilently(c *net.TCPConn) {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, 1) })
	}
	c.Close()
}

func (l *link) dial(ctx context.Context, edge string) (addr, error) {
	ctx, cancel := context.WithTimeout(ctx, 12*time.Second)
	defer cancel()
	if l.h2 {
		return l.dialH2(ctx, edge)
	}
	return l.dialH3(ctx, edge)
}

func (l *link) dialH3(ctx context.Context, edge string) (none addr, err error) {
	to, err := net.ResolveUDPAddr("udp", edge)
	if err != nil {
		return none, err
	}
	udp, err := net.ListenUDP("udp", nil)
	if err != nil {
		return none, err
	}
	sock := &quietUDP{PacketConn: udp}
	tr := &quic.Transport{Conn: sock}
	var qc *quic.Conn
	l.mute = func() {
		sock.mute.Store(true)
		if qc != nil {
			qc.CloseWithError(0, "")
		}
		tr.Close()
		time.AfterFunc(away, func() { udp.Close() })
	}
	qc, conn, source, err := l.m.dial(ctx, tr, to)
	if err != nil {
		return none, err
	}
	l.write = func(p []byte) error { _, err := conn.WritePacket(p); return err }
	l.read = func(p []byte) (int, error) { return conn.ReadPacket(p) }
	l.end = func() {
		conn.Close()
		qc.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		time.Sleep(10 * time.Millisecond) // it is sent by the connection's own goroutine
	}
	return source, nil
}

func (l *link) dialH2(ctx context.Context, edge string) (none addr, err error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", edge)
	if err != nil {
		return none, err
	}
	tcp := &quietTCP{TCPConn: raw.(*net.TCPConn), stop: make(chan struct{})}
	if l.m.index%4 < 2 { // one that hangs; the others' kernel is gone, too: the next packet is answered with a reset
		tcp.at.Store(int64(away))
	}
	life, done := context.WithCancel(context.Background())
	l.mute = func() {
		tcp.mute.Store(true)
		done()
		tcp.Close()
	}
	given := context.AfterFunc(ctx, func() { l.vanish() })
	defer given()
	tc := l.m.tls.Clone()
	tc.NextProtos = []string{"h2"}
	conn := tls.Client(tcp, tc)
	if err := conn.HandshakeContext(ctx); err != nil {
		return none, err
	}
	cc, err := (&http2.Transport{ReadIdleTimeout: l.m.f.o.idle / 3, PingTimeout: l.m.f.o.idle}).NewClientConn(conn)
	if err != nil {
		return none, err
	}
	pr, pw := io.Pipe()
	rsp, err := cc.RoundTrip((&http.Request{
		Method:        http.MethodConnect,
		URL:           &url.URL{Scheme: "https", Host: l.m.f.o.authority, Path: "/.well-known/masque/ip/*/*/"},
		Host:          l.m.f.o.authority,
		Header:        http.Header{":protocol": {"connect-ip"}, "Capsule-Protocol": {"?1"}},
		Body:          pr,
		ContentLength: -1,
	}).WithContext(life))
	if err != nil {
		return none, err
	}
	if rsp.StatusCode != http.StatusOK {
		l.m.refused.Add(1)
		return none, fmt.Errorf("%w with %d", errRefused, rsp.StatusCode)
	}
	t := capsule.New(rsp.Body, pw)
	var mine []netip.Prefix
	for routes := false; mine == nil || !routes; {
		typ, v, err := t.Read()
		if err != nil {
			return none, err
		}
		switch typ {
		case capsule.Assign:
			if mine, err = capsule.Assigned(v); err == nil && len(mine) == 0 {
				err = errors.New("no address")
			}
		case capsule.Routes:
			routes = true
		}
		if err != nil {
			return none, err
		}
	}
	l.write = func(p []byte) error { _, err := t.WritePacket(p); return err }
	l.read = func(p []byte) (int, error) {
		for {
			typ, v, err := t.Read()
			if err != nil {
				return 0, err
			}
			if id, n, err := quicvarint.Parse(v); typ == capsule.Datagram && err == nil && id == 0 {
				return copy(p, v[n:]), nil
			}
		}
	}
	l.end = func() {
		t.Close()
		cc.Close()
	}
	return mine[0].Addr().Next(), nil
}
