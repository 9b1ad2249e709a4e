// SPDX-License-Identifier: Apache-2.0

// holdfast-connector is the lab's connector: a CONNECT-IP (RFC 9484) client over HTTP/3 on github.com/quic-go/connect-ip-go,
// or over HTTP/2 on golang.org/x/net/http2 (-transport), with a TUN device, as a site or a laptop would run one. It knows nothing of Holdfast: it has a list of edges and a client
// certificate or a bearer token, and keeps one session alive on one of them.
//
// Which edge: it stays where it is as long as that works. When a session ends it asks the same edge again at once. An edge
// that does not answer, refuses the connection, or says 5xx is left for the next in the list; 4xx is about the connector, not
// about the edge, so it stays and asks again. Between two rounds, and after a 4xx, it waits -retry (100 ms).
//
// Every event is one JSON line on stdout; "t" is CLOCK_BOOTTIME in ns.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	edges                    []edge
	authority, path          string
	ca, cert, key, alpn      string
	tokenFile, transport     string
	headers                  headerList
	tun                      string
	mtu, packetSize          int
	retry, idle, dialTimeout time.Duration
	h3Again                  time.Duration
	once, explain, unchecked bool
}

type edge struct{ name, addr string }

// headerList is the value of a flag that may be given again.
type headerList []string

func (h *headerList) String() string { return strings.Join(*h, ", ") }
func (h *headerList) Set(s string) error {
	if name, _, ok := strings.Cut(s, ": "); !ok || name == "" {
		return errors.New("want NAME: VALUE")
	}
	*h = append(*h, s)
	return nil
}

