// SPDX-License-Identifier: Apache-2.0

package main

// CONNECT-IP over HTTP/2: extended CONNECT (RFC 8441) by golang.org/x/net/http2.

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2"
	"holdfast.test/peers/connectip/capsule"
)

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
	t := capsule.New(rsp.Body, pw)
	defer t.Close()
	if err := c.configureH2(e, t, rsp, t0); err != nil {
		return failed(err)
	}
	answered()
	up := bootNow()
	c.dev.attach(t)
	stopped := context.AfterFunc(ctx, func() {
		t.Close()
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
func (c *connector) configureH2(e edge, t *capsule.Tunnel, rsp *http.Response, t0 int64) error {
	var mine, rs []netip.Prefix
	for mine == nil || rs == nil {
		typ, v, err := t.Read()
		if err != nil {
			return fmt.Errorf("waiting for ADDRESS_ASSIGN and ROUTE_ADVERTISEMENT: %w", err)
		}
		switch typ {
		case capsule.Assign:
			mine, err = capsule.Assigned(v)
		case capsule.Routes:
			rs, err = capsule.RouteList(v)
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

func (c *connector) receiveH2(t *capsule.Tunnel) error {
	for {
		typ, v, err := t.Read()
		if err != nil {
			return err
		}
		if typ != capsule.Datagram {
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
