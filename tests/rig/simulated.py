"""Simulated cameras for tests, on a port of their own."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from camserver.base.clock import Clock, StoreClock
from camserver.base.secrets import Secret
from camserver.media.addresses import AddressPolicy
from camserver.media.rtsp_address import Login as CameraLogin
from camserver.media.sources import Source, SourceWanted, open_source
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.digest import Login
from camserver.services.simulator.service import Simulator
from tests.rig.ports import listening_socket

USER = "viewer"
# With everything in it that means something in an address.
PASSWORD = "p@ss:w/rd?#%&ö"
LOGIN = CameraLogin(USER, Secret(PASSWORD))
# Nothing here is about speed.
CONNECT_SEC = 60.0


@asynccontextmanager
async def simulated(
    cache_dir: Path,
    *cameras: CameraAsked,
    clock: Clock | None = None,
    with_login: bool = True,
    sock: socket.socket | None = None,
) -> AsyncIterator[Simulator]:
    login = Login(USER, Secret(PASSWORD)) if with_login else None
    with sock or listening_socket() as listening:
        listening.setblocking(False)
        async with Simulator(cameras, listening, login, cache_dir, clock or StoreClock()) as simulator:
            yield simulator


def camera_source(
    url: str,
    login: CameraLogin | None = LOGIN,
    interval_ms: int = 1000,
    connect_sec: float = CONNECT_SEC,
    transport: str = "tcp",
    tls_pin: str | None = None,
) -> Source:
    here = AddressPolicy(allow_loopback=True)
    return open_source(SourceWanted("rtsp", url, login, interval_ms, connect_sec, transport, tls_pin, here))
