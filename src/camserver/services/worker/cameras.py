"""The cameras this worker holds: begun by START, kept by renewals, let go by STOP or when the server says lost.

A camera whose hold ran out stays in the table without looking: nobody may have taken it, and then a renewal brings
it back at the same generation (decision 36). Letting go is break-before-make: no more looks, flush, then the report
that gives the lease back (decision 38).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from camserver.base.errors import BadInput
from camserver.base.log import bind_ids, get_logger
from camserver.base.secrets import Secret
from camserver.media.rtsp_address import Login
from camserver.media.sources import Source, SourceWanted, open_source
from camserver.services.worker.camera import Camera, Surroundings
from camserver.services.worker.hold import Hold
from camserver.services.worker.waiting import end, within
from camserver.wire.worker import CameraVerdict, Held, Kinds, Start

log = get_logger(__name__)

# A handover may leave a gap of 5 s; what is not flushed by then follows as late looks.
FLUSH_SEC = 3.0


@dataclass(slots=True)
class HeldCamera:
    hold: Hold
    camera: Camera
    running: asyncio.Task[None]
    releasing: asyncio.Task[None] | None = None


class Cameras:
    def __init__(
        self,
        given: Surroundings,
        slots: int,
        open_camera: Callable[[SourceWanted, Callable[[], int]], Source] = open_source,
    ) -> None:
        self._given = given
        self._slots = slots
        self._open_camera = open_camera
        self._held: dict[str, HeldCamera] = {}

    def __len__(self) -> int:
        return len(self._held)

    def renewals(self) -> tuple[Held, ...]:
        """Every lease to renew, also those that ran out."""
        return tuple(
            Held(camera_id=camera_id, generation=held.hold.generation) for camera_id, held in self._held.items()
        )

    def renewed(self, lease: Held, deadline_boot_ms: int) -> None:
        held = self._held.get(lease.camera_id)
        if held is not None and held.hold.generation == lease.generation:
            held.hold.renew(deadline_boot_ms)

    def hear(self, verdicts: Iterable[CameraVerdict]) -> None:
        """What the analyzer said lately; the gates stay awake where something was."""
        for verdict in verdicts:
            held = self._held.get(verdict.camera_id)
            if held is not None:
                held.camera.hear(verdict.captured_at, verdict.detected)

    def report_ready_again(self) -> None:
        """For every camera that is going: an earlier report may have been lost on its way."""
        for held in self._held.values():
            if held.camera.is_going and held.releasing is None:
                held.camera.report_ready()

    async def lost(self, lease: Held, reason: str) -> None:
        """The lease is not ours: no more looks. What was captured under it stays in the spool."""
        held = self._held.get(lease.camera_id)
        if held is not None and held.hold.generation == lease.generation:
            log.warning("lease lost", camera_id=lease.camera_id, generation=lease.generation, reason=reason)
            await self._drop(held)

    async def start(self, start: Start) -> str | None:
        """Begins a camera; None, or why not. A START that was followed already changes nothing."""
        held = self._held.get(start.camera_id)
        if held is not None and held.hold.generation > start.generation:
            return f"generation {start.generation} is over: {held.hold.generation} is held"
        same = held is not None and held.hold.generation == start.generation
        if held is not None and same and _says_the_same(held.camera.start, start):
            # The report may have been lost, or else the server would not ask again.
            if held.camera.is_going:
                held.camera.report_ready()
            return None
        if held is None and len(self._held) >= self._slots:
            return f"all {self._slots} slots are in use"
        try:
            source = self._open_camera(_wanted(start), self._given.clock.boot_ms)
        except BadInput as error:
            return error.message
        hold = Hold(start.camera_id, start.generation, self._given.clock)
        if held is not None:
            await self._drop(held)
            hold = held.hold if same else hold
        self._begin(start, source, hold)
        return None

    def stop(self, camera_id: str, generation: int, reason: str) -> None:
        """Begins to let a camera go. One that is not held was let go before: that is reported again."""
        held = self._held.get(camera_id)
        if held is None or held.hold.generation != generation:
            self._report_stopped(camera_id, generation, reason)
        elif held.releasing is None:
            held.releasing = asyncio.ensure_future(self._release(held, reason))

    async def stop_all(self, reason: str) -> None:
        """Lets all cameras go and waits for it."""
        for camera_id, held in list(self._held.items()):
            self.stop(camera_id, held.hold.generation, reason)
        releasing = [held.releasing for held in self._held.values() if held.releasing is not None]
        await asyncio.gather(*releasing, return_exceptions=True)

    async def close(self) -> None:
        """Ends every task at once; leases are left to run out."""
        # Together: a camera that hangs takes its time, and there may be many.
        await asyncio.gather(*(self._drop(held) for held in list(self._held.values())))

    def _begin(self, start: Start, source: Source, hold: Hold) -> None:
        camera = Camera(start, source, hold, self._given)
        with bind_ids(camera_id=start.camera_id, generation=start.generation):
            running = asyncio.ensure_future(camera.run())
        self._held[start.camera_id] = HeldCamera(hold, camera, running)
        running.add_done_callback(self._report_crash)

    async def _release(self, held: HeldCamera, reason: str) -> None:
        camera_id, generation = held.hold.camera_id, held.hold.generation
        await end(held.running)
        spool = self._given.spool
        try:
            await within(self._given.clock, FLUSH_SEC, spool.until_sent(camera_id, generation))
        except TimeoutError:
            log.warning("camera let go before everything was sent; the rest follows", camera_id=camera_id)
        if self._held.get(camera_id) is held:
            del self._held[camera_id]
        self._report_stopped(camera_id, generation, reason)

    async def _drop(self, held: HeldCamera) -> None:
        if self._held.get(held.hold.camera_id) is held:
            del self._held[held.hold.camera_id]
        await end(*(task for task in (held.releasing, held.running) if task is not None))

    def _report_stopped(self, camera_id: str, generation: int, reason: str) -> None:
        left = self._given.spool.count_of(camera_id, generation)
        log.info("pipeline_stopped", camera_id=camera_id, generation=generation, reason=reason, left=left)
        self._given.reports.add(Kinds.PIPELINE_STOPPED, camera_id, generation, left=left, reason=reason)

    @staticmethod
    def _report_crash(running: "asyncio.Task[None]") -> None:
        if not running.cancelled() and (error := running.exception()) is not None:
            log.error("camera task crashed; its lease runs out", exc_info=error)


def _wanted(start: Start) -> SourceWanted:
    source = start.source
    login = None
    if source.user is not None or source.password is not None:
        login = Login(source.user or "", source.password or Secret(""))
    return SourceWanted(
        source.type,
        source.url,
        login,
        interval_ms=round(start.params.polling_interval_sec * 1000),
        connect_timeout_sec=start.params.connect_timeout_sec,
    )


def _says_the_same(old: Start, new: Start) -> bool:
    """Whether two STARTs of one generation ask for the same; the rest of them is bookkeeping."""
    return (old.source, old.params, old.credential_version) == (new.source, new.params, new.credential_version)
