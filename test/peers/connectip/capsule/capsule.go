// SPDX-License-Identifier: Apache-2.0

// Package capsule is CONNECT-IP's part of HTTP/2: capsules (RFC 9297) by hand, since no Go library has them for HTTP/2.
package capsule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go/quicvarint"
)

const (
	Datagram   = 0
	Assign     = 1
	Routes     = 3
	maxCapsule = 1 << 16
)

// Tunnel is the stream of an admitted request.
type Tunnel struct {
	r    *bufio.Reader
	body io.Closer
	lock sync.Mutex
	w    *io.PipeWriter
	buf  []byte
}

// New takes the body of a 2xx and the writer of the request's body.
func New(body io.ReadCloser, w *io.PipeWriter) *Tunnel {
	return &Tunnel{r: bufio.NewReaderSize(body, 1<<16), body: body, w: w}
}

// WritePacket sends a packet as a DATAGRAM capsule with context ID 0.
func (t *Tunnel) WritePacket(p []byte) ([]byte, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.buf = quicvarint.Append(t.buf[:0], Datagram)
	t.buf = quicvarint.Append(t.buf, uint64(len(p)+1))
	t.buf = append(t.buf, 0)
	t.buf = append(t.buf, p...)
	_, err := t.w.Write(t.buf)
	return nil, err
}

// Close ends both directions.
func (t *Tunnel) Close() {
	t.w.Close()
	t.body.Close()
}

// Read returns the next capsule.
func (t *Tunnel) Read() (uint64, []byte, error) {
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

// Assigned and RouteList decode the values of ADDRESS_ASSIGN and ROUTE_ADVERTISEMENT.
func Assigned(v []byte) (ps []netip.Prefix, err error) {
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

func RouteList(v []byte) (ps []netip.Prefix, err error) {
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
