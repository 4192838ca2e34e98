"""What the server asks for: START, STOP and the other intents, each answered with an ACK, however often it comes."""

import asyncio

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import bind_ids, get_logger
from camserver.domain.workers import WorkerState
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.live import Lives
from camserver.services.worker.spool import Spool
from camserver.services.worker.states import States
from camserver.services.worker.waiting import end, within
from camserver.wire.worker import Ack, Drain, LiveStart, LiveStop, Reload, Start, Stop

log = get_logger(__name__)

# A drained worker goes away, perhaps with its disk: it gets more time than a handover.
DRAIN_FLUSH_SEC = 60.0

Intent = Start | Stop | Reload | Drain | LiveStart | LiveStop


class Intents:
    def __init__(self, cameras: Cameras, spool: Spool, states: States, clock: Clock, lives: Lives) -> None:
        self._cameras = cameras
        self._lives = lives
        self._spool = spool
        self._states = states
        self._clock = clock
        self._draining: asyncio.Task[None] | None = None
        self.drained = asyncio.Event()

    async def follow(self, intent: Intent) -> Ack:
        if isinstance(intent, Start):
            return await self._start(intent)
        if isinstance(intent, Stop):
            with bind_ids(intent_id=intent.intent_id):
                self._cameras.stop(intent.camera_id, intent.generation, intent.reason)
        elif isinstance(intent, Drain):
            return self._drain(intent)
        elif isinstance(intent, LiveStart):
            return self._lives.start(intent)
        elif isinstance(intent, LiveStop):
            return self._lives.stop(intent)
        # RELOAD: settings are read at start and cameras come with their own, so there is nothing to read again.
        return Ack(intent_id=intent.intent_id, status="ok")

    async def close(self) -> None:
        if self._draining is not None:
            await end(self._draining)

    async def _start(self, start: Start) -> Ack:
        with bind_ids(camera_id=start.camera_id, generation=start.generation, intent_id=start.intent_id):
            log.info("on_assign", source=start.source.type, model_ver=start.model_ver)
            # A camera that is let go right now moves the worker to IDLE when it is gone.
            self._states.follow(len(self._cameras))
            if self._states.state not in (WorkerState.IDLE, WorkerState.RUNNING):
                state = self._states.state
                self._states.move(WorkerState.RUNNING)  # refused, and so reported
                return self._refuse(start, f"the worker is {state}")
            try:
                cause = await self._cameras.start(start)
            except BadInput as error:
                log.error("START can't be followed", cause=error.message)
                return Ack(intent_id=start.intent_id, status="failed", details=error.message[:255])
            self._states.follow(len(self._cameras))
            return self._refuse(start, cause) if cause else Ack(intent_id=start.intent_id, status="ok")

    def _refuse(self, start: Start, cause: str) -> Ack:
        """Another worker may well do it: this one is leaving, or full."""
        log.warning("START refused", cause=cause)
        return Ack(intent_id=start.intent_id, status="refused", details=cause[:255])

    def _drain(self, drain: Drain) -> Ack:
        if self._draining is None:
            if not self._states.move(WorkerState.DRAINING):
                return Ack(intent_id=drain.intent_id, status="refused", details=f"the worker is {self._states.state}")
            self._draining = asyncio.ensure_future(self._empty_out())
        return Ack(intent_id=drain.intent_id, status="ok")

    async def _empty_out(self) -> None:
        """Lets every camera go, sends what is spooled, and ends as STOPPED."""
        await self._cameras.stop_all("drain")
        try:
            await within(self._clock, DRAIN_FLUSH_SEC, self._spool.until_empty())
        except TimeoutError:
            log.error("drained, but not everything was sent; it stays in the spool", looks=self._spool.looks)
        self._states.move(WorkerState.STOPPED)
        self.drained.set()
