"""The streamer: takes packets from cameras' workers and shows them to browsers, over sockets or as HLS.

    sockets   who is let in: viewers by their viewing, workers by their ticket
    streams   all streams, who is attached to what, what ends when
    stream    one camera in one quality: muxed once, shown to all
    syncing   in step with the viewings' rows, through `desk`
    app       HLS, snapshots, health

It keeps no truth and knows no users; when it dies, viewers come back to the next one with the same viewing.
"""

import asyncio
import re
import socket as sockets
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from camserver.base import asgi
from camserver.base.clock import Clock
from camserver.base.doors import DoorPolicy
from camserver.base.errors import BadSettings
from camserver.base.hosts import in_address, reached_at
from camserver.base.log import get_logger
from camserver.base.machine_load import Meter
from camserver.base.memory import keep_freed
from camserver.base.ready import Ready
from camserver.base.tls_port import TlsPort
from camserver.config import Settings, media_keys, worker_ca
from camserver.domain.live_links import FEED_PATH, LiveKeys, feed_addresses, live_keys
from camserver.services.streamer.app import Routes
from camserver.services.streamer.desk import Desk
from camserver.services.streamer.snapshots import Snapshots
from camserver.services.streamer.sockets import Sockets
from camserver.services.streamer.streams import Streams
from camserver.services.streamer.syncing import Me, Syncing
from camserver.wire.live import Load

if TYPE_CHECKING:
    from camserver.store import Store

log = get_logger(__name__)

TICK_SEC = 1.0
SNAPSHOT_THREADS = 2
# Telling that it stops must not hold the process up.
STOP_SEC = 1.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


async def run(
    clock: Clock,
    settings: Settings,
    ready: Ready,
    socket: sockets.socket,
    store: "Store | None",
    tls_socket: sockets.socket | None = None,
) -> None:
    """Runs the streamer on its listening sockets until cancelled; on `tls_socket` for workers at other sites.

    Without a store it asks control.
    """
    key, previous = media_keys(settings)
    keys = live_keys(key.reveal().encode(), None if previous is None else previous.reveal().encode())
    far = None if tls_socket is None else FarPort(tls_socket, _tls_port(settings, clock), _door_policy(settings))
    async with _desk(clock, settings, keys, store) as desk:
        await serve(introduce(settings, socket, tls_socket), keys, desk, clock, ready, socket, far)


@dataclass(frozen=True, slots=True)
class FarPort:
    """Where workers at other sites come in."""

    socket: sockets.socket
    port: TlsPort
    door: DoorPolicy


def _tls_port(settings: Settings, clock: Clock) -> TlsPort:
    return TlsPort(worker_ca(settings), _tls_names(settings), "streamer.tls_names", clock)


def _tls_names(settings: Settings) -> tuple[str, ...]:
    return settings.streamer.tls_names or settings.control.tls_names


def _door_policy(settings: Settings) -> DoorPolicy:
    chosen = settings.control
    return DoorPolicy(chosen.arrival_sec, chosen.strangers_max, chosen.address_strangers_max)


async def serve(
    me: Me,
    keys: LiveKeys,
    desk: Desk,
    clock: Clock,
    ready: Ready,
    socket: sockets.socket,
    far: FarPort | None = None,
) -> None:
    """Runs a streamer with what it needs, until cancelled."""
    # Pictures come and go by the second, and pages given back and taken again cost more than all the rest.
    keep_freed()
    streams = Streams(clock)
    meter = Meter()

    def load() -> Load:
        measured = meter.read()
        return Load(
            cpu_percent=measured.cpu_percent, memory_percent=measured.memory_percent, swap_mb=measured.swap_mb
        )

    syncing = Syncing(me, desk, streams, clock, ready, load)
    taking = Sockets(me.streamer_id, keys, streams, syncing, clock)
    threads = ThreadPoolExecutor(SNAPSHOT_THREADS, thread_name_prefix="snapshots")
    routes = Routes(keys, streams, syncing, clock, ready, Snapshots(threads).of)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                asgi.serve(routes.app(), socket, lambda: log.info("streams", port=me.port), take_socket=taking.take)
            )
            if far is not None:
                tls = asgi.Tls(far.port.context, far.door)
                served = asgi.serve(Starlette(), far.socket, lambda: None, tls=tls, take_socket=taking.take_far)
                group.create_task(served)
                group.create_task(far.port.keep())
            group.create_task(syncing.run())
            group.create_task(_tick(streams, clock))
    finally:
        streams.close()
        await taking.close()
        threads.shutdown(wait=False, cancel_futures=True)
        await _say_that_it_stops(syncing)


def introduce(settings: Settings, socket: sockets.socket, tls_socket: sockets.socket | None = None) -> Me:
    """How this streamer is known to others. BadSettings when its name can't be one."""
    chosen = settings.streamer
    if not _NAME.fullmatch(chosen.name):
        raise BadSettings(
            f"streamer.name {chosen.name!r} must be 1 to 64 letters, digits, dots, dashes or underscores, beginning "
            "with a letter or digit; set it in the configuration"
        )
    port: int = socket.getsockname()[1]
    own = f"ws://{in_address(reached_at(chosen.host))}:{port}"
    far = ""
    if tls_socket is not None:
        name = next(iter(_tls_names(settings)), sockets.gethostname())
        far = f"wss://{in_address(name)}:{tls_socket.getsockname()[1]}{FEED_PATH}"
    return Me(
        streamer_id=chosen.name,
        public_url=(chosen.public_url or "").rstrip("/"),
        port=port,
        feed_url=feed_addresses((chosen.feed_url or own).rstrip("/") + FEED_PATH, far),
        total_units=settings.admission.total_stream_units,
    )


@asynccontextmanager
async def _desk(clock: Clock, settings: Settings, keys: LiveKeys, store: "Store | None") -> AsyncIterator[Desk]:
    if store is not None:
        from camserver.services.streamer.store_desk import StoreDesk

        yield StoreDesk(store, clock, settings.admission)
        return
    # Only here: it takes a tenth of the memory of a streamer that does not need it.
    import aiohttp

    from camserver.services.streamer.api_desk import ApiDesk

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield ApiDesk(session, settings.streamer.server_url, keys.streamer_token)


async def _tick(streams: Streams, clock: Clock) -> None:
    while True:
        await clock.sleep(TICK_SEC)
        streams.tick()


async def _say_that_it_stops(syncing: Syncing) -> None:
    try:
        async with asyncio.timeout(STOP_SEC):
            await syncing.stop()
    except TimeoutError:
        log.warning("the end of the streamer could not be told in time")
