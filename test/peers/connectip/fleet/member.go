// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

// member is one connector of the fleet.
type member struct {
	f               *fleet
	index           int
	tls             *tls.Config
	up, quiet       atomic.Bool
	sent, echoed    atomic.Uint64
	closed, refused atomic.Uint64
	lastEcho        atomic.Int64
	seq             atomic.Uint64
}

const (
	probeMagic = 0x48464c42 // as holdfast-probe has it
	probeHead  = 24         // magic, stream, sequence number, time
)

var errRefused = errors.New("refused")

// live keeps one session alive until the context ends.
func (m *member) live(ctx context.Context, gate chan struct{}) {
	for ctx.Err() == nil {
		err := m.session(ctx, gate)
		if ctx.Err() != nil {
			return
		}
		if err == nil { // it was up: again at once
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(m.f.o.retry):
		}
	}
}

func (m *member) dial(ctx context.Context, tr *quic.Transport, to net.Addr) (*quic.Conn, *connectip.Conn, netip.Addr, error) {
	none := netip.Addr{}
	qc, err := tr.Dial(ctx, to, m.tls, &quic.Config{EnableDatagrams: true, InitialPacketSize: 1400,
		HandshakeIdleTimeout: 5 * time.Second, MaxIdleTimeout: m.f.o.idle, KeepAlivePeriod: m.f.o.idle / 3})
	if err != nil {
		return nil, nil, none, err
	}
	tmpl, err := uritemplate.New("https://" + m.f.o.authority + "/.well-known/masque/ip/*/*/")
	if err != nil {
		return nil, nil, none, err
	}
	rq, err := connectip.NewRequest(ctx, tmpl)
	if err != nil {
		return nil, nil, none, err
	}
	if m.f.o.tokenFile != "" {
		b, err := os.ReadFile(m.f.o.tokenFile)
		if err != nil {
			return nil, nil, none, err
		}
		rq.Header().Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	}
	conn, rsp, err := connectip.NewClientConn((&http3.Transport{EnableDatagrams: true}).NewClientConn(qc)).Dial(rq)
	if err != nil {
		qc.CloseWithError(0, "")
		if rsp != nil && rsp.StatusCode != http.StatusOK {
			m.refused.Add(1)
			err = fmt.Errorf("%w with %d", errRefused, rsp.StatusCode)
		}
		return nil, nil, none, err
	}
	as, err := conn.ReceiveAddressAssignment(ctx)
	if err == nil && len(as) == 0 {
		err = errors.New("no address")
	}
	if err == nil {
		_, err = conn.Routes(ctx)
	}
	if err != nil {
		qc.CloseWithError(0, "")
		return nil, nil, none, err
	}
	return qc, conn, as[0].IPPrefix.Addr().Next(), nil
}

// session returns nil when there was one and it has ended.
func (m *member) session(ctx context.Context, gate chan struct{}) error {
	to, err := net.ResolveUDPAddr("udp", m.f.o.edge)
	if err != nil {
		return err
	}
	sock, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	defer sock.Close()
	tr := &quic.Transport{Conn: sock}
	defer tr.Close()
	gate <- struct{}{}
	dialCtx, done := context.WithTimeout(ctx, 12*time.Second)
	qc, conn, source, err := m.dial(dialCtx, tr, to)
	done()
	<-gate
	if err != nil {
		if !errors.Is(err, errRefused) && ctx.Err() == nil {
			emit(event{Event: "failed", Index: m.index, Text: err.Error()})
		}
		return err
	}
	defer qc.CloseWithError(0, "")
	m.up.Store(true)
	emit(event{Event: "connected", Index: m.index, Text: source.String()})
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := context.AfterFunc(inner, func() { conn.Close() })
	defer stopped()
	if interval := m.interval(); interval > 0 {
		go m.send(inner, conn, source, interval)
	}
	err = m.receive(conn)
	m.up.Store(false)
	if ctx.Err() == nil {
		m.closed.Add(1)
		emit(event{Event: "closed", Index: m.index, Text: err.Error()})
	}
	return nil
}

func (m *member) victim() bool { return m.f.o.suspend > 0 && m.index == 0 }

func (m *member) interval() time.Duration {
	if m.victim() {
		return m.f.o.victimInterval
	}
	return m.f.o.interval
}

// checksum of UDP over IPv6.
func checksum(src, dst netip.Addr, udp []byte) uint16 {
	var sum uint32
	add := func(b []byte) {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(b[i])<<8 | uint32(b[i+1])
		}
		if len(b)%2 == 1 {
			sum += uint32(b[len(b)-1]) << 8
		}
	}
	s, d := src.As16(), dst.As16()
	add(s[:])
	add(d[:])
	sum += uint32(len(udp)) + 17
	add(udp)
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	if c := ^uint16(sum); c != 0 {
		return c
	}
	return 0xffff
}

// packet is the next one, with `size` bytes of UDP payload.
func (m *member) packet(src netip.Addr, stream uint32, size int) []byte {
	p := make([]byte, 40+8+size)
	p[0] = 0x60
	binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
	p[6], p[7] = 17, 64
	s, d := src.As16(), m.f.o.to.As16()
	copy(p[8:], s[:])
	copy(p[24:], d[:])
	u := p[40:]
	binary.BigEndian.PutUint16(u, uint16(20000+m.index%40000))
	binary.BigEndian.PutUint16(u[2:], uint16(m.f.o.port))
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	binary.BigEndian.PutUint32(u[8:], probeMagic)
	binary.BigEndian.PutUint32(u[12:], stream)
	binary.BigEndian.PutUint64(u[16:], m.seq.Add(1))
	binary.BigEndian.PutUint64(u[24:], uint64(now()))
	binary.BigEndian.PutUint16(u[6:], checksum(src, m.f.o.to, u))
	return p
}

func (m *member) send(ctx context.Context, conn *connectip.Conn, src netip.Addr, interval time.Duration) {
	// not all at the same moment
	first := time.NewTimer(interval * time.Duration(m.index%97) / 97)
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if m.quiet.Load() {
			continue
		}
		stream := uint32(1000000 + m.index)
		if m.victim() {
			stream = m.f.stream.Load()
		}
		if _, err := conn.WritePacket(m.packet(src, stream, probeHead)); err != nil {
			return
		}
		m.sent.Add(1)
	}
}

func (m *member) receive(conn *connectip.Conn) error {
	buf := make([]byte, 2048)
	for {
		n, err := conn.ReadPacket(buf)
		if err != nil {
			return err
		}
		if _, ok := probeStream(buf[:n]); ok {
			m.echoed.Add(1)
			m.lastEcho.Store(now())
		}
	}
}
