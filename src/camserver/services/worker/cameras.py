"""The cameras this worker holds: begun by START, kept by renewals, let go by STOP or when the server says lost.

A camera whose hold ran out stays in the table without looking: nobody may have taken it, and then a renewal brings
it back at the same generation (decision 36). Letting go is break-before-make: no more looks, flush, then the report
that gives the lease back (decision 38).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from camserver.base.log import bind_ids, get_logger
from camserver.base.secrets import Secret
from camserver.media.rtsp_address import Login
from camserver.media.sources import Source, SourceWanted, open_source
from camserver.services.worker.camera import Camera, Surroundings
from camserver.services.worker.doors import Doors, place_of
from camserver.services.worker.hold import Hold
from camserver.services.worker.streams import Stream, StreamName, Streams
from camserver.services.worker.waiting import end, within
from camserver.wire import worker as wire
from camserver.wire.worker import CameraVerdict, Held, Kinds, LookParams, Start

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
        self._starting: set[str] = set()
        # Cameras that are not ours any more and take their time to let go.
        self._ending: dict[str, asyncio.Future[Any]] = {}
        self.doors = Doors(given.clock, given.looks)

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

    def lost(self, lease: Held, reason: str) -> None:
        """The lease is not ours: no more looks. What was captured under it stays in the spool.

        It is not waited for: a camera that hangs must not delay the renewal of the others.
        """
        held = self._held.get(lease.camera_id)
        if held is not None and held.hold.generation == lease.generation:
            log.warning("lease lost", camera_id=lease.camera_id, generation=lease.generation, reason=reason)
            self._end(held)

    async def start(self, start: Start) -> str | None:
        """Begins a camera; None, or why it is refused. A START that was followed already changes nothing.

        BadInput when no worker could follow it.
        """
        held = self._held.get(start.camera_id)
        if held is not None and held.hold.generation > start.generation:
            return f"generation {start.generation} is over: {held.hold.generation} is held"
        same = held is not None and held.hold.generation == start.generation
        if held is not None and same and _says_the_same(held.camera.start, start):
            # The report may have been lost, or else the server would not ask again.
            if held.camera.is_going:
                held.camera.report_ready()
            return None
        if held is None and len(self._starting | self._held.keys()) >= self._slots:
            return f"all {self._slots} slots are in use"
        streams = self._streams(start)
        hold = Hold(start.camera_id, start.generation, self._given.clock)
        if held is not None:
            start = _going_on(held.camera, start)
            self._end(held)
            hold = held.hold if same else hold
        self._starting.add(start.camera_id)
        try:
            if (ending := self._ending.get(start.camera_id)) is not None:
                await asyncio.wait({ending})
        except asyncio.CancelledError:
            await streams.close()
            raise
        finally:
            self._starting.discard(start.camera_id)
        self._begin(start, streams, hold)
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
        for held in list(self._held.values()):
            self._end(held)
        await asyncio.gather(*self._ending.values(), return_exceptions=True)

    def camera(self, camera_id: str, generation: int | None) -> Camera | None:
        """The camera, when it is held and not being let go."""
        held = self._held.get(camera_id)
        if held is None or held.releasing is not None:
            return None
        return held.camera if generation is None or held.hold.generation == generation else None

    def _streams(self, start: Start) -> Streams:
        """The streams of a camera, not connected yet. BadInput when an address makes no sense."""
        given, params = self._given, start.params
        sources = {
            name: self._open_camera(_wanted(source, params, given), given.clock.boot_ms)
            for name, source in (("main", start.source), ("sub", start.sub))
            if source is not None
        }

        def stream(name: StreamName, source: wire.Source) -> Stream:
            # A webcam can be opened once.
            streams_max = 1 if source.type == "webcam" else params.streams_max
            door = self.doors.door(place_of(source.type, source.url, params.device), streams_max)
            return Stream(name, sources[name], door, given.clock, params.connect_timeout_sec)

        sub = start.sub
        one_login = sub is None or (sub.user, sub.password) == (start.source.user, start.source.password)
        return Streams(
            stream("main", start.source),
            None if sub is None else stream("sub", sub),
            one_login,
            given.clock,
            given.leases,
            given.jitter,
        )

    def _begin(self, start: Start, streams: Streams, hold: Hold) -> None:
        camera = Camera(start, streams, hold, self._given)
        with bind_ids(camera_id=start.camera_id, generation=start.generation, intent_id=start.intent_id):
            running = asyncio.ensure_future(camera.run())
        held = self._held[start.camera_id] = HeldCamera(hold, camera, running)
        running.add_done_callback(lambda task: self._ended(held, task))

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
        self._report_stopped(camera_id, generation, reason, held.camera.gate_state())

    def _end(self, held: HeldCamera) -> None:
        """No more looks from now on; it is gone when what is in `_ending` is done."""
        camera_id = held.hold.camera_id
        if self._held.get(camera_id) is held:
            del self._held[camera_id]
        tasks = [task for task in (held.releasing, held.running) if task is not None]
        for task in tasks:
            task.cancel()
        earlier = [self._ending[camera_id]] if camera_id in self._ending else []
        ending = self._ending[camera_id] = asyncio.gather(*tasks, *earlier, return_exceptions=True)
        ending.add_done_callback(lambda done: self._has_ended(camera_id, done))

    def _has_ended(self, camera_id: str, ending: "asyncio.Future[Any]") -> None:
        if self._ending.get(camera_id) is ending:
            del self._ending[camera_id]

    def _report_stopped(self, camera_id: str, generation: int, reason: str, gate_state: str | None = None) -> None:
        """What the gate learned goes along, so that the camera's next holder need not learn it again."""
        left = self._given.spool.count_of(camera_id, generation)
        log.info("pipeline_stopped", camera_id=camera_id, generation=generation, reason=reason, left=left)
        learned = {} if gate_state is None else {"gate_state": gate_state}
        self._given.reports.add(Kinds.PIPELINE_STOPPED, camera_id, generation, left=left, reason=reason, **learned)

    def _ended(self, held: HeldCamera, running: "asyncio.Task[None]") -> None:
        """A camera whose task crashed is begun anew, after the pause of a failure: its lease is renewed meanwhile."""
        if running.cancelled() or (error := running.exception()) is None:
            return
        camera_id = held.hold.camera_id
        log.error("camera task crashed", exc_info=error, camera_id=camera_id, generation=held.hold.generation)
        if self._held.get(camera_id) is not held or held.releasing is not None:
            return
        # Should that go wrong as well, its lease runs out.
        del self._held[camera_id]
        start = _going_on(held.camera, held.camera.crashed())
        self._begin(start, self._streams(start), held.hold)


