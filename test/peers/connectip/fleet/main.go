// SPDX-License-Identifier: Apache-2.0

// holdfast-fleet is many connectors in one process, for figures: sessions without a TUN device, each with a certificate of its
// own (signed here) or a bearer token, each sending numbered UDP packets to an echo (`holdfast-probe recv --echo`) and counting
// what comes back. It keeps every session alive as the single connector does: again at once, then every -retry.
//
// With -churn they come and go instead: see churn.go.
//
// It writes one JSON line per event of a session and, at the end or on GET /stats of the control socket, the sums. With -suspend
// it also plays the operator: RUNS times it suspends connector 0's binding, waits until nothing comes any more, and resumes it.
// Times are CLOCK_BOOTTIME in ns.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	edge, authority, ca         string
	clientCA, clientKey         string
	tenant, name, tokenFile     string
	count, parallel             int
	to                          netip.Addr
	port                        int
	interval, victimInterval    time.Duration
	retry, idle                 time.Duration
	control                     string
	api, apiCA, apiCert, apiKey string
	apiNetns                    string
	namespace                   string
	suspend                     int
	duration                    time.Duration
	churn                       bool
	life                        time.Duration
	seed                        int64
}

type event struct {
	T     int64  `json:"t"`
	Event string `json:"event"`
	Index int    `json:"index"`
	Text  string `json:"text,omitempty"`
	Run   int    `json:"run,omitempty"`
	// suspend: before the request, after its answer, last echo, stream number of that run's packets
	Asked  int64  `json:"asked,omitempty"`
	Done   int64  `json:"done,omitempty"`
	Last   int64  `json:"last,omitempty"`
	Stream uint32 `json:"stream,omitempty"`
}

type stats struct {
	Sessions  int    `json:"sessions"`
	Connected int    `json:"connected"`
	Sent      uint64 `json:"sent"`   // while connected, by all but connector 0 if -suspend
	Echoed    uint64 `json:"echoed"` // of those
	Closed    uint64 `json:"closed"` // sessions that ended
	Refused   uint64 `json:"refused"`
	churnStats
}

var outLock sync.Mutex

func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func emit(e event) {
	if e.T == 0 {
		e.T = now()
	}
	b, _ := json.Marshal(e)
	outLock.Lock()
	defer outLock.Unlock()
	os.Stdout.Write(append(b, '\n'))
}

type fleet struct {
	o       *options
	roots   *x509.CertPool
	signer  *x509.Certificate
	key     *ecdsa.PrivateKey
	members []*member
	stream  atomic.Uint32 // of connector 0's packets; -churn: of the last session
	churn   churn
}

func readPEM(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, _ := pem.Decode(b)
	if p == nil {
		return nil, fmt.Errorf("%s: no PEM text", path)
	}
	return p.Bytes, nil
}

func newFleet(o *options) (*fleet, error) {
	f := &fleet{o: o, roots: x509.NewCertPool()}
	f.churn.gone = make(chan struct{})
	b, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	if !f.roots.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("-ca %s: no certificate in it", o.ca)
	}
	if o.tokenFile == "" {
		der, err := readPEM(o.clientCA)
		if err != nil {
			return nil, err
		}
		if f.signer, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		if der, err = readPEM(o.clientKey); err != nil {
			return nil, err
		}
		if f.key, err = x509.ParseECPrivateKey(der); err != nil {
			k, err2 := x509.ParsePKCS8PrivateKey(der)
			if err2 != nil {
				return nil, err
			}
			f.key = k.(*ecdsa.PrivateKey)
		}
	}
	for i := range o.count {
		m := &member{f: f, index: i}
		if m.tls, err = f.identity(i); err != nil {
			return nil, err
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// identity is the TLS configuration of connector i, with its own key and certificate unless there is a token.
func (f *fleet) identity(i int) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(f.o.authority)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{ServerName: host, RootCAs: f.roots, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13}
	if f.o.tokenFile != "" {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	uri := &url.URL{Scheme: "spiffe", Host: f.o.tenant, Path: fmt.Sprintf("/%s-%d", f.o.name, i)}
	t := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), URIs: []*url.URL{uri},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, t, f.signer, &key.PublicKey, f.key)
	if err != nil {
		return nil, err
	}
	kp := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &kp, nil }
	return c, nil
}

func (f *fleet) stats() (s stats) {
	for i, m := range f.members {
		s.Sessions++
		if m.up.Load() {
			s.Connected++
		}
		if f.o.suspend > 0 && i == 0 {
			continue
		}
		s.Sent += m.sent.Load()
		s.Echoed += m.echoed.Load()
		s.Closed += m.closed.Load()
		s.Refused += m.refused.Load()
	}
	if f.o.churn {
		s.churnStats = f.churn.stats()
		s.Connected = int(s.H3 + s.H2)
	}
	return s
}

func (f *fleet) connected() int { return f.stats().Connected }

