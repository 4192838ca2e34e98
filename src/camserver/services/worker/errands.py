"""Errands: short tasks the server asks for beside the cameras' own work, each answered once by an upload.

A few run at once, some more wait, the rest is refused at once with a clear message. Clips, which mostly wait for time
to pass, have a lane of their own and keep nobody else from going on. Nothing is done or sent any longer when an
errand's time is over: nobody waits for it. Answers that can't be made again (KEPT) go to disk first.
What an errand does is its handler's business, one module a kind: errand_probe.py, errand_look.py and so on.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from pydantic import JsonValue

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError
from camserver.base.log import get_logger
from camserver.domain.jobs import backoff_ms
from camserver.services.worker.errand_files import AnswerName, ErrandFiles
from camserver.services.worker.upload_client import Away, Stuck, UploadClient
from camserver.services.worker.waiting import end, within
from camserver.wire.errands import ErrandHeader, ErrandRefused, ObjectType, pack
from camserver.wire.worker import Errand

log = get_logger(__name__)

AT_ONCE = 2
WAITING_MAX = 16
CLIPS_AT_ONCE = 32
CLIPS_WAITING_MAX = 32
# Refusals on their way to the server; beyond that errands are not even refused, until they come again.
REFUSING_MAX = 32
# Ids remembered, so that an errand that comes again is not done again.
REMEMBERED_MAX = 256
RETRY_BASE_SEC = 0.5
RETRY_CAP_SEC = 10.0
T = TypeVar("T")
# Kinds whose answer can't be made a second time.
KEPT = frozenset({"clip"})
# In the result of one that was refused, for whoever reads reasons (domain.clips.NoClip).
BUSY = "busy"


@dataclass(frozen=True, slots=True)
class ErrandDone:
    """What came of an errand. `message` is for people: what is wrong, or what was found."""

    ok: bool
    message: str = ""
    result: Mapping[str, JsonValue] = field(default_factory=dict)
    content_type: ObjectType = ""
    body: bytes = b""


Handler: TypeAlias = Callable[[Errand], Awaitable[ErrandDone]]


class _Lane:
    """Errands that share their places."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        self.places = asyncio.Semaphore(at_once)
        self.accepted: set[asyncio.Task[None]] = set()
        self._accepted_max = at_once + waiting_max

    @property
    def is_full(self) -> bool:
        return len(self.accepted) >= self._accepted_max


