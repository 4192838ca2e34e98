"""Reads cameras and throws every packet away: what any program pays that stays connected.

    {"reader": "pyav", "urls": ["rtsp://…"]}

is the first line on its standard input. `pyav` is FFmpeg's demuxer with a thread a camera, `lean` the
worker's own reader. It prints a line when every camera sends; then each further line is answered with the number of
packets so far.
"""

import json
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import av

from bench._cameras import PASSWORD, USER
from camserver.base.clock import boot_time_ms
from camserver.base.secrets import Secret
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Hub, Miss, Packet
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_lean.reader import LeanPackets

OPTIONS = {"rtsp_transport": "tcp", "probesize": "32", "analyzeduration": "0"}


class Counter:
    """A `Consumer` that keeps nothing."""

    def __init__(self) -> None:
        self.packets = 0

    def offer(self, packet: Packet) -> None:
        self.packets += 1

    def ended(self, miss: Miss) -> None:
        print(f"a camera ended: {miss.message}", file=sys.stderr, flush=True)


def read_by_pyav(url: str, counter: Counter) -> None:
    parts = urlsplit(url)
    with_login = parts._replace(netloc=f"{USER}:{PASSWORD}@{parts.netloc}").geturl()
    container: Any = av.open(with_login, options=OPTIONS, timeout=(30, 30))
    for packet in container.demux(video=0):
        counter.packets += packet.size > 0


def read_by_lean(url: str, counter: Counter) -> None:
    address = RtspAddress(url, Login(USER, Secret(PASSWORD)), AddressPolicy(allow_loopback=True))
    Hub(LeanPackets(address, 30, 30, boot_time_ms)).add(counter)


def main(asked: dict[str, Any]) -> None:
    counters = [Counter() for _ in asked["urls"]]
    for url, counter in zip(asked["urls"], counters, strict=True):
        if asked["reader"] == "pyav":
            threading.Thread(target=read_by_pyav, args=(url, counter), daemon=True).start()
        else:
            read_by_lean(url, counter)
    while not all(counter.packets for counter in counters):
        time.sleep(0.1)
    print("warm", flush=True)
    for _ in sys.stdin:
        print(json.dumps({"packets": sum(counter.packets for counter in counters)}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.stdin.readline()))
