// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// operator changes bindings at the API server, on one connection.
type operator struct {
	c   *http.Client
	url string
}

func newOperator(o *options) (*operator, error) {
	pem, err := os.ReadFile(o.apiCA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-api-ca %s: no certificate in it", o.apiCA)
	}
	kp, err := tls.LoadX509KeyPair(o.apiCert, o.apiKey)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialFrom(ctx, o.apiNetns, network, addr)
	}
	tr := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{kp}}, ForceAttemptHTTP2: true}
	return &operator{c: &http.Client{Transport: tr, Timeout: 10 * time.Second},
		url: fmt.Sprintf("%s/apis/masque.galactic.datumapis.com/v1alpha1/namespaces/%s/connectorbindings/%s.%s-0", o.api, o.namespace, o.tenant, o.name)}, nil
}

// dialFrom connects from another network namespace: a socket belongs to the one of the thread that makes it.
func dialFrom(ctx context.Context, netns, network, addr string) (net.Conn, error) {
	if netns == "" {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	type result struct {
		c   net.Conn
		err error
	}
	ch := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		fd, err := unix.Open(netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err != nil {
			ch <- result{nil, fmt.Errorf("network namespace %s: %w", netns, err)}
			return
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		ch <- result{c, err}
	}()
	r := <-ch
	return r.c, r.err
}

// suspend sets the field; the times before the request was sent and when its answer was there.
func (p *operator) suspend(value bool) (asked, done int64, err error) {
	body := strings.NewReader(fmt.Sprintf(`{"spec":{"suspended":%t}}`, value))
	rq, err := http.NewRequest(http.MethodPatch, p.url, body)
	if err != nil {
		return 0, 0, err
	}
	rq.Header.Set("Content-Type", "application/merge-patch+json")
	asked = now()
	rsp, err := p.c.Do(rq)
	if err != nil {
		return 0, 0, err
	}
	done = now()
	text, _ := io.ReadAll(io.LimitReader(rsp.Body, 1<<16))
	rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("suspend: %s: %.300s", rsp.Status, text)
	}
	return asked, done, nil
}

func wait(ctx context.Context, limit time.Duration, what string, ok func() bool) error {
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return errors.New("not seen in time: " + what)
		}
	}
	return nil
}

func (f *fleet) suspendRuns(ctx context.Context) error {
	p, err := newOperator(f.o)
	if err != nil {
		return err
	}
	if err := wait(ctx, 10*time.Minute, "all sessions", func() bool { return f.connected() == f.o.count }); err != nil {
		return err
	}
	v := f.members[0]
	time.Sleep(2 * time.Second) // the fleet has come to rest
	for run := 1; run <= f.o.suspend; run++ {
		f.stream.Store(uint32(run))
		before := v.echoed.Load()
		if err := wait(ctx, 30*time.Second, "packets of connector 0", func() bool { return v.up.Load() && v.echoed.Load() >= before+50 }); err != nil {
			return err
		}
		asked, done, err := p.suspend(true)
		if err != nil {
			return err
		}
		if err := wait(ctx, 10*time.Second, "the end of connector 0's session", func() bool { return !v.up.Load() }); err != nil {
			return err
		}
		time.Sleep(150 * time.Millisecond) // whatever is late
		emit(event{Event: "suspend", Run: run, Asked: asked, Done: done, Last: v.lastEcho.Load(), Stream: uint32(run)})
		if _, _, err := p.suspend(false); err != nil {
			return err
		}
	}
	return nil
}
