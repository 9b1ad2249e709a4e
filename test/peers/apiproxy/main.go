// SPDX-License-Identifier: Apache-2.0

// holdfast-apiproxy stands between one lab node and the API server and breaks what it is told to break, request by request:
// a watch that goes silent, an answer that is lost, a request that arrives late. It ends TLS with the API server's own
// certificate, so clients verify it as usual; their credentials pass through untouched.
//
// Rules are text, one a line: ACTION REGEX, matched against "METHOD PATH?QUERY"; the first that matches acts.
//
//	silence R       the answer's head and what was sent so far pass; then nothing more comes, and the stream stays open
//	lose-answer R   the request reaches the API server, its answer does not come back; lose-answer=N: only of the first N
//	hold R          the request waits here until the rule is gone, then goes on (also when the client gave up meanwhile);
//	                hold=N: only the first N
//	duplicate R     the request reaches the API server twice, the copy after the answer of the first; duplicate=N: only the first N
//	late-copy R     the same, but the copy goes on when the rule is gone; late-copy=N: only of the first N
//	other R         the request goes to the second API server (-other)
//	delay=MS R      the request goes on after so many milliseconds
//	status=CODE R   answered here, the API server never sees it
//
// POST /rules on the control socket replaces all rules at once; GET /rules shows them with the number of requests that each
// has caught; GET /log shows the last requests.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type rule struct {
	action string
	value  int // delay: ms; status: code; lose-answer, hold, duplicate, late-copy: so many requests, 0 = all
	re     *regexp.Regexp
	hits   atomic.Int64
	gone   chan struct{} // closed when the rule is replaced
}

type proxy struct {
	mu    sync.Mutex
	rules []*rule
	lines []string // last requests
	back  *httputil.ReverseProxy
	other *httputil.ReverseProxy // nil: there is none
}

const maxLines = 500

func parseRules(text string) ([]*rule, error) {
	var rs []*rule
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		action, re, ok := strings.Cut(line, " ")
		name, value, hasValue := strings.Cut(action, "=")
		r := &rule{action: name, gone: make(chan struct{})}
		switch name {
		case "silence", "other":
			if hasValue {
				return nil, fmt.Errorf("rule %q: %s takes no value", line, name)
			}
		case "delay", "status", "lose-answer", "hold", "duplicate", "late-copy":
			var err error
			if !hasValue && name != "delay" && name != "status" {
				break
			}
			if r.value, err = strconv.Atoi(value); err != nil || r.value < 1 {
				return nil, fmt.Errorf("rule %q: %s=NUMBER is needed", line, name)
			}
		default:
			return nil, fmt.Errorf("rule %q: unknown action %q", line, name)
		}
		if !ok {
			return nil, fmt.Errorf("rule %q: the regular expression is missing", line)
		}
		var err error
		if r.re, err = regexp.Compile(re); err != nil {
			return nil, fmt.Errorf("rule %q: %w", line, err)
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// boottime is CLOCK_BOOTTIME in ns, as all the lab's times are.
func boottime() string {
	const clock = 7
	var ts syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		panic(e)
	}
	return strconv.FormatInt(ts.Nano(), 10)
}

func (p *proxy) replace(rs []*rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		close(r.gone)
	}
	p.rules = rs
}

// match finds the rule for a request. `count` is for one that is about to be acted on: the rule's first value requests only.
func (p *proxy) match(what string, count bool) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		limited := r.value > 0 && r.action != "delay" && r.action != "status"
		if !r.re.MatchString(what) || (limited && r.hits.Load() >= int64(r.value)) {
			continue
		}
		if count && r.action != "silence" { // a stream counts when it falls silent
			r.hits.Add(1)
		}
		return r
	}
	return nil
}

