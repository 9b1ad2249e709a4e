#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CONNECT-IP client over HTTP/3 on aioquic. One JSON line per event."""
import argparse
import asyncio
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection, Setting
from aioquic.h3.events import DataReceived, DatagramReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

from tun import Setup, Tun, emit


class Http(H3Connection):
    """aioquic announces datagrams with WebTransport only; a CONNECT-IP client wants the one without the other."""

    def _get_local_settings(self):
        return {**super()._get_local_settings(), Setting.H3_DATAGRAM: 1}


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http, self.stream, self.tun, self.up = None, None, None, False
        self.ended = asyncio.get_running_loop().create_future()
        self.setup = Setup(lambda p: self.tun.write(p))

    def open(self, tun, o):
        self.tun, self.http = tun, Http(self._quic)
        self.stream = self._quic.get_next_available_stream_id()
        head = [
            (b":method", b"CONNECT"),
            (b":protocol", o.protocol.encode()),
            (b":scheme", b"https"),
            (b":authority", o.authority.encode()),
            (b":path", b"/.well-known/masque/ip/*/*/"),
            (b"capsule-protocol", b"?1"),
        ]
        self.http.send_headers(self.stream, head)
        self.transmit()
        asyncio.get_running_loop().add_reader(tun.fd, self.from_tun)

    def from_tun(self):
        for _ in range(64):
            pkt = self.tun.read()
            if pkt is None:
                break
            if self.up and len(self._quic._datagrams_pending) < 512:
                self.http.send_datagram(self.stream, b"\0" + pkt)
        self.transmit()

    def end(self, why):
        if not self.ended.done():
            self.ended.set_result(why)

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.end("connection: 0x%x %s" % (event.error_code, event.reason_phrase))
        elif isinstance(event, StreamReset):
            self.end("reset: 0x%x" % event.error_code)
        for e in self.http.handle_event(event) if self.http else ():
            if isinstance(e, HeadersReceived):
                status = int(dict(e.headers)[b":status"])
                if status != 200:
                    emit("refused", status=status)
                    self.end("status %d" % status)
            elif isinstance(e, DataReceived):
                self.setup.feed(e.data)
                if not self.up and self.setup.addr and self.setup.routes is not None:
                    self.tun.configure(self.setup.addr, self.setup.routes)
                    self.up = True
                    emit("connected", address=str(self.setup.addr))
                if e.stream_ended:
                    self.end("the edge ended the stream")
            elif isinstance(e, DatagramReceived):
                if e.data[:1] == b"\0":
                    self.tun.write(e.data[1:])


async def session(o, tun):
    c = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        cafile=o.ca,
        server_name=o.authority.rsplit(":", 1)[0],
        max_datagram_frame_size=65535,
        max_datagram_size=1400,
        idle_timeout=3 * o.keepalive,
    )
    c.load_cert_chain(o.cert, o.key)
    host, port = o.edge.rsplit(":", 1)
    async with connect(host.strip("[]"), int(port), configuration=c, create_protocol=Client) as client:
        client.open(tun, o)
        try:
            while not client.ended.done():
                await asyncio.wait([client.ended], timeout=o.keepalive)
                if not client.ended.done():
                    client._quic.send_ping(1)
                    client.transmit()
        finally:
            asyncio.get_running_loop().remove_reader(tun.fd)
        return client.ended.result()


async def main():
    a = argparse.ArgumentParser()
    for name, default in (("edge", None), ("authority", "masque.test:4433"), ("protocol", "connect-ip"), ("ca", None),
                          ("cert", None), ("key", None), ("tun", "hfc0")):
        a.add_argument("--" + name, default=default)
    a.add_argument("--mtu", type=int, default=1280)
    a.add_argument("--keepalive", type=float, default=2)
    o = a.parse_args()
    tun = Tun(o.tun, o.mtu)
    while True:
        try:
            emit("closed", error=await session(o, tun))
        except (OSError, ConnectionError, asyncio.TimeoutError) as e:
            emit("closed", error=repr(e))
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
