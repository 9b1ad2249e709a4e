// SPDX-License-Identifier: Apache-2.0

package main

// -churn: connectors that come, move data, go on over the other transport, and vanish without a word, all the time. Each session
// has a stream number of its own, so that the receiver's log tells which session carried a packet, and a packet of a later
// session that comes back through an earlier one (a stray) is seen here.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	away      = 45 * time.Second // how long a socket of one that vanished stays, silent
	overstays = 15 * time.Second // a session that was replaced has to end by itself before this
)

type churnStats struct {
	H3         int64  `json:"h3"` // sessions now
	H2         int64  `json:"h2"`
	Opened     uint64 `json:"opened"`
	Failed     uint64 `json:"failed"` // attempts
	Vanished   uint64 `json:"vanished"`
	Switched   uint64 `json:"switched"`   // to the other transport, while the earlier session was there
	Overstayed uint64 `json:"overstayed"` // of those: the earlier one was not ended
	Ended      uint64 `json:"ended"`      // by the edge, without a later one
	Strays     uint64 `json:"strays"`
}

type churn struct {
	live                                          [2]atomic.Int64 // HTTP/3, HTTP/2
	opened, failed, vanished, switched, overstays atomic.Uint64
	ended, strays                                 atomic.Uint64
	gone                                          chan struct{} // closed: all vanish now, for good
	once                                          sync.Once
	left                                          sync.WaitGroup
}

func (c *churn) stats() churnStats {
	return churnStats{H3: c.live[0].Load(), H2: c.live[1].Load(), Opened: c.opened.Load(), Failed: c.failed.Load(), Vanished: c.vanished.Load(),
		Switched: c.switched.Load(), Overstayed: c.overstays.Load(), Ended: c.ended.Load(), Strays: c.strays.Load()}
}

// link is one session of a connector.
type link struct {
	m      *member
	h2     bool
	stream uint32
	write  func([]byte) error
	read   func([]byte) (int, error) // the next packet
	mute   func()                    // from now on nothing is sent or taken; whatever holds the session here is let go
	end    func()                    // orderly
	done   chan struct{}             // nothing more comes
	silent atomic.Bool
}

func transportName(h2 bool) string {
	if h2 {
		return "h2"
	}
	return "h3"
}

func (l *link) kind() int {
	if l.h2 {
		return 1
	}
	return 0
}

func (l *link) vanish() {
	if !l.silent.Swap(true) {
		l.mute()
	}
}

// run moves data until the session ends.
func (l *link) run(ctx context.Context, src addr) {
	c := &l.m.f.churn
	c.live[l.kind()].Add(1)
	go func() {
		tick := time.NewTicker(l.m.f.o.interval)
		defer tick.Stop()
		for n := 0; ; n++ {
			size := probeHead
			if n%8 == 7 {
				size = 1100
			}
			if l.silent.Load() || l.write(l.m.packet(src, l.stream, size)) != nil {
				return
			}
			l.m.sent.Add(1)
			select {
			case <-ctx.Done():
				return
			case <-l.done:
				return
			case <-tick.C:
			}
		}
	}()
	buf := make([]byte, 4096)
	for {
		n, err := l.read(buf)
		if err != nil {
			break
		}
		if s, ok := probeStream(buf[:n]); ok && !l.silent.Load() {
			if s > l.stream { // the connector's own, of a later session
				c.strays.Add(1)
				emit(event{Event: "stray", Index: l.m.index, Text: fmt.Sprintf("stream %d came back through stream %d", s, l.stream)})
			} else {
				l.m.echoed.Add(1)
			}
		}
	}
	c.live[l.kind()].Add(-1)
	close(l.done)
}

func (m *member) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-m.f.churn.gone:
		return false
	case <-time.After(d):
		return true
	}
}

// replaced: the edge has to end a session that another one has replaced.
func (m *member) replaced(l *link) {
	c := &m.f.churn
	c.left.Go(func() {
		select {
		case <-l.done:
		case <-c.gone:
		case <-time.After(overstays):
			c.overstays.Add(1)
			emit(event{Event: "overstayed", Index: m.index, Text: transportName(l.h2)})
		}
		l.vanish()
	})
}

