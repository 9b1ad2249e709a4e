// SPDX-License-Identifier: Apache-2.0

package main

// CONNECT-IP over HTTP/2: extended CONNECT (RFC 8441) by golang.org/x/net/http2, capsules (RFC 9297) by hand, since no Go
// library has them for HTTP/2.

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2"
)

const (
	capsuleDatagram = 0
	capsuleAssign   = 1
	capsuleRoutes   = 3
	maxCapsule      = 1 << 16
)

// tunnel is the stream of an admitted request.
type tunnel struct {
	r    *bufio.Reader
	body io.Closer
	lock sync.Mutex
	w    *io.PipeWriter
	buf  []byte
}

// WritePacket sends a packet as a DATAGRAM capsule with context ID 0.
func (t *tunnel) WritePacket(p []byte) ([]byte, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.buf = quicvarint.Append(t.buf[:0], capsuleDatagram)
	t.buf = quicvarint.Append(t.buf, uint64(len(p)+1))
	t.buf = append(t.buf, 0)
	t.buf = append(t.buf, p...)
	_, err := t.w.Write(t.buf)
	return nil, err
}

func (t *tunnel) close() {
	t.w.Close()
	t.body.Close()
}

func (t *tunnel) readCapsule() (uint64, []byte, error) {
	typ, err := quicvarint.Read(t.r)
	if err != nil {
		return 0, nil, err
	}
	n, err := quicvarint.Read(t.r)
	if err != nil {
		return 0, nil, err
	}
	if n > maxCapsule {
		return 0, nil, fmt.Errorf("capsule %d of %d bytes", typ, n)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(t.r, b)
	return typ, b, err
}

// assigned and routes decode the values of ADDRESS_ASSIGN and ROUTE_ADVERTISEMENT.
func assigned(v []byte) (ps []netip.Prefix, err error) {
	for len(v) > 0 {
		_, n, err := quicvarint.Parse(v)
		if err != nil || len(v) < n+1 {
			return nil, errors.New("short ADDRESS_ASSIGN")
		}
		size := 16
		if v[n] == 4 {
			size = 4
		}
		v = v[n+1:]
		if len(v) < size+1 {
			return nil, errors.New("short ADDRESS_ASSIGN")
		}
		a, _ := netip.AddrFromSlice(v[:size])
		if !a.IsUnspecified() { // a refusal
			ps = append(ps, netip.PrefixFrom(a, int(v[size])))
		}
		v = v[size+1:]
	}
	return ps, nil
}

func routes(v []byte) (ps []netip.Prefix, err error) {
	for len(v) > 0 {
		size := 16
		if v[0] == 4 {
			size = 4
		}
		if len(v) < 2+2*size {
			return nil, errors.New("short ROUTE_ADVERTISEMENT")
		}
		from, _ := netip.AddrFromSlice(v[1 : 1+size])
		to, _ := netip.AddrFromSlice(v[1+size : 1+2*size])
		for n := 0; n <= from.BitLen(); n++ { // edges advertise prefixes
			if p, _ := from.Prefix(n); p.Addr() == from && last(p) == to {
				ps = append(ps, p)
				break
			}
		}
		v = v[2+2*size:]
	}
	return ps, nil
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// sessionH2 is what session is for HTTP/3.
func (c *connector) sessionH2(ctx context.Context, e edge) outcome {
	t0 := bootNow()
	emit(event{T: t0, Event: "connecting", Edge: e.name, Transport: "h2"})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialCtx, dialDone := context.WithTimeout(ctx, c.o.dialTimeout)
	defer dialDone()
	tc := c.tls.Clone()
	if c.o.alpn == "h3" {
		tc.NextProtos = []string{"h2"}
	}
	failed := func(err error) outcome {
		emit(event{Event: "failed", Edge: e.name, Transport: "h2", Error: explain(dialCtx, err), Ms: msSince(t0)})
		return outcomeNoAnswer
	}
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: tc}).DialContext(dialCtx, "tcp", e.addr)
	if err != nil {
		return failed(err)
	}
	defer conn.Close()
	tr := &http2.Transport{ReadIdleTimeout: c.o.idle / 3, PingTimeout: c.o.idle}
	cc, err := tr.NewClientConn(conn)
	if err != nil {
		return failed(err)
	}
	defer cc.Close()
	// The request must outlive dialCtx; until it is answered, dialCtx closes the connection.
	answered := context.AfterFunc(dialCtx, func() { conn.Close() })
	rsp, pw, err := c.requestH2(ctx, cc)
	if err != nil {
		return failed(err)
	}
	defer rsp.Body.Close()
	if rsp.StatusCode/100 != 2 {
		answered()
		return c.refusedH2(e, rsp, t0)
	}
	t := &tunnel{r: bufio.NewReaderSize(rsp.Body, 1<<16), body: rsp.Body, w: pw}
	defer t.close()
	if err := c.configureH2(e, t, rsp, t0); err != nil {
		return failed(err)
	}
	answered()
	up := bootNow()
	c.dev.attach(t)
	stopped := context.AfterFunc(ctx, func() {
		t.close()
		conn.Close()
	})
	err = c.receiveH2(t)
	stopped()
	c.dev.detach()
	emit(event{Event: "closed", Edge: e.name, Transport: "h2", Error: err.Error(), Ms: msSince(up)})
	return outcomeClosed
}

