# SPDX-License-Identifier: Apache-2.0
"""The connector's TUN device, and the capsules that configure it."""
import fcntl
import ipaddress
import json
import os
import struct
import subprocess
import sys


def emit(event, **more):
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


def ip(*args):
    r = subprocess.run(("ip",) + args, capture_output=True, text=True)
    if r.returncode:
        raise OSError("ip %s: %s" % (" ".join(args), r.stderr.strip()))


class Tun:
    def __init__(self, name, mtu):
        self.name = name
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self.fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF: TUN, NO_PI
        ip("link", "set", name, "mtu", str(mtu), "addrgenmode", "none", "up")

    def configure(self, addr, routes):
        ip("-6", "addr", "flush", "dev", self.name)
        ip("addr", "add", "%s/128" % addr, "dev", self.name, "nodad")
        for r in routes:
            ip("route", "replace", str(r), "dev", self.name)

    def read(self):
        try:
            return os.read(self.fd, 65535)
        except BlockingIOError:
            return None

    def write(self, pkt):
        try:
            os.write(self.fd, pkt)
        except OSError:
            pass  # lost, as on any link


def varint(p, at):
    """(value, next), or None when it is not whole."""
    if at >= len(p):
        return None
    n = 1 << (p[at] >> 6)
    if at + n > len(p):
        return None
    return int.from_bytes(p[at : at + n], "big") & ((1 << (8 * n - 2)) - 1), at + n


def put_varint(v):
    for n, mark in ((1, 0), (2, 1), (4, 2), (8, 3)):
        if v < 1 << (8 * n - 2):
            return (v | mark << (8 * n - 2)).to_bytes(n, "big")
    raise ValueError(v)


class Setup:
    """Takes a capsule stream; `ready` once address and routes are known. `packet` gets what DATAGRAM capsules carry."""

    def __init__(self, packet):
        self.buf, self.addr, self.routes, self.packet = b"", None, None, packet

    def feed(self, data):
        self.buf += data
        at = 0
        while True:
            kind = varint(self.buf, at)
            size = kind and varint(self.buf, kind[1])
            if not size or size[1] + size[0] > len(self.buf):
                break
            value = self.buf[size[1] : size[1] + size[0]]
            at = size[1] + size[0]
            if kind[0] == 0:
                context = varint(value, 0)
                if context and context[0] == 0:
                    self.packet(value[context[1] :])
            elif kind[0] == 1:
                self.assigned(value)
            elif kind[0] == 3:
                self.advertised(value)
        self.buf = self.buf[at:]

    def assigned(self, p):
        at = 0
        while at < len(p):
            _, at = varint(p, at)
            size = {4: 4, 6: 16}[p[at]]
            addr, bits = p[at + 1 : at + 1 + size], p[at + 1 + size]
            at += size + 2
            if size == 16 and bits < 128 and self.addr is None:
                self.addr = ipaddress.IPv6Address(addr) + 1

    def advertised(self, p):
        at, self.routes = 0, []
        while at < len(p):
            size = {4: 4, 6: 16}[p[at]]
            if size == 16:
                self.routes += ipaddress.summarize_address_range(
                    ipaddress.IPv6Address(p[at + 1 : at + 17]), ipaddress.IPv6Address(p[at + 17 : at + 33])
                )
            at += 2 * size + 2
