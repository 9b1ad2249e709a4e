#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Malformed HTTP/2, frame by frame, with the hyperframe and hpack of python-h2: each case must end as the RFC says, and a
good request on a new connection must be answered afterwards. Prints one line per case; exit 1 when one did not hold."""
import argparse
import socket
import ssl
import struct
import sys

import h2.config
import h2.connection
import h2.events
import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GOOD = [(":method", "CONNECT"), (":protocol", "connect-ip"), (":scheme", "https"), (":authority", "masque.test:4433"),
        (":path", "/.well-known/masque/ip/*/*/")]
DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9


def frame(kind, flags, stream, payload=b"", length=None):
    return struct.pack(">I", len(payload) if length is None else length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(fields):
    return hpack.Encoder().encode(fields)


class Wire:
    def __init__(self, o, raw=b""):
        c = ssl.create_default_context(cafile=o.ca)
        c.load_cert_chain(o.cert, o.key)
        c.set_alpn_protocols(["h2"])
        host, port = o.edge.rsplit(":", 1)
        self.s = c.wrap_socket(socket.create_connection((host.strip("[]"), int(port)), 5), server_hostname="masque.test")
        self.s.settimeout(5)
        self.buf = b""
        self.s.sendall(raw)

    def send(self, data):
        try:
            self.s.sendall(data)
        except OSError:
            pass  # it has hung up already: read says how

    def frames(self):
        """(kind, flags, stream, payload) until the server hangs up."""
        while True:
            while len(self.buf) < 9 or len(self.buf) < 9 + int.from_bytes(self.buf[:3], "big"):
                try:
                    got = self.s.recv(65536)
                except (ConnectionError, ssl.SSLError):
                    got = b""
                if not got:
                    return
                self.buf += got
            n = int.from_bytes(self.buf[:3], "big")
            kind, flags, stream = self.buf[3], self.buf[4], int.from_bytes(self.buf[5:9], "big") & 0x7FFFFFFF
            payload, self.buf = self.buf[9 : 9 + n], self.buf[9 + n :]
            yield kind, flags, stream, payload

    def outcome(self, stream, never=None):
        """What became of it: ("goaway", code), ("rst", code), ("status", code) or ("eof", 0)."""
        d = hpack.Decoder()
        for kind, flags, s, p in self.frames():
            if kind == SETTINGS and not flags & 1:
                self.send(frame(SETTINGS, 1, 0))
            elif kind == GOAWAY:
                code = int.from_bytes(p[4:8], "big")
                if code:
                    return ("goaway", code)
            elif kind == RST and s == stream:
                return ("rst", int.from_bytes(p[:4], "big"))
            elif kind == HEADERS:
                h = dict(d.decode(p))
                if s == never:
                    return ("an answer on stream", s)
                if s == stream:
                    return ("status", int(h[":status"]))
        return ("eof", 0)


START = PREFACE + frame(SETTINGS, 0, 0)


def without(name):
    return [f for f in GOOD if f[0] != name]


def good(fields=None, stream=1, flags=4):
    return frame(HEADERS, flags, stream, block(fields or GOOD))


def unknown(stream):
    return good([(":method", "CONNECT"), (":protocol", "x")] + GOOD[2:], stream)


BAD_REQUEST = {("rst", 1), ("status", 400)}
CASES = [  # name, bytes after the preface, stream that is looked at, allowed outcomes, stream that must get no answer
    ("no :authority", good(without(":authority")), 1, BAD_REQUEST),
    ("no :scheme", good(without(":scheme")), 1, BAD_REQUEST),
    ("no :path", good(without(":path")), 1, BAD_REQUEST),
    ("pseudo header after a regular one", good([("a", "b")] + GOOD), 1, BAD_REQUEST),
    (":protocol twice", good(GOOD + [(":protocol", "connect-ip")]), 1, BAD_REQUEST),
    (":protocol with GET", good([(":method", "GET")] + GOOD[1:]), 1, BAD_REQUEST | {("status", 405)}),
    ("upper-case name", good(GOOD + [("Xy", "z")]), 1, BAD_REQUEST),
    ("connection header", good(GOOD + [("connection", "close")]), 1, BAD_REQUEST),
    ("content-length", good(GOOD + [("content-length", "5")]), 1, BAD_REQUEST),
    ("END_STREAM on the request", good(flags=5), 1, BAD_REQUEST),
    ("unknown :protocol", unknown(1), 1, {("status", 501)}),
    ("70 KiB of header", frame(HEADERS, 0, 1, block(GOOD)) + b"".join(
        frame(CONTINUATION, 4 if i == 4 else 0, 1, b"\x00\x01" + bytes([97 + i]) + b"\x7f\xe9\x6c" + b"x" * 14000) for i in range(5)),
     1, {("status", 431), ("rst", 1), ("rst", 11), ("goaway", 1), ("goaway", 11), ("goaway", 9)}),
    ("endless CONTINUATION", frame(HEADERS, 0, 1, block(GOOD)) + frame(CONTINUATION, 0, 1) * 1000, 1,
     {("goaway", 1), ("goaway", 11), ("eof", 0)}),
    ("DATA on stream 0", frame(DATA, 0, 0, b"x"), 0, {("goaway", 1)}),
    ("DATA on an idle stream", frame(DATA, 0, 7, b"x"), 7, {("goaway", 1), ("goaway", 5)}),
    ("even stream", good(stream=2), 2, {("goaway", 1)}),
    # RFC 9113 section 5.1.1 wants the connection to end. nghttp2 cannot tell it from a late frame of a stream that has ended
    # and ignores it; what matters is that it is no request.
    ("stream number goes back", unknown(5) + unknown(3) + unknown(7), 7, {("goaway", 1), ("goaway", 5), ("status", 501)}, 3),
    ("CONTINUATION out of nowhere", frame(CONTINUATION, 4, 1, b""), 1, {("goaway", 1)}),
    ("SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, b"12345"), 0, {("goaway", 6)}),
    ("SETTINGS ACK with a payload", frame(SETTINGS, 1, 0, b"\0" * 6), 0, {("goaway", 6)}),
    ("SETTINGS_ENABLE_CONNECT_PROTOCOL = 2", frame(SETTINGS, 0, 0, b"\0\x08\0\0\0\x02"), 0, {("goaway", 1)}),
    ("PING of 7 bytes", frame(PING, 0, 0, b"1234567"), 0, {("goaway", 6)}),
    ("window update of 0", frame(WINDOW, 0, 0, b"\0\0\0\0"), 0, {("goaway", 1)}),
    ("window beyond 2^31-1", frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2, 0, {("goaway", 3)}),
    ("a frame of 1 MiB", frame(DATA, 0, 1, b"", length=1 << 20), 0, {("goaway", 6)}),
    ("PUSH_PROMISE by a client", frame(PUSH, 4, 1, b"\0\0\0\2"), 0, {("goaway", 1)}),
    ("HPACK: an index that is not there", frame(HEADERS, 4, 1, b"\xff\xff\xff\x0f"), 1, {("goaway", 9)}),
    ("HPACK: a string that does not end", frame(HEADERS, 4, 1, b"\x00\x7f\xff\xff\xff\x07a"), 1, {("goaway", 9)}),
    ("a flood of PINGs", frame(PING, 0, 0, b"12345678") * 20000, 0, {("goaway", 11), ("goaway", 1), ("eof", 0)}),
    ("a flood of SETTINGS", frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64") * 20000, 0, {("goaway", 11), ("goaway", 1), ("eof", 0)}),
    ("rapid reset", b"".join(good(stream=2 * i + 1) + frame(RST, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(400)), 0,
     {("goaway", 11), ("goaway", 1), ("eof", 0)}),
    ("an unknown frame type is ignored", frame(0xEE, 0xFF, 0, b"grease") + unknown(1),
     1, {("status", 501)}),
]


def answered(o):
    """python-h2 itself, as a well-behaved client: SETTINGS allow extended CONNECT, and the request gets an answer."""
    w = Wire(o)
    c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
    c.initiate_connection()
    w.send(c.data_to_send())
    asked = False
    while True:
        got = w.s.recv(65536)
        if not got:
            return "hung up"
        for e in c.receive_data(got):
            if isinstance(e, h2.events.RemoteSettingsChanged) and not asked:
                if c.remote_settings.enable_connect_protocol != 1:
                    return "SETTINGS_ENABLE_CONNECT_PROTOCOL is not 1"
                c.send_headers(1, GOOD[:1] + [(":protocol", "nobody-serves-this")] + GOOD[2:])
                asked = True
            elif isinstance(e, h2.events.ResponseReceived):
                return "" if dict(e.headers)[":status"] == "501" else "status %s" % dict(e.headers)[":status"]
        w.send(c.data_to_send())


def main():
    a = argparse.ArgumentParser()
    for name in ("edge", "ca", "cert", "key"):
        a.add_argument("--" + name, required=True)
    o = a.parse_args()
    bad = 0
    for name, raw, stream, allowed, *never in CASES:
        try:
            w = Wire(o, START)
            w.send(raw)
            got = w.outcome(stream, *never)
        except TimeoutError:
            got = ("nothing in 5 s", 0)
        ok = got in allowed
        bad += not ok
        print("%s %-40s %s %d" % (("ok  " if ok else "FAIL", name) + got), flush=True)
    left = answered(o)
    print("%s a good client afterwards %s" % ("FAIL" if left else "ok  ", left))
    bad += left != ""
    print("h2raw: %d passed, %d failed" % (len(CASES) + 1 - bad, bad))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