func (c *connector) requestH2(ctx context.Context, cc *http2.ClientConn) (*http.Response, *io.PipeWriter, error) {
	pr, pw := io.Pipe()
	req := (&http.Request{
		Method:        http.MethodConnect,
		URL:           &url.URL{Scheme: "https", Host: c.o.authority, Path: c.o.path},
		Host:          c.o.authority,
		Header:        http.Header{":protocol": {"connect-ip"}, "Capsule-Protocol": {"?1"}},
		Body:          pr,
		ContentLength: -1,
	}).WithContext(ctx)
	if err := c.addHeaders(req.Header); err != nil {
		return nil, nil, err
	}
	rsp, err := cc.RoundTrip(req)
	if err != nil {
		pw.Close()
		return nil, nil, err
	}
	return rsp, pw, nil
}

func (c *connector) refusedH2(e edge, rsp *http.Response, t0 int64) outcome {
	ev := event{Event: "refused", Edge: e.name, Transport: "h2", Status: rsp.StatusCode, Headers: map[string]string{}}
	for k, v := range rsp.Header {
		ev.Headers[strings.ToLower(k)] = strings.Join(v, ", ")
	}
	if c.o.explain {
		b, _ := io.ReadAll(io.LimitReader(rsp.Body, maxReason))
		ev.Reason = strings.TrimSpace(string(b))
	}
	ev.Ms = msSince(t0)
	emit(ev)
	if rsp.StatusCode >= 500 {
		return outcomeBusy
	}
	return outcomeDenied
}

// configureH2 waits for the first address and the routes, and gives both to the device.
func (c *connector) configureH2(e edge, t *tunnel, rsp *http.Response, t0 int64) error {
	var mine, rs []netip.Prefix
	for mine == nil || rs == nil {
		typ, v, err := t.readCapsule()
		if err != nil {
			return fmt.Errorf("waiting for ADDRESS_ASSIGN and ROUTE_ADVERTISEMENT: %w", err)
		}
		switch typ {
		case capsuleAssign:
			mine, err = assigned(v)
		case capsuleRoutes:
			rs, err = routes(v)
		}
		if err != nil {
			return err
		}
	}
	ev := event{Event: "connected", Edge: e.name, Transport: "h2", Status: rsp.StatusCode}
	for _, p := range mine {
		ev.Prefix = append(ev.Prefix, p.String())
	}
	for _, p := range rs {
		ev.Routes = append(ev.Routes, p.String())
	}
	if err := c.dev.configure(mine, rs); err != nil {
		return err
	}
	ev.T, ev.Ms = bootNow(), msSince(t0)
	emit(ev)
	return nil
}

func (c *connector) receiveH2(t *tunnel) error {
	for {
		typ, v, err := t.readCapsule()
		if err != nil {
			return err
		}
		if typ != capsuleDatagram {
			continue
		}
		if id, n, err := quicvarint.Parse(v); err == nil && id == 0 {
			c.dev.write(v[n:])
		}
	}
}

// either tries HTTP/3 and, where nothing answers, HTTP/2; a transport that worked is tried first the next time, and HTTP/3
// again after a while.
func (c *connector) either(ctx context.Context, e edge) outcome {
	if c.o.transport == "h2" || (c.o.transport == "auto" && time.Now().Before(c.h2Until)) {
		return c.sessionH2(ctx, e)
	}
	out := c.session(ctx, e)
	if c.o.transport != "auto" || out != outcomeNoAnswer || ctx.Err() != nil {
		return out
	}
	if out = c.sessionH2(ctx, e); out != outcomeNoAnswer {
		c.h2Until = time.Now().Add(c.o.h3Again)
	}
	return out
}