class Errands:
    def __init__(
        self,
        handlers: Mapping[str, Handler],
        client: UploadClient,
        files: ErrandFiles,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._handlers = handlers
        self._client = client
        self._files = files
        self._clock = clock
        self._jitter = jitter
        self._usual = _Lane(AT_ONCE, WAITING_MAX)
        self._clips = _Lane(CLIPS_AT_ONCE, CLIPS_WAITING_MAX)
        # One at a time: looks go first on a thin line.
        self._sending = asyncio.Semaphore(1)
        # Bounded by the files there may be.
        self._left_over: set[asyncio.Task[None]] = set()
        self._refusing: set[asyncio.Task[None]] = set()
        self._known: OrderedDict[str, None] = OrderedDict()
        self.done = 0
        self.refused = 0

    async def open(self) -> None:
        """Goes on with the answers that a process before made and could not send."""
        for name in await asyncio.to_thread(self._files.open):
            self._remember(name.errand_id)
            self._begin(self._left_over, self._send_kept(name))

    def take(self, errand: Errand) -> None:
        """Begins an errand, or refuses it. One that came before is under way or done."""
        if errand.errand_id in self._known:
            return
        self._remember(errand.errand_id)
        log.info("errand", errand_id=errand.errand_id, kind=errand.kind, camera_id=errand.camera_id)
        deadline_boot_ms = self._clock.boot_ms() + errand.left_ms
        lane = self._lane(errand.kind)
        if not lane.is_full:
            self._begin(lane.accepted, self._do(errand, deadline_boot_ms))
            return
        self.refused += 1
        waiting = len(lane.accepted)
        busy = ErrandDone(False, "the worker is busy with other errands; try again later", {"reason": BUSY})
        log.warning("errand refused", errand_id=errand.errand_id, kind=errand.kind, waiting=waiting)
        if len(self._refusing) < REFUSING_MAX:
            self._begin(self._refusing, self._refuse(errand, busy, deadline_boot_ms))
        else:
            del self._known[errand.errand_id]

    async def close(self) -> None:
        """Ends everything; what is on disk is sent after the next start."""
        await end(*self._usual.accepted, *self._clips.accepted, *self._left_over, *self._refusing)

    def _lane(self, kind: str) -> _Lane:
        return self._clips if kind == "clip" else self._usual

    def _remember(self, errand_id: str) -> None:
        self._known[errand_id] = None
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    def _begin(self, group: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        group.add(task)
        task.add_done_callback(group.discard)
        task.add_done_callback(_log_crash)

    async def _do(self, errand: Errand, deadline_boot_ms: int) -> None:
        made = await self._within(errand.errand_id, deadline_boot_ms, self._make(errand, deadline_boot_ms))
        if made is not None:
            await self._send(errand.errand_id, made, deadline_boot_ms)

    async def _make(self, errand: Errand, deadline_boot_ms: int) -> "AnswerName | bytes":
        """Does the errand. Where its answer lies on disk, or else the answer itself."""
        done = await self._handle(errand)
        self.done += 1
        body = _sendable(errand, done)
        if errand.kind in KEPT and done.body:
            name = AnswerName(self._clock.now_ms() + deadline_boot_ms - self._clock.boot_ms(), errand.errand_id)
            if await self._keep(name, body):
                return name
        return body

    async def _handle(self, errand: Errand) -> ErrandDone:
        async with self._lane(errand.kind).places:
            handler = self._handlers.get(errand.kind)
            if handler is None:
                log.error("an errand of an unknown kind", errand_id=errand.errand_id, kind=errand.kind)
                return ErrandDone(False, "this worker does not know how to do that; install a newer version")
            try:
                return await handler(errand)
            except CamError as error:
                return ErrandDone(False, error.message)
            except Exception:
                log.exception("errand failed", kind=errand.kind, camera_id=errand.camera_id)
                return ErrandDone(False, "the worker failed at it; its log says why")

    async def _refuse(self, errand: Errand, done: ErrandDone, deadline_boot_ms: int) -> None:
        await self._send(errand.errand_id, _packed(errand.errand_id, done), deadline_boot_ms)

    async def _send(self, errand_id: str, made: "AnswerName | bytes", deadline_boot_ms: int) -> None:
        if isinstance(made, AnswerName):
            await self._send_kept(made)
            return

        async def load() -> bytes:
            return made

        await self._within(errand_id, deadline_boot_ms, self._send_until_taken(errand_id, load))

    async def _keep(self, name: AnswerName, body: bytes) -> bool:
        try:
            await asyncio.to_thread(self._files.write, name, body)
        except OSError as error:
            log.error("an answer can't be kept on disk and is sent from memory", cause=str(error))
            return False
        return True

    async def _send_kept(self, name: AnswerName) -> None:
        async def load() -> bytes | None:
            return await asyncio.to_thread(self._files.read, name)

        deadline_boot_ms = self._clock.boot_ms() + name.expires_at - self._clock.now_ms()
        await self._within(name.errand_id, deadline_boot_ms, self._send_until_taken(name.errand_id, load))
        await asyncio.to_thread(self._files.remove, name)

    async def _send_until_taken(self, errand_id: str, load: Callable[[], Awaitable[bytes | None]]) -> None:
        """`load` is called when it is this answer's turn: of many that wait on disk only one is in memory."""
        attempt = 0
        while True:
            async with self._sending:
                body = await load()
                if body is None:
                    return
                outcome = await self._client.answer(body)
                del body
            if isinstance(outcome, ErrandRefused):
                log.warning("the answer to an errand was refused", errand_id=errand_id, reason=outcome.reason)
            if not isinstance(outcome, Away | Stuck):
                return
            attempt += 1
            pause_ms = backoff_ms(attempt, self._jitter(), RETRY_BASE_SEC, RETRY_CAP_SEC)
            pause_ms = max(pause_ms, round(outcome.retry_after_sec * 1000) if isinstance(outcome, Away) else 0)
            log.warning("the answer to an errand waits", errand_id=errand_id, cause=outcome.reason, pause_ms=pause_ms)
            await self._clock.sleep(pause_ms / 1000)

    async def _within(self, errand_id: str, deadline_boot_ms: int, work: Coroutine[Any, Any, T]) -> T | None:
        """None when the errand's time was over first."""
        left_ms = deadline_boot_ms - self._clock.boot_ms()
        try:
            if left_ms > 0:
                return await within(self._clock, left_ms / 1000, work)
            work.close()
        except TimeoutError:
            pass
        log.warning("an errand's time was over before it was done", errand_id=errand_id)
        return None


def _sendable(errand: Errand, done: ErrandDone) -> bytes:
    try:
        return _packed(errand.errand_id, done)
    except (BadInput, ValueError) as error:
        log.error("the answer to an errand can't be sent", kind=errand.kind, cause=str(error))
        return _packed(errand.errand_id, ErrandDone(False, "the answer is too large to be sent"))


def _packed(errand_id: str, done: ErrandDone) -> bytes:
    header = ErrandHeader(
        errand_id=errand_id,
        ok=done.ok,
        message=done.message[:255],
        result=dict(done.result),
        content_type=done.content_type,
        bytes=len(done.body),
    )
    return pack(header, done.body)


def _log_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("an errand crashed", exc_info=error)
