// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

type outcome int

const (
	outcomeClosed   outcome = iota // there was a session, it ended
	outcomeDenied                  // 4xx
	outcomeBusy                    // 5xx
	outcomeNoAnswer                // no connection, no handshake, no answer
)

const maxReason = 4096 // of a refusal's body

type connector struct {
	o       *options
	tls     *tls.Config
	dev     *device
	h2Until time.Time // -transport auto: HTTP/2 first until then
}

func msSince(t0 int64) float64 { return float64((bootNow()-t0)/1000) / 1000 }

// session makes one attempt at one edge and, when it is admitted, stays in it until it ends.
func (c *connector) session(ctx context.Context, e edge) outcome {
	t0 := bootNow()
	emit(event{T: t0, Event: "connecting", Edge: e.name})
	sock, err := dialSocket(e.addr)
	if err != nil {
		emit(event{Event: "failed", Edge: e.name, Error: err.Error()})
		return outcomeNoAnswer
	}
	defer sock.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sock.onRefused = func() { cancel(errors.New("the edge's port is closed (ICMP unreachable)")) }
	dialCtx, dialDone := context.WithTimeout(ctx, c.o.dialTimeout)
	defer dialDone()
	tr := &quic.Transport{Conn: sock}
	defer tr.Close()
	qc, err := tr.Dial(dialCtx, sock.RemoteAddr(), c.tls, &quic.Config{
		EnableDatagrams: true, InitialPacketSize: uint16(c.o.packetSize), HandshakeIdleTimeout: c.o.dialTimeout,
		MaxIdleTimeout: c.o.idle, KeepAlivePeriod: c.o.idle / 3})
	if err != nil {
		emit(event{Event: "failed", Edge: e.name, Error: explain(dialCtx, err), Ms: msSince(t0)})
		return outcomeNoAnswer
	}
	defer qc.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	hc := (&http3.Transport{EnableDatagrams: true}).NewClientConn(qc)
	conn, rsp, err := c.request(dialCtx, hc)
	if err != nil {
		return c.refused(dialCtx, e, hc, rsp, err, t0)
	}
	defer conn.Close()
	if err := c.configure(dialCtx, e, conn, rsp, t0); err != nil {
		emit(event{Event: "failed", Edge: e.name, Error: explain(dialCtx, err), Ms: msSince(t0)})
		return outcomeNoAnswer
	}
	dialDone()
	up := bootNow()
	if c.o.unchecked {
		c.dev.attach(unchecked{qc})
	} else {
		c.dev.attach(conn)
	}
	err = c.receive(ctx, e, conn)
	c.dev.detach()
	emit(event{Event: "closed", Edge: e.name, Error: explain(ctx, closeReason(qc, err)), Ms: msSince(up)})
	return outcomeClosed
}