// churn is a connector's life.
func (m *member) churn(ctx context.Context, gate chan struct{}) {
	c := &m.f.churn
	rnd := rand.New(rand.NewPCG(uint64(m.f.o.seed), uint64(m.index)))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(rnd.Int64N(int64(b-a)+1)) }
	edges := strings.Split(m.f.o.edge, ",")
	h2 := m.index%2 == 1
	var old *link
	for wait := time.Duration(0); m.pause(ctx, wait); {
		l, src, err := m.open(ctx, gate, edges[rnd.IntN(len(edges))], h2)
		if old != nil {
			m.replaced(old)
			old = nil
		}
		if err != nil {
			if ctx.Err() == nil {
				c.failed.Add(1)
				emit(event{Event: "failed", Index: m.index, Text: transportName(h2) + ": " + err.Error()})
			}
			wait = between(m.f.o.retry, 4*m.f.o.retry)
			h2 = rnd.IntN(2) == 0
			continue
		}
		c.opened.Add(1)
		go l.run(ctx, src)
		select {
		case <-ctx.Done():
		case <-c.gone:
		case <-l.done:
			c.ended.Add(1)
			emit(event{Event: "ended", Index: m.index, Text: transportName(h2)})
			l.vanish()
			wait = between(0, m.f.o.retry)
			continue
		case <-time.After(between(m.f.o.life/2, m.f.o.life*3/2)):
		}
		switch pick := rnd.IntN(100); {
		case ctx.Err() != nil || isClosed(c.gone) || pick < 45:
			c.vanished.Add(1)
			l.vanish()
			wait = between(200*time.Millisecond, 3*time.Second)
			if pick < 10 {
				wait = between(20*time.Second, 40*time.Second)
			}
			h2 = rnd.IntN(2) == 0
		case pick < 85:
			c.switched.Add(1)
			old, h2, wait = l, !h2, 0
		default:
			l.end()
			l.vanish()
			wait = between(0, 2*time.Second)
		}
	}
	if old != nil {
		old.vanish()
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *member) open(ctx context.Context, gate chan struct{}, edge string, h2 bool) (*link, addr, error) {
	gate <- struct{}{}
	defer func() { <-gate }()
	l := &link{m: m, h2: h2, done: make(chan struct{})}
	src, err := l.dial(ctx, edge)
	if err != nil {
		if l.mute != nil {
			l.vanish()
		}
		return nil, src, err
	}
	l.stream = m.f.stream.Add(1)
	return l, src, nil
}

// quiet is a UDP socket that can fall silent for good.
type quietUDP struct {
	net.PacketConn
	mute atomic.Bool
}

func (q *quietUDP) WriteTo(p []byte, to net.Addr) (int, error) {
	if q.mute.Load() {
		return len(p), nil
	}
	return q.PacketConn.WriteTo(p, to)
}

func (q *quietUDP) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := q.PacketConn.ReadFrom(p)
		if err != nil || !q.mute.Load() {
			return n, from, err
		}
	}
}

// quietTCP is the same for a TCP connection: nothing is read any more, and no FIN or RST is sent when it is closed.
type quietTCP struct {
	*net.TCPConn
	mute, closed atomic.Bool
	at           atomic.Int64 // when it is closed after all, from now
	stop         chan struct{}
}

var errSilent = errors.New("silent")

func (q *quietTCP) Write(p []byte) (int, error) {
	if q.mute.Load() {
		return len(p), nil
	}
	return q.TCPConn.Write(p)
}

func (q *quietTCP) Read(p []byte) (int, error) {
	n, err := q.TCPConn.Read(p)
	if q.mute.Load() {
		<-q.stop
		return 0, errSilent
	}
	return n, err
}

func (q *quietTCP) Close() error {
	if q.closed.Swap(true) {
		return nil
	}
	close(q.stop)
	if !q.mute.Load() {
		return q.TCPConn.Close()
	}
	time.AfterFunc(time.Duration(q.at.Load()), func() { closeSilently(q.TCPConn) })
	return nil
}