func (f *fleet) serve(path string) (func(), error) {
	os.Remove(path)
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(f.stats()) })
	mux.HandleFunc("POST /pause", func(http.ResponseWriter, *http.Request) { // what was sent has time to come back
		for _, m := range f.members {
			m.quiet.Store(true)
		}
	})
	mux.HandleFunc("POST /vanish", func(http.ResponseWriter, *http.Request) { // -churn: all of them, for good, without a word
		f.churn.once.Do(func() { close(f.churn.gone) })
		f.churn.left.Wait()
	})
	go http.Serve(ln, mux)
	return func() { ln.Close() }, nil
}

func parse() (*options, error) {
	o := &options{}
	to := ""
	flag.StringVar(&o.edge, "edge", "", "[ADDRESS]:PORT of the edge; -churn: of several, with commas")
	flag.StringVar(&o.authority, "authority", "masque.test:4433", "host:port of :authority")
	flag.StringVar(&o.ca, "ca", "", "CA file of the edge's certificate")
	flag.StringVar(&o.clientCA, "client-ca", "", "CA certificate that signs the connectors' certificates")
	flag.StringVar(&o.clientKey, "client-ca-key", "", "its key")
	flag.StringVar(&o.tokenFile, "token-file", "", "bearer token of all connectors, instead of certificates (for -count 1)")
	flag.StringVar(&o.tenant, "tenant", "acme", "tenant; connector I is TENANT/NAME-I")
	flag.StringVar(&o.name, "name", "fleet", "first part of the connectors' names")
	flag.IntVar(&o.count, "count", 1, "how many")
	flag.IntVar(&o.parallel, "parallel", 16, "sessions that are being opened at a time")
	flag.StringVar(&to, "to", "fd20::10", "address of the echo")
	flag.IntVar(&o.port, "port", 7000, "its port")
	flag.DurationVar(&o.interval, "interval", 0, "between two packets of one connector; 0: no packets")
	flag.DurationVar(&o.victimInterval, "victim-interval", time.Millisecond, "the same for connector 0 with -suspend")
	flag.DurationVar(&o.retry, "retry", 100*time.Millisecond, "wait after a failed attempt")
	flag.DurationVar(&o.idle, "idle", 10*time.Second, "QUIC idle time-out")
	flag.StringVar(&o.control, "control", "", "unix socket for GET /stats, POST /pause")
	flag.StringVar(&o.api, "api", "", "URL of the API server, for -suspend")
	flag.StringVar(&o.apiCA, "api-ca", "", "its CA")
	flag.StringVar(&o.apiCert, "api-cert", "", "the operator's certificate")
	flag.StringVar(&o.apiKey, "api-key", "", "its key")
	flag.StringVar(&o.apiNetns, "api-netns", "", "network namespace from which the API server is reached (a file)")
	flag.StringVar(&o.namespace, "namespace", "holdfast-system", "namespace of the bindings")
	flag.IntVar(&o.suspend, "suspend", 0, "suspend and resume connector 0 so often, then end")
	flag.DurationVar(&o.duration, "duration", 0, "end after so long; 0: on SIGTERM")
	flag.BoolVar(&o.churn, "churn", false, "come, move data, switch the transport and vanish, all the time")
	flag.DurationVar(&o.life, "life", time.Minute, "-churn: a session's mean length")
	flag.Int64Var(&o.seed, "seed", 1, "-churn: of what is drawn")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	var err error
	if o.to, err = netip.ParseAddr(to); err != nil {
		return nil, fmt.Errorf("-to %q: %v", to, err)
	}
	if o.churn && (o.interval <= 0 || o.life <= 0 || o.suspend > 0 || o.tokenFile != "") {
		return nil, errors.New("-churn needs -interval and -life, and goes with certificates and without -suspend only")
	}
	if o.edge == "" || o.ca == "" {
		return nil, errors.New("-edge and -ca are needed")
	}
	return o, nil
}

func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	f, err := newFleet(o)
	if err != nil {
		return err
	}
	if o.control != "" {
		closeControl, err := f.serve(o.control)
		if err != nil {
			return err
		}
		defer closeControl()
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	gate := make(chan struct{}, o.parallel)
	var wg sync.WaitGroup
	for _, m := range f.members {
		if o.churn {
			f.churn.left.Add(1)
			wg.Go(func() { m.churn(ctx, gate); f.churn.left.Done() })
		} else {
			wg.Go(func() { m.live(ctx, gate) })
		}
	}
	if o.suspend > 0 {
		if err := f.suspendRuns(ctx); err != nil {
			return err
		}
		for _, m := range f.members { // what is on its way may arrive
			m.quiet.Store(true)
		}
		time.Sleep(2 * time.Second)
	} else {
		<-ctx.Done()
	}
	sums := f.stats()
	stop()
	wg.Wait()
	b, _ := json.Marshal(struct {
		Event string `json:"event"`
		stats
	}{"stopped", sums})
	fmt.Println(string(b))
	return nil
}

func main() {
	log.SetFlags(0)
	log.SetOutput(io.Discard) // the libraries' own remarks
	o, err := parse()
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-fleet:", strings.TrimSpace(err.Error()))
		os.Exit(1)
	}
}
