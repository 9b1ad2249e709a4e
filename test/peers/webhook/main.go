// SPDX-License-Identifier: Apache-2.0

// holdfast-webhook is an operator's authorization service for tests (schema: OPERATIONS.md): it allows what it is asked,
// unless it was told to refuse, to be slow, to be away, or to lie. It wants a client certificate and writes one JSON line per
// question to stdout.
//
// Rules are text, one a line, each as ACTION [ARGUMENT] and optionally `if WORD` behind it: then it acts only on questions
// whose text has that word (a connector's or an operation's name, say).
//
//	grant N           grantSeconds of an allowance (30)
//	deny [REASON]     allowed: false
//	until SECONDS     adds validUntil, that far from now (may be negative)
//	set MEMBER JSON   the response's member has this value; a member that is not there is added
//	drop MEMBER       … is left out
//	twice MEMBER      … stands there twice
//	upper MEMBER      … begins with a capital letter
//	top MEMBER JSON   likewise for apiVersion, kind, response
//	status N          answers with that status
//	body TEXT         answers with that body
//	large N           answers with N bytes of spaces before the answer
//	delay MS          answers later
//	trickle MS        answers one byte at a time, that far apart
//	hang              never answers
//	close             closes the connection without an answer
//	redirect          302 to itself
//
// On the control socket (-control): POST /rules replaces them all, POST /down closes the port and every connection, POST /up
// opens it again, GET /log shows the last questions. Each answer's header Applied-At is the time (CLOCK_BOOTTIME, ns) right before.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type question struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID, Operation, Tenant, Connector, VPC, Service, Prefix string
		Epoch                                                   int64
	} `json:"request"`
}

type rule struct{ action, arg, value, word string }

type member struct{ name, value string }

type service struct {
	mu    sync.Mutex
	rules []rule
	lines []string
	serve func() error
	stop  func()
}

var known = map[string]int{ // number of arguments; -1: the rest of the line; -2: one or none
	"grant": 1, "deny": -2, "until": 1, "set": 2, "drop": 1, "twice": 1, "upper": 1, "top": 2, "status": 1, "body": -1,
	"large": 1, "delay": 1, "trickle": 1, "hang": 0, "close": 0, "redirect": 0,
}

func parseRules(text string) ([]rule, error) {
	var rs []rule
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var r rule
		if at := strings.LastIndex(line, " if "); at >= 0 {
			line, r.word = line[:at], line[at+4:]
		}
		action, rest, _ := strings.Cut(line, " ")
		n, ok := known[action]
		if !ok {
			return nil, fmt.Errorf("rule %q: unknown action", line)
		}
		r.action, r.arg = action, rest
		if n == 2 {
			if r.arg, r.value, ok = strings.Cut(rest, " "); !ok {
				return nil, fmt.Errorf("rule %q: wants a member and a value", line)
			}
		}
		if (n == 0) != (rest == "") && n >= 0 {
			return nil, fmt.Errorf("rule %q: wrong number of arguments", line)
		}
		switch action {
		case "grant", "until", "status", "large", "delay", "trickle":
			if _, err := strconv.Atoi(r.arg); err != nil {
				return nil, fmt.Errorf("rule %q: wants a number", line)
			}
		}
		rs = append(rs, r)
	}
	return rs, nil
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func object(ms []member) string {
	var b strings.Builder
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.name) + ":" + m.value)
	}
	return "{" + b.String() + "}"
}

func edit(ms []member, r rule) []member {
	var out []member
	found := false
	for _, m := range ms {
		if m.name != r.arg {
			out = append(out, m)
			continue
		}
		found = true
		switch r.action {
		case "set", "top":
			out = append(out, member{m.name, r.value})
		case "twice":
			out = append(out, m, m)
		case "upper":
			out = append(out, member{strings.ToUpper(m.name[:1]) + m.name[1:], m.value})
		}
	}
	if !found && (r.action == "set" || r.action == "top") {
		out = append(out, member{r.arg, r.value})
	}
	return out
}