// event is one line of output. Fields that do not apply are left out.
type event struct {
	T         int64             `json:"t"`
	Event     string            `json:"event"`
	Edge      string            `json:"edge,omitempty"`
	Transport string            `json:"transport,omitempty"` // "h2"; HTTP/3 is not named
	Status    int               `json:"status,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Prefix    []string          `json:"prefix,omitempty"`
	Routes    []string          `json:"routes,omitempty"`
	Error     string            `json:"error,omitempty"`
	Ms        float64           `json:"ms,omitempty"`
	In        uint64            `json:"in,omitempty"`
	Out       uint64            `json:"out,omitempty"`
	Dropped   uint64            `json:"dropped,omitempty"`
}

var emitLock sync.Mutex

func bootNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func emit(e event) {
	if e.T == 0 {
		e.T = bootNow()
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	emitLock.Lock()
	defer emitLock.Unlock()
	os.Stdout.Write(append(b, '\n'))
}

// libraryLog turns what the CONNECT-IP library logs into events, so that every line of output is one.
type libraryLog struct{}

func (libraryLog) Write(p []byte) (int, error) {
	emit(event{Event: "library", Error: strings.TrimSpace(string(p))})
	return len(p), nil
}

func parseEdges(s string) ([]edge, error) {
	var es []edge
	for _, f := range strings.Split(s, ",") {
		name, addr, ok := strings.Cut(f, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("-edges %q: want NAME=[ADDRESS]:PORT,…", f)
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("-edges %q: %v", f, err)
		}
		es = append(es, edge{name, addr})
	}
	return es, nil
}

func parseFlags() (*options, error) {
	o := &options{}
	edges := flag.String("edges", "", "edges in order of preference: NAME=[ADDRESS]:PORT,…")
	flag.StringVar(&o.authority, "authority", "masque.test:4433", "host:port of :authority; the host is the TLS server name")
	flag.StringVar(&o.path, "path", "/.well-known/masque/ip/*/*/", "request path")
	flag.StringVar(&o.ca, "ca", "", "CA file for the edges' certificates")
	flag.StringVar(&o.cert, "cert", "", "client certificate file (empty: none is sent)")
	flag.StringVar(&o.key, "key", "", "key file of -cert")
	flag.StringVar(&o.tokenFile, "token-file", "", "file with a bearer token, read again for each request (empty: none is sent)")
	flag.Var(&o.headers, "header", "NAME: VALUE of one more request header; may be given again")
	flag.StringVar(&o.alpn, "alpn", "h3", "application protocol to offer")
	flag.StringVar(&o.transport, "transport", "h3", "h3, h2, or auto: h2 where h3 gets no answer")
	flag.DurationVar(&o.h3Again, "h3-again", time.Minute, "with auto: how long after an answer over h2 before h3 is tried again")
	flag.StringVar(&o.tun, "tun", "hfc0", "name of the TUN device to make; empty: none, packets are dropped")
	flag.IntVar(&o.mtu, "mtu", 1280, "MTU of the TUN device")
	flag.IntVar(&o.packetSize, "initial-packet-size", 1400, "first QUIC packet size; the tunnel's MTU follows from it")
	flag.DurationVar(&o.retry, "retry", 100*time.Millisecond, "wait between two rounds over the edges")
	flag.DurationVar(&o.idle, "idle", 3*time.Second, "QUIC idle time-out; keep-alives are sent at a third of it")
	flag.DurationVar(&o.dialTimeout, "dial-timeout", time.Second, "time for the handshake and the answer to the request")
	flag.BoolVar(&o.once, "once", false, "one attempt at the first edge; exit 0 after a session, 3 after a refusal, 1 otherwise")
	flag.BoolVar(&o.explain, "explain", false, "after a refusal ask once more and print the answer's body (the library drops it)")
	flag.BoolVar(&o.unchecked, "unchecked", false, "send whatever the device gives, past the library's own checks")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.transport != "h3" && o.transport != "h2" && o.transport != "auto" {
		return nil, fmt.Errorf("-transport %q: want h3, h2 or auto", o.transport)
	}
	var err error
	if o.edges, err = parseEdges(*edges); err != nil {
		return nil, err
	}
	if o.ca == "" {
		return nil, errors.New("-ca is missing: the file of the CA that signs the edges' certificates")
	}
	return o, nil
}

func tlsConfig(o *options) (*tls.Config, error) {
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-ca %s: no certificate in it", o.ca)
	}
	host, _, err := net.SplitHostPort(o.authority)
	if err != nil {
		return nil, fmt.Errorf("-authority %q: %v", o.authority, err)
	}
	c := &tls.Config{ServerName: host, RootCAs: pool, NextProtos: []string{o.alpn}, MinVersion: tls.VersionTLS13}
	if o.cert != "" {
		kp, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, err
		}
		// Also a certificate whose issuer the server does not name: the lab sends wrong ones on purpose.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &kp, nil }
	}
	return c, nil
}

func main() {
	log.SetFlags(0)
	log.SetOutput(libraryLog{})
	o, err := parseFlags()
	if err == nil {
		err = run(o)
	}
	var ex exitCode
	switch {
	case errors.As(err, &ex):
		os.Exit(int(ex))
	case err != nil:
		fmt.Fprintln(os.Stderr, "holdfast-connector:", err)
		os.Exit(2)
	}
}

type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	tc, err := tlsConfig(o)
	if err != nil {
		return err
	}
	dev, err := newDevice(o.tun, o.mtu)
	if err != nil {
		return err
	}
	c := &connector{o: o, tls: tc, dev: dev}
	defer func() {
		emit(event{Event: "stopped", In: dev.in.Load(), Out: dev.out.Load(), Dropped: dev.dropped.Load()})
	}()
	go dev.readLoop()
	if o.once {
		switch c.either(ctx, o.edges[0]) {
		case outcomeClosed:
			return nil
		case outcomeDenied, outcomeBusy:
			return exitCode(3)
		}
		return exitCode(1)
	}
	for at, failed := 0, 0; ctx.Err() == nil; {
		t0 := bootNow()
		switch c.either(ctx, o.edges[at]) {
		case outcomeClosed: // the same edge again, at once, unless it had hardly begun
			failed = 0
			if bootNow()-t0 < int64(o.retry) {
				failed = len(o.edges)
			}
		case outcomeDenied:
			failed = len(o.edges)
		case outcomeBusy, outcomeNoAnswer:
			at = (at + 1) % len(o.edges)
			failed++
		}
		if failed >= len(o.edges) {
			failed = 0
			select {
			case <-ctx.Done():
			case <-time.After(o.retry):
			}
		}
	}
	return nil
}