func (p *proxy) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) == maxLines {
		p.lines = p.lines[1:]
	}
	p.lines = append(p.lines, time.Now().UTC().Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

type whatKey struct{}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + r.URL.RequestURI()
	p.note("%s %s", r.Proto, what)
	rl := p.match(what, true)
	if rl == nil || rl.action == "silence" {
		p.back.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whatKey{}, what)))
		return
	}
	ctx := context.WithValue(r.Context(), whatKey{}, what)
	switch rl.action {
	case "other":
		if p.other == nil {
			http.Error(w, "this proxy has no second API server (-other)", http.StatusBadGateway)
			return
		}
		p.note("  to the second API server")
		p.other.ServeHTTP(w, r.WithContext(ctx))
		return
	case "status":
		p.note("  answered here: %d", rl.value)
		http.Error(w, "refused by the lab's proxy", rl.value)
		return
	case "delay":
		time.Sleep(time.Duration(rl.value) * time.Millisecond)
	case "duplicate", "late-copy":
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil {
			return
		}
		again := r.Clone(context.WithoutCancel(ctx))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		again.Body = io.NopCloser(strings.NewReader(string(body)))
		p.back.ServeHTTP(w, r.WithContext(ctx))
		go func() {
			end, cancel := context.WithTimeout(again.Context(), time.Minute)
			defer cancel()
			if rl.action == "late-copy" {
				<-rl.gone
			}
			p.note("  again: %s", what)
			p.back.ServeHTTP(discard{}, again.WithContext(end))
		}()
		return
	case "hold", "lose-answer":
		// The body has to be read while the client is there; what follows must not end when it leaves.
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		// With an end of its own: without any, the reverse proxy would take the client's leaving for one.
		var end context.CancelFunc
		ctx, end = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer end()
		if rl.action == "hold" {
			p.note("  held")
			<-rl.gone
			p.note("  goes on: %s", what)
		} else {
			p.back.ServeHTTP(discard{}, r.WithContext(ctx))
			p.note("  answer lost")
			select { // nothing comes back until the client gives up
			case <-r.Context().Done():
			case <-rl.gone:
			}
			panic(http.ErrAbortHandler)
		}
	}
	p.back.ServeHTTP(w, r.WithContext(ctx))
}

// discard takes an answer and drops it.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// silent passes an answer's body on until a silence rule matches its request; then it blocks until that rule is gone.
type silent struct {
	io.ReadCloser
	p    *proxy
	ctx  context.Context
	what string
	hit  *rule
}

func (s *silent) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	for n > 0 { // what came while the rule was there is lost with it: the stream ends, as a dead path's would
		r := s.p.match(s.what, false)
		if r == nil || r.action != "silence" {
			if s.hit != nil {
				return 0, errors.New("stream was silenced")
			}
			return n, err
		}
		if s.hit == nil {
			r.hits.Add(1)
			s.p.note("  silenced: %s", s.what)
		}
		s.hit = r
		select {
		case <-r.gone:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	return n, err
}

func (p *proxy) control(sock string) error {
	os.Remove(sock)
	l, err := net.Listen("unix", sock)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rules", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil {
			return
		}
		rs, err := parseRules(string(b))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Applied-At", boottime())
		p.replace(rs)
		p.note("rules: %s", strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "; "))
	})
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, rl := range p.rules {
			fmt.Fprintf(w, "%d %s %s\n", rl.hits.Load(), rl.action, rl.re)
		}
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, l := range p.lines {
			fmt.Fprintln(w, l)
		}
	})
	go http.Serve(l, mux)
	return nil
}

func run() error {
	listen := flag.String("listen", "", "[ADDRESS]:PORT to listen on")
	to := flag.String("to", "", "https URL of the API server")
	other := flag.String("other", "", "https URL of a second API server of the same cluster, for the rule \"other\"")
	ca := flag.String("ca", "", "CA file of the API server")
	cert := flag.String("cert", "", "certificate file to show to clients")
	key := flag.String("key", "", "key file of -cert")
	sock := flag.String("control", "", "unix socket for the rules")
	flag.Parse()
	up, err := url.Parse(*to)
	if err != nil || up.Scheme != "https" {
		return fmt.Errorf("-to %q: an https URL is needed", *to)
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("-ca %s: no certificate in it", *ca)
	}
	p := &proxy{}
	backend := func(up *url.URL) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(up) },
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableCompression: true},
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0),
			ModifyResponse: func(r *http.Response) error {
				what, _ := r.Request.Context().Value(whatKey{}).(string)
				r.Body = &silent{ReadCloser: r.Body, p: p, ctx: r.Request.Context(), what: what}
				return nil
			},
		}
	}
	p.back = backend(up)
	if *other != "" {
		up2, err := url.Parse(*other)
		if err != nil || up2.Scheme != "https" {
			return fmt.Errorf("-other %q: an https URL is needed", *other)
		}
		p.other = backend(up2)
	}
	if err := p.control(*sock); err != nil {
		return err
	}
	s := &http.Server{Addr: *listen, Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { <-ctx.Done(); s.Close() }()
	if err := s.ListenAndServeTLS(*cert, *key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-apiproxy:", err)
		os.Exit(2)
	}
}
