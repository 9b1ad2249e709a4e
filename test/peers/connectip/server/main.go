// SPDX-License-Identifier: Apache-2.0

// holdfast-connectip-server is what `make bench` compares with: the shortest CONNECT-IP server on connect-ip-go that does the
// same work, a TUN device on one side and sessions with mutual TLS on the other.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
	"golang.org/x/sys/unix"
)

const path = "/.well-known/masque/ip/*/*/"

type server struct {
	tun   *os.File
	pool  [16]byte
	mu    sync.RWMutex
	n     uint32
	conns map[[12]byte]*connectip.Conn
}

func (s *server) serve(w http.ResponseWriter, r *http.Request, t *uritemplate.Template) error {
	req, err := connectip.ParseProxyRequest(r, t)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return err
	}
	conn, err := (&connectip.Proxy{}).Proxy(w, req)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.mu.Lock()
	s.n++
	p := s.pool
	binary.BigEndian.PutUint32(p[8:12], s.n)
	key := [12]byte(p[:12])
	s.conns[key] = conn
	s.mu.Unlock()
	if err := conn.AssignAddresses([]netip.Prefix{netip.PrefixFrom(netip.AddrFrom16(p), 96)}); err != nil {
		return err
	}
	from, to := netip.MustParseAddr("fd20::"), netip.MustParseAddr("fd20:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	if err := conn.AdvertiseRoute([]connectip.IPRoute{{StartIP: from, EndIP: to}}); err != nil {
		return err
	}
	buf := make([]byte, 65535)
	for {
		n, err := conn.ReadPacket(buf)
		if err != nil {
			return err
		}
		if _, err := s.tun.Write(buf[:n]); err != nil {
			return err
		}
	}
}

func (s *server) fromTun() {
	buf := make([]byte, 65535)
	for {
		n, err := s.tun.Read(buf)
		if err != nil {
			log.Fatal(err)
		}
		if n < 40 {
			continue
		}
		s.mu.RLock()
		c := s.conns[[12]byte(buf[24:36])]
		s.mu.RUnlock()
		if c != nil {
			_, _ = c.WritePacket(buf[:n])
		}
	}
}

func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

func main() {
	device := flag.String("tun", "", "the device, which exists")
	pool := flag.String("pool", "", "the /64 that sessions get their /96 from")
	pki := flag.String("pki", "", "folder with edge1.crt, edge1.key, client-ca.crt")
	flag.Parse()
	base, err := netip.ParseAddr(*pool)
	if err != nil {
		log.Fatal(err)
	}
	s := &server{pool: base.As16(), conns: map[[12]byte]*connectip.Conn{}}
	if s.tun, err = openTun(*device); err != nil {
		log.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(*pki+"/edge1.crt", *pki+"/edge1.key")
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(*pki + "/client-ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	sock, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		log.Fatal(err)
	}
	h := &http3.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.serve(w, r, uritemplate.MustNew("https://"+r.Host+path)); err != nil {
				fmt.Fprintln(os.Stderr, "holdfast-connectip-server:", err)
			}
		}),
		EnableDatagrams: true,
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, SessionTicketsDisabled: true}),
		QUICConfig: &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	go s.fromTun()
	fmt.Printf("ready %d\n", sock.LocalAddr().(*net.UDPAddr).Port)
	log.Fatal(h.Serve(sock))
}
