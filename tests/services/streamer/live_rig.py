"""A streamer on a port of its own, with viewings that a test makes up, and clients that speak to it."""

import asyncio
import dataclasses
import io
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import av

from camserver.base.clock import StoreClock
from camserver.base.errors import Unavailable
from camserver.base.ready import Ready
from camserver.domain import live_links
from camserver.domain.live_links import Quality, Ticket
from camserver.services.streamer.service import FarPort, serve
from camserver.services.streamer.syncing import Me
from camserver.services.worker.feed_line import FeedLine, connect
from camserver.wire.live import (
    FeedSound,
    FeedStream,
    Gone,
    LiveViewing,
    Sync,
    Synced,
    pack_stream,
    packet_head,
    sound_head,
)
from tests.media.video import encoded, flat
from tests.rig.polling import TIMEOUT_SEC, until
from tests.rig.ports import listening_socket

KEYS = live_links.live_keys(b"a media key of the tests")
STREAMER = "streamer-1"
TENANT = 1
CAMERA = "cam_2f_19"

T = TypeVar("T")


class FakeDesk:
    """A `Desk` over viewings in memory."""

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock
        self.viewings: dict[str, LiveViewing] = {}
        self.reasons: dict[str, str] = {}
        self.is_away = False
        self.has_room = True  # for transcodes
        self.syncs: list[Sync] = []

    async def sync(self, sync: Sync) -> Synced:
        if self.is_away:
            raise Unavailable("the store is away")
        self.syncs = [*self.syncs[-100:], sync]
        for watched in sync.watched:
            if watched.lease_id in self.viewings:
                self.change(watched.lease_id, feed=watched.feed)
        for lease_id in sync.unplayable if self.has_room else ():
            self.change(lease_id, transcode=True, feed_reason="")
        return Synced(
            server_time=self._clock.now_ms(),
            viewings=tuple(self.viewings.values()),
            gone=tuple(
                Gone(lease_id=one, reason=self.reasons.get(one, "unknown"))
                for one in sync.asked
                if one not in self.viewings
            ),
            no_room=() if self.has_room else sync.unplayable,
        )

    def admit(self, quality: Quality = "sub", kind: str = "modal", camera_id: str = CAMERA, units: int = 0) -> str:
        lease_id = str(uuid.uuid4())
        self.viewings[lease_id] = LiveViewing(
            lease_id=lease_id,
            tenant_id=TENANT,
            camera_id=camera_id,
            quality=quality,
            transcode=False,
            kind=kind,
            expires_at=self._clock.now_ms() + 300_000,
            feed="wanted",
            generation=1,
            is_held=True,
            units=units,
        )
        return lease_id

    def change(self, lease_id: str, **values: object) -> None:
        self.viewings[lease_id] = self.viewings[lease_id].model_copy(update=values)

    def end(self, lease_id: str, reason: str = "unknown") -> None:
        del self.viewings[lease_id]
        self.reasons[lease_id] = reason


@dataclasses.dataclass(slots=True)
class Rig:
    """The streamer's surroundings."""

    desk: FakeDesk
    session: aiohttp.ClientSession
    port: int
    ready: Ready
    clock: StoreClock

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ticket(self, **values: object) -> str:
        ticket = Ticket(
            STREAMER, TENANT, CAMERA, 1, "sub", False, "worker-1", self.clock.now_ms() + 30_000, uuid.uuid4().hex
        )
        return live_links.sign_ticket(KEYS, dataclasses.replace(ticket, **values))  # type: ignore[arg-type]

    async def feed(self, **values: object) -> "FakeFeed":
        url = f"ws://127.0.0.1:{self.port}{live_links.FEED_PATH}"
        return FakeFeed(await connect(url, self.ticket(**values), None))

    async def watch(self, lease_id: str, camera_id: str = CAMERA, hears: bool = False) -> "Watcher":
        url = live_links.stream_url(KEYS, self.origin, camera_id, lease_id) + ("&sound=1" if hears else "")
        return Watcher(await self.session.ws_connect(url, max_msg_size=0))

    async def hls(self, lease_id: str, name: str = "index.m3u8") -> tuple[int, bytes, str]:
        url = live_links.hls_url(KEYS, self.origin, lease_id).removesuffix("index.m3u8") + name
        async with self.session.get(url) as answer:
            return answer.status, await answer.read(), answer.headers.get("Content-Type", "")

    async def about(self) -> dict[str, Any]:
        async with self.session.get(f"{self.origin}/readyz") as answer:
            about: dict[str, Any] = await answer.json()
            return about


