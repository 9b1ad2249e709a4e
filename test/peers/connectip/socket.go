// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// socket is a connected UDP socket that quic-go can use. Connected, because only then the kernel reports an ICMP "port
// unreachable": a dead agent is noticed in a millisecond instead of after the idle time-out. It is wrapped, not embedded:
// with ReadMsgUDP in sight quic-go would use that instead of ReadFrom.
type socket struct {
	c         *net.UDPConn
	onRefused func()
	once      sync.Once
}

func dialSocket(addr string) (*socket, error) {
	ua, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	c, err := net.DialUDP("udp", nil, ua)
	if err != nil {
		return nil, err
	}
	return &socket{c: c}, nil
}

func (s *socket) check(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		s.once.Do(s.onRefused)
	}
	return err
}

func (s *socket) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := s.c.Read(p)
	return n, s.c.RemoteAddr(), s.check(err)
}

func (s *socket) WriteTo(p []byte, _ net.Addr) (int, error) {
	n, err := s.c.Write(p)
	return n, s.check(err)
}

func (s *socket) Close() error                          { return s.c.Close() }
func (s *socket) LocalAddr() net.Addr                   { return s.c.LocalAddr() }
func (s *socket) RemoteAddr() net.Addr                  { return s.c.RemoteAddr() }
func (s *socket) SetDeadline(t time.Time) error         { return s.c.SetDeadline(t) }
func (s *socket) SetReadDeadline(t time.Time) error     { return s.c.SetReadDeadline(t) }
func (s *socket) SetWriteDeadline(t time.Time) error    { return s.c.SetWriteDeadline(t) }
func (s *socket) SetReadBuffer(n int) error             { return s.c.SetReadBuffer(n) }
func (s *socket) SetWriteBuffer(n int) error            { return s.c.SetWriteBuffer(n) }
func (s *socket) SyscallConn() (syscall.RawConn, error) { return s.c.SyscallConn() }
