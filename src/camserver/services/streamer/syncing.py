"""Keeps the streamer and the store in step: every second while anybody watches, at once when something changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from camserver.base.bells import Bell
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, Unavailable
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.services.streamer.desk import Desk
from camserver.services.streamer.streams import Streams
from camserver.wire.live import LiveViewing, Load, Sync

log = get_logger(__name__)

BUSY_SEC = 1.0
IDLE_SEC = 5.0
LOAD_EVERY_MS = 5_000
# Changes that come together are told together.
GATHER_SEC = 0.01
READY_NAME = "streamer"


@dataclass(frozen=True, slots=True)
class Me:
    """How this streamer introduces itself."""

    streamer_id: str
    public_url: str
    port: int
    feed_url: str
    total_units: int


class Syncing:
    def __init__(
        self, me: Me, desk: Desk, streams: Streams, clock: Clock, ready: Ready, load: Callable[[], Load | None]
    ) -> None:
        self._me = me
        self._desk = desk
        self._streams = streams
        self._clock = clock
        self._ready = ready
        self._load = load
        self._load_boot_ms: int | None = None
        self._bell = Bell()
        # Those who wait for a sync that begins after they asked.
        self._waiting: list[asyncio.Future[None]] = []
        streams.on_change = self.soon

    def soon(self) -> None:
        """Something changed: the next sync does not wait for its time."""
        self._bell.ring()

    async def viewing(self, lease_id: str) -> LiveViewing | None:
        """The viewing as it is now; None when it is not valid. Unavailable when that can't be asked."""
        fresh: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(fresh)
        self.soon()
        await fresh
        return self._streams.viewing(lease_id)

    async def run(self) -> None:
        """Syncs until cancelled."""
        try:
            while True:
                await self._once()
                await self._pause(BUSY_SEC if self._streams.is_busy else IDLE_SEC)
        finally:
            self._answer(self._taken(), Unavailable("the streamer stops"))

    async def stop(self) -> None:
        """Tells that there is no streamer here any more, if that can be told."""
        try:
            await self._desk.sync(self._sync(None, is_stopping=True))
        except CamError as error:
            log.warning("the end of the streamer could not be told", cause=error.message)

    async def _once(self) -> None:
        waiting = self._taken()
        load = await self._due_load()
        try:
            answer = await self._desk.sync(self._sync(load))
        except BadInput:
            raise
        except CamError as error:
            log.warning("viewings can't be asked for", code=error.code, cause=error.message)
            self._ready.clear(READY_NAME, f"viewings can't be asked for: {error.message}")
            self._answer(waiting, Unavailable("viewings can't be asked for now; try again"))
            return
        if load is not None:
            self._load_boot_ms = self._clock.boot_ms()
        self._streams.synced(answer)
        self._ready.set(READY_NAME)
        self._answer(waiting, None)

    def _sync(self, load: Load | None, is_stopping: bool = False) -> Sync:
        me = self._me
        return Sync(
            streamer_id=me.streamer_id,
            public_url=me.public_url,
            port=me.port,
            feed_url=me.feed_url,
            total_units=me.total_units,
            load=load,
            asked=self._streams.asked(),
            watched=self._streams.wishes(),
            unplayable=() if is_stopping else self._streams.unplayable(),
            is_stopping=is_stopping,
        )

    async def _due_load(self) -> Load | None:
        boot_ms = self._clock.boot_ms()
        if self._load_boot_ms is not None and boot_ms - self._load_boot_ms < LOAD_EVERY_MS:
            return None
        return await asyncio.to_thread(self._load)

    async def _pause(self, seconds: float) -> None:
        if await self._bell.wait(self._clock, seconds):
            await asyncio.sleep(GATHER_SEC)

    def _taken(self) -> "list[asyncio.Future[None]]":
        waiting, self._waiting = self._waiting, []
        return waiting

    @staticmethod
    def _answer(waiting: "list[asyncio.Future[None]]", error: CamError | None) -> None:
        for one in waiting:
            if one.done():
                continue
            if error is None:
                one.set_result(None)
            else:
                one.set_exception(error)