// answer builds the body that the rules want.
func answer(q *question, rs []rule) string {
	grant, deny, reason, until := "30", false, "", ""
	for _, r := range rs {
		switch r.action {
		case "grant":
			grant = r.arg
		case "deny":
			deny, reason = true, r.arg
		case "until":
			until = r.arg
		}
	}
	rq := &q.Request
	ms := []member{{"uid", quote(rq.UID)}, {"allowed", strconv.FormatBool(!deny)}}
	if deny && reason != "" {
		ms = append(ms, member{"reason", quote(reason)})
	}
	if !deny {
		ms = append(ms, member{"tenant", quote(rq.Tenant)}, member{"connector", quote(rq.Connector)}, member{"vpc", quote(rq.VPC)},
			member{"service", quote(rq.Service)})
		if rq.Prefix != "" {
			ms = append(ms, member{"prefix", quote(rq.Prefix)})
		}
		if rq.Epoch != 0 {
			ms = append(ms, member{"epoch", strconv.FormatInt(rq.Epoch, 10)})
		}
		ms = append(ms, member{"grantSeconds", grant})
		if until != "" {
			n, _ := strconv.Atoi(until)
			ms = append(ms, member{"validUntil", quote(time.Now().UTC().Add(time.Duration(n) * time.Second).Format(time.RFC3339))})
		}
	}
	for _, r := range rs {
		switch r.action {
		case "set", "drop", "twice", "upper":
			ms = edit(ms, r)
		}
	}
	top := []member{{"apiVersion", quote(q.APIVersion)}, {"kind", quote(q.Kind)}, {"response", object(ms)}}
	for _, r := range rs {
		if r.action == "top" {
			top = edit(top, r)
		}
	}
	return object(top)
}

func (s *service) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	text, err := io.ReadAll(io.LimitReader(rq.Body, 1<<20))
	var q question
	if err != nil || json.Unmarshal(text, &q) != nil {
		http.Error(w, "not a question", http.StatusBadRequest)
		return
	}
	line := fmt.Sprintf(`{"t":%d,"proto":%s,"question":%s}`, time.Now().UnixNano(), quote(rq.Proto), text)
	s.mu.Lock()
	var rs []rule
	for _, r := range s.rules {
		if r.word == "" || strings.Contains(string(text), r.word) {
			rs = append(rs, r)
		}
	}
	s.lines = append(s.lines, line)
	if len(s.lines) > 2000 {
		s.lines = s.lines[1000:]
	}
	fmt.Println(line)
	s.mu.Unlock()
	body, status, trickle := answer(&q, rs), http.StatusOK, 0
	for _, r := range rs {
		n, _ := strconv.Atoi(r.arg)
		switch r.action {
		case "status":
			status = n
		case "body":
			body = r.arg
		case "large":
			body = strings.Repeat(" ", n) + body
		case "delay":
			time.Sleep(time.Duration(n) * time.Millisecond)
		case "trickle":
			trickle = n
		case "hang":
			<-rq.Context().Done()
			return
		case "close":
			panic(http.ErrAbortHandler)
		case "redirect":
			w.Header().Set("Location", rq.URL.String())
			status = http.StatusFound
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if trickle == 0 {
		io.WriteString(w, body)
		return
	}
	for i := range body {
		if _, err := io.WriteString(w, body[i:i+1]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(time.Duration(trickle) * time.Millisecond)
	}
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

func (s *service) control(w http.ResponseWriter, rq *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Applied-At", boottime())
	switch rq.Method + " " + rq.URL.Path {
	case "POST /rules":
		text, err := io.ReadAll(rq.Body)
		if err == nil {
			var rs []rule
			if rs, err = parseRules(string(text)); err == nil {
				s.rules = rs
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	case "POST /down":
		s.stop()
	case "POST /up":
		if err := s.serve(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case "GET /log":
		io.WriteString(w, strings.Join(s.lines, "\n")+"\n")
	default:
		http.NotFound(w, rq)
	}
}

func run() error {
	listen := flag.String("listen", "", "[ADDRESS]:PORT for the agents")
	control := flag.String("control", "", "unix socket for the test")
	ca := flag.String("client-ca", "", "CA file of the agents' certificates")
	cert := flag.String("cert", "", "server certificate file")
	key := flag.String("key", "", "key file of -cert")
	h1 := flag.Bool("http1", false, "HTTP/1.1 only")
	flag.Parse()
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("-client-ca %s: no certificate in it", *ca)
	}
	kp, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	s := &service{}
	var srv *http.Server
	s.stop = func() {
		if srv != nil {
			srv.Close()
			srv = nil
		}
	}
	s.serve = func() error {
		if srv != nil {
			return nil
		}
		ln, err := net.Listen("tcp", *listen)
		if err != nil {
			return err
		}
		tc := &tls.Config{Certificates: []tls.Certificate{kp}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
		next := map[string]func(*http.Server, *tls.Conn, http.Handler){}
		if !*h1 {
			next = nil
		}
		srv = &http.Server{Handler: s, TLSConfig: tc, TLSNextProto: next, ErrorLog: log.New(os.Stderr, "", 0)}
		go srv.ServeTLS(ln, "", "")
		return nil
	}
	if err := s.serve(); err != nil {
		return err
	}
	if *control == "" {
		return errors.New("-control is missing: the unix socket for the test")
	}
	os.Remove(*control)
	ln, err := net.Listen("unix", *control)
	if err != nil {
		return err
	}
	return http.Serve(ln, http.HandlerFunc(s.control))
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-webhook:", err)
		os.Exit(1)
	}
}