def _wanted(source: wire.Source, params: LookParams, given: Surroundings) -> SourceWanted:
    login = None
    if source.user is not None or source.password is not None:
        login = Login(source.user or "", source.password or Secret(""))
    return SourceWanted(
        source.type,
        source.url,
        login,
        interval_ms=round(params.polling_interval_sec * 1000),
        connect_timeout_sec=params.connect_timeout_sec,
        transport=params.transport,
        tls_pin=params.tls_pin,
        addresses=given.addresses,
        with_sound=given.live_sound and params.live_sound,
    )


def _going_on(old: Camera, new: Start) -> Start:
    """A START for a camera that is held: what its gate learned since stays, and a new password is tried at once."""
    changes: dict[str, object] = {}
    learned = old.gate_state()
    if learned is not None and old.start.params.rotation == new.params.rotation:
        changes["gate_state"] = learned
    if old.start.credential_version != new.credential_version:
        changes |= {"next_attempt_at": None, "auth_failures": 0}
    return new.model_copy(update=changes)


def _says_the_same(old: Start, new: Start) -> bool:
    """Whether two STARTs of one generation ask for the same; the rest of them is bookkeeping."""
    asked = [(one.source, one.sub, one.params, one.credential_version) for one in (old, new)]
    return asked[0] == asked[1]