func (c *connector) request(ctx context.Context, hc *http3.ClientConn) (*connectip.Conn, *http.Response, error) {
	tmpl, err := uritemplate.New("https://" + c.o.authority + c.o.path)
	if err != nil {
		return nil, nil, err
	}
	req, err := connectip.NewRequest(ctx, tmpl)
	if err != nil {
		return nil, nil, err
	}
	if err := c.addHeaders(req.Header()); err != nil {
		return nil, nil, err
	}
	// The library waits for the answer without looking at ctx. On a time-out the caller closes the connection, which ends it.
	type answer struct {
		conn *connectip.Conn
		rsp  *http.Response
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		conn, rsp, err := connectip.NewClientConn(hc).Dial(req)
		came <- answer{conn, rsp, err}
	}()
	select {
	case a := <-came:
		return a.conn, a.rsp, a.err
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// addHeaders puts the token, as it is in its file now, and the headers asked for into a request.
func (c *connector) addHeaders(h http.Header) error {
	if c.o.tokenFile != "" {
		token, err := os.ReadFile(c.o.tokenFile)
		if err != nil {
			return err
		}
		h.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	for _, line := range c.o.headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return nil
}

func (c *connector) refused(ctx context.Context, e edge, hc *http3.ClientConn, rsp *http.Response, err error, t0 int64) outcome {
	if rsp == nil {
		emit(event{Event: "failed", Edge: e.name, Error: explain(ctx, err), Ms: msSince(t0)})
		return outcomeNoAnswer
	}
	ev := event{Event: "refused", Edge: e.name, Status: rsp.StatusCode, Ms: msSince(t0), Headers: map[string]string{}}
	for k, v := range rsp.Header {
		ev.Headers[strings.ToLower(k)] = strings.Join(v, ", ")
	}
	if c.o.explain {
		ev.Reason = c.reason(ctx, hc)
	}
	emit(ev)
	if rsp.StatusCode >= 500 {
		return outcomeBusy
	}
	return outcomeDenied
}

// reason asks once more on the same connection and reads the answer's body: connect-ip-go cancels the stream of a refusal.
func (c *connector) reason(ctx context.Context, hc *http3.ClientConn) string {
	str, err := hc.OpenRequestStream(ctx)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer str.CancelRead(quic.StreamErrorCode(http3.ErrCodeNoError))
	req, err := http.NewRequestWithContext(ctx, http.MethodConnect, "https://"+c.o.authority+c.o.path, nil)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	req.Proto = "connect-ip"
	req.Host = c.o.authority
	req.Header.Set(http3.CapsuleProtocolHeader, "?1")
	if err := c.addHeaders(req.Header); err != nil {
		return "(" + err.Error() + ")"
	}
	if err := str.SendRequestHeader(req); err != nil {
		return "(" + err.Error() + ")"
	}
	rsp, err := str.ReadResponse()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	b, err := io.ReadAll(io.LimitReader(rsp.Body, maxReason))
	if err != nil && len(b) == 0 {
		return "(" + err.Error() + ")"
	}
	return strings.TrimSpace(string(b))
}

// configure waits for the first address and the routes, and gives both to the device.
func (c *connector) configure(ctx context.Context, e edge, conn *connectip.Conn, rsp *http.Response, t0 int64) error {
	ev := event{Event: "connected", Edge: e.name, Status: rsp.StatusCode}
	as, err := conn.ReceiveAddressAssignment(ctx)
	if err != nil {
		return fmt.Errorf("waiting for ADDRESS_ASSIGN: %w", err)
	}
	mine := accepted(as)
	if len(mine) == 0 {
		return errors.New("ADDRESS_ASSIGN gives no address")
	}
	rs, err := conn.Routes(ctx)
	if err != nil {
		return fmt.Errorf("waiting for ROUTE_ADVERTISEMENT: %w", err)
	}
	var routes []netip.Prefix
	for _, r := range rs {
		routes = append(routes, r.Prefixes()...)
	}
	for _, p := range mine {
		ev.Prefix = append(ev.Prefix, p.String())
	}
	for _, p := range routes {
		ev.Routes = append(ev.Routes, p.String())
	}
	if err := c.dev.configure(mine, routes); err != nil {
		return err
	}
	ev.T, ev.Ms = bootNow(), msSince(t0)
	emit(ev)
	return nil
}

func accepted(as []connectip.AssignedAddress) (ps []netip.Prefix) {
	for _, a := range as {
		if !a.Rejected() {
			ps = append(ps, a.IPPrefix)
		}
	}
	return ps
}

// receive writes the edge's packets into the device until the session ends; later assignments are reported.
func (c *connector) receive(ctx context.Context, e edge, conn *connectip.Conn) error {
	go func() {
		for {
			as, err := conn.ReceiveAddressAssignment(ctx)
			if err != nil {
				return
			}
			ev := event{Event: "reassigned", Edge: e.name}
			for _, p := range accepted(as) {
				ev.Prefix = append(ev.Prefix, p.String())
			}
			emit(ev)
		}
	}()
	stopped := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopped()
	buf := make([]byte, 65535)
	for {
		n, err := conn.ReadPacket(buf)
		if err != nil {
			return err
		}
		c.dev.write(buf[:n])
	}
}

// closeReason prefers the QUIC connection's own error to "use of closed network connection".
func closeReason(qc *quic.Conn, err error) error {
	select {
	case <-qc.Context().Done():
		return context.Cause(qc.Context())
	case <-time.After(5 * time.Millisecond): // the CONNECTION_CLOSE usually follows the stream's end
		var ce *connectip.CloseError
		if errors.As(err, &ce) && ce.Remote {
			return errors.New("the edge ended the session's stream")
		}
		return err
	}
}

func explain(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return err.Error()
}