class FakeFeed:
    """What a worker does, without a camera."""

    def __init__(self, line: FeedLine) -> None:
        self.line = line
        self._sent = 0
        self._packets = encoded([flat(40 + 10 * shade, (320, 192)) for shade in range(10)], 5)

    def begin(self, note: str = "", source_codec: str = "", sound: FeedSound | None = None) -> None:
        from camserver.media import nal_units

        sets = nal_units.kind_of_bytes("h264", self._packets[0].data).sets
        base = self._packets[0].stream.time_base
        self.line.send(pack_stream(FeedStream("h264", sets, base, note, source_codec, sound)))

    def sound(self, data: bytes, pts: int | None) -> None:
        """A piece that comes with the picture that was pushed last."""
        self.line.send(sound_head(pts, 100 * (self._sent - 1)), data)

    def push(self, count: int = 1) -> None:
        """The next pictures, every fifth a keyframe, ten a second."""
        for _ in range(count):
            packet = self._packets[self._sent % len(self._packets)]
            stamp = 9_000 * self._sent
            self.line.send(packet_head(stamp, stamp, packet.is_keyframe, 100 * self._sent), packet.data)
            self._sent += 1

    async def push_until(self, asking: "asyncio.Task[T]", what: str) -> T:
        """As a camera that goes on: a segment is done when the next keyframe comes, whenever it was asked for."""

        def is_answered() -> bool:
            self.push(1)
            return asking.done()

        await until(is_answered, what)
        return await asking

    async def closed(self) -> int | None:
        await asyncio.wait_for(self.line.closed.wait(), 60)
        return self.line.close_code


class Watcher:
    """A browser, as far as the socket goes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.statuses: list[dict[str, Any]] = []
        self.inits: list[dict[str, Any]] = []
        self.stats: list[dict[str, Any]] = []
        self.end: str | None = None
        self.media: list[bytes] = []  # init segments and fragments, in order
        self.sounds: list[str] = []  # what it was told could be heard
        self.costs: list[int] = []  # units that it was told it takes

    async def next(self) -> bool:
        """Takes one message; False when the socket is over."""
        message = await self.socket.receive(timeout=60)
        if message.type is aiohttp.WSMsgType.BINARY:
            self.media.append(message.data)
        elif message.type is aiohttp.WSMsgType.TEXT:
            told = json.loads(message.data)
            if told["type"] == "end":
                self.end = told["reason"]
            elif told["type"] == "sound":
                self.sounds.append(told["codec"])
            elif told["type"] == "cost":
                self.costs.append(told["units"])
            else:
                {"status": self.statuses, "init": self.inits, "stats": self.stats}[told["type"]].append(told)
        else:
            return False
        return True

    async def until_state(self, state: str, reason: str | None = None) -> None:
        def is_so() -> bool:
            now = self.statuses[-1] if self.statuses else {"state": None}
            return now["state"] == state and reason in (None, now["reason"])

        await self._read_until(is_so, f"{state} {reason or ''}")

    async def until_media(self, count: int) -> None:
        await self._read_until(lambda: len(self.media) >= count, f"{count} pieces")

    async def _read_until(self, is_so: Callable[[], bool], what: str) -> None:
        """What comes meanwhile would keep a wait without an end going: pictures, and figures every five seconds."""
        try:
            async with asyncio.timeout(TIMEOUT_SEC):
                while not is_so():
                    assert await self.next(), f"closed before {what}: {self}"
        except TimeoutError:
            raise TimeoutError(f"{what}: not within {TIMEOUT_SEC:g} s; {self}") from None

    def __str__(self) -> str:
        told = [(status["state"], status["reason"]) for status in self.statuses]
        return f"told {told}, {len(self.media)} pieces, end {self.end}"

    async def until_closed(self) -> int | None:
        while await self.next():
            pass
        return self.socket.close_code

    def frames(self) -> list[Any]:
        """What it would show."""
        return shown(b"".join(self.media))


def heard(mp4: bytes) -> list[Any]:
    with av.open(io.BytesIO(mp4), "r", format="mp4") as container:
        return list(container.decode(audio=0))


def shown(mp4: bytes) -> list[Any]:
    with av.open(io.BytesIO(mp4), "r", format="mp4") as container:
        return list(container.decode(video=0))


@asynccontextmanager
async def streamer(far: FarPort | None = None) -> AsyncIterator[Rig]:
    clock, ready = StoreClock(), Ready()
    ready.expect("streamer")
    desk = FakeDesk(clock)
    with listening_socket() as sock:
        port = sock.getsockname()[1]
        me = Me(STREAMER, "", port, f"ws://127.0.0.1:{port}{live_links.FEED_PATH}", 50)
        serving = asyncio.ensure_future(serve(me, KEYS, desk, clock, ready, sock, far))
        try:
            async with aiohttp.ClientSession() as session:
                yield Rig(desk, session, port, ready, clock)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
