"""One camera: looks when it is due or asked, judges, keeps the look, and reports what became of the camera.

Runs as one task, so looks never overlap; the grid of `domain.looks` keeps them from drifting. A look that failed is
tried again after a growing pause, and a connection that is kept open is watched between looks. Nothing is captured
without a hold that covers the moment of the capture. Every try leaves a look: ok, timeout or error.
"""

import asyncio
import base64
import zlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.gate import Verdict
from camserver.domain.leases import Fault
from camserver.domain.looks import is_held, next_due_ms
from camserver.domain.phrases import WATCHED_LIVE
from camserver.media.packets import Miss
from camserver.media.ring import Ring
from camserver.media.rtsp_source import RtspSource
from camserver.services.worker.back_off import BackOff
from camserver.services.worker.darkroom import Darkroom, Full, Print
from camserver.services.worker.gating import Gate
from camserver.services.worker.hold import Hold
from camserver.services.worker.look_headers import LookHeaders
from camserver.services.worker.streams import Caught, Stream, StreamName, Streams, Wanted
from camserver.services.worker.surroundings import LookCounts as LookCounts
from camserver.services.worker.surroundings import Surroundings as Surroundings
from camserver.wire.looks import LookUpload
from camserver.wire.worker import Kinds, Start

log = get_logger(__name__)

# The gate's state goes along with every so many looks (decision 8).
GATE_STATE_EVERY = 20
# How often the connection of a watched camera is seen to; no sooner it is opened anew either.
WATCH_CHECK_MS = 5_000


LET_GO = "the camera was let go before it was looked at"


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a look that somebody asked for."""

    message: str = ""  # why there is no picture
    jpeg: bytes = b""
    size: tuple[int, int] = (0, 0)
    captured_at: int = 0
    seq: int = 0


class Camera:
    def __init__(self, start: Start, streams: Streams, hold: Hold, given: Surroundings) -> None:
        self.start = start
        self._params = start.params
        self._streams = streams
        streams.report = self._report_stream
        self._hold = hold
        self._given = given
        self._clock = given.clock
        self._gate = Gate(given.gate, start.params, start.gate_state)
        self._darkroom = Darkroom(start.params, self._gate, given.pictures)
        self._interval_ms = max(round(start.params.polling_interval_sec * 1000), 1)
        next_seq = max(start.next_seq, given.spool.highest_seq(start.camera_id, start.generation) + 1)
        self._headers = LookHeaders(start, next_seq, given.boot_id, given.clock)
        self._back_off = BackOff(start, given)
        self._due_ms = 0  # the first look is due at once: it shows that the camera is going
        self._due_boot_ms = 0
        self._reported_ready = False
        self._looks_ok = 0
        self._asked: list[asyncio.Future[Looked]] = []
        self.over = asyncio.Event()  # set when it is let go
        self._watched_until_boot_ms = 0
        self._check_boot_ms = 0
        self.ring = self._new_ring()
        self._moments = given.traces.begin()  # of the look under way

    @property
    def gate(self) -> Gate:
        """For whoever asks why a look passed."""
        return self._gate

    @property
    def is_going(self) -> bool:
        """Whether its last look was good."""
        return self._reported_ready

    @property
    def hold(self) -> Hold:
        return self._hold

    @property
    def is_locked_out(self) -> bool:
        """Whether the camera refused user or password so lately that another try could do harm."""
        return self._back_off.is_locked_out

    def live_failed(self, miss: Miss) -> None:
        """Somebody who watches got no connection. A refused password counts, whoever tried it."""
        if miss.fault is Fault.UNAUTHORIZED:
            self._back_off.failed(miss)
            self._plan()

    def stream(self, name: StreamName) -> Stream:
        """The stream of that name; the main one where the camera has no other."""
        return self._streams.sub if name == "sub" and self._streams.sub is not None else self._streams.main

    @property
    def video(self) -> RtspSource | None:
        """The main stream, for whoever else wants its packets; None when it is no video."""
        return self._streams.main.video

    def _new_ring(self) -> Ring | None:
        """What clips are cut from: the last seconds of the stream that is held for looks."""
        video = (self._streams.sub or self._streams.main).video
        if self._given.rings is None or video is None or not self._params.clip_sec or self._params.do_not_process:
            return None
        ring = self._given.rings.new()
        video.accompany(ring)
        return ring

    async def run(self) -> None:
        """Looks until cancelled."""
        log.info("pipeline_boot", source=self.start.source.type, next_seq=self._headers.next_seq)
        try:
            if self._params.do_not_process:
                # Not even opened: nothing of such a camera is captured, kept or sent.
                self.report_ready()
                await asyncio.Event().wait()
            self._plan()
            while True:
                await self._hold.until_covered()
                if await self._hold.sleep_until(self._wake_boot_ms):
                    await self._act()
                elif not self._hold.is_covered:
                    log.warning("lease ran out: no look until it is renewed")
                    await self._streams.rest()
        finally:
            self.over.set()
            self._answer(self._take_asked(), Looked(LET_GO))
            await self._streams.close()

    def report_ready(self) -> None:
        """Tells that the camera is going; telling it again does no harm."""
        self._reported_ready = True
        start = self.start
        ids = {"camera_id": start.camera_id, "generation": start.generation, "intent_id": start.intent_id}
        log.info("pipeline_ready", **ids)
        self._given.reports.add(Kinds.PIPELINE_READY, start.camera_id, start.generation, intent_id=start.intent_id)

    def crashed(self) -> Start:
        """Reports that its task crashed; the START by which it is begun anew, after a pause."""
        self._back_off.failed(
            Miss(Fault.CRASH, "the worker's task for the camera crashed; the worker's log says where")
        )
        update = {**self._back_off.carried(), "next_seq": self._headers.next_seq}
        return self.start.model_copy(update=update)

    def hear(self, captured_at: int, detected: bool) -> None:
        """What the analyzer said about an earlier look."""
        self._gate.hear(captured_at, detected)

    def gate_state(self) -> str | None:
        """What the gate learned, as it travels."""
        state = self._gate.state()
        return None if state is None else base64.b64encode(state).decode()

    def watch(self, until_boot_ms: int) -> None:
        """Somebody is watching until then: the camera stays connected."""
        if not self._watched_until_boot_ms:
            self._check_boot_ms = 0
        self._watched_until_boot_ms = max(self._watched_until_boot_ms, until_boot_ms)
        self._streams.watch(True)
        self._hold.poke()

    async def look_now(self) -> Looked:
        """A look outside the grid, as soon as one under way is over. May be cancelled."""
        if self._params.do_not_process:
            return Looked("the camera is not to be processed, so it is not looked at")
        if self.over.is_set():
            return Looked(LET_GO)
        if self._back_off.is_locked_out:
            return Looked("the camera refused user or password; it is not tried again so soon, lest it lock them out")
        asked: asyncio.Future[Looked] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self._hold.poke()
        try:
            return await asked
        finally:
            if asked in self._asked:
                self._asked.remove(asked)

    # -----------------------------------------------------------------------------------------------------------
    # When
    # -----------------------------------------------------------------------------------------------------------

    def _wake_boot_ms(self) -> int:
        """When there is something to do next."""
        if self._asked:
            return 0
        wake_boot_ms = self._due_boot_ms
        if (stall_boot_ms := self._stall_boot_ms()) is not None:
            wake_boot_ms = min(wake_boot_ms, stall_boot_ms)
        if self._watched_until_boot_ms:
            wake_boot_ms = min(wake_boot_ms, self._watched_until_boot_ms, self._check_boot_ms)
        return wake_boot_ms

    async def _act(self) -> None:
        self._moments = self._given.traces.begin()
        now_boot_ms = self._clock.boot_ms()
        stall_boot_ms = self._stall_boot_ms()
        asked = self._take_asked()
        if now_boot_ms >= self._watched_until_boot_ms > 0:
            self._watched_until_boot_ms = 0
            self._streams.watch(False)
        is_due = now_boot_ms >= self._due_boot_ms
        if asked or is_due or self._is_missed_by_watcher:
            try:
                self._answer(asked, await self._guarded(self._look(is_asked=bool(asked))))
            finally:
                # Cancelled in the middle of it: nobody is left waiting.
                self._answer(asked, Looked(LET_GO))
            if is_due:
                self._due_ms = self._next_due_ms()
            self._plan()
        elif stall_boot_ms is not None and now_boot_ms >= stall_boot_ms:
            self._streams.let_go()
            silence_sec = self._given.looks.down_after_silence_sec
            text = f"the camera sent nothing for {silence_sec} s"
            miss = Miss(Fault.NO_VIDEO, text, timed_out=True, is_stalled=True)
            await self._guarded(self._fail(miss, now_boot_ms))
            self._plan()
        elif not self._holds:
            self._streams.let_go()
        self._check_boot_ms = self._clock.boot_ms() + WATCH_CHECK_MS

    @property
    def _holds(self) -> bool:
        """Whether it stays connected between looks."""
        is_watched = self._watched_until_boot_ms > self._clock.boot_ms()
        first_picture_ms = self._streams.first_picture_ms
        return self._streams.can_be_held and is_held(
            self._interval_ms, first_picture_ms, is_watched, self._given.looks
        )

    @property
    def _is_missed_by_watcher(self) -> bool:
        """Whether somebody watches a camera that is not connected though nothing is known to be wrong with it."""
        return (
            self._watched_until_boot_ms > 0
            and self._streams.can_be_held
            and not self._streams.is_open
            and not self._back_off.next_attempt_at
        )

    def _stall_boot_ms(self) -> int | None:
        """When a connection that is kept open will have been silent for too long."""
        silent_boot_ms = self._streams.silent_since_boot_ms()
        return None if silent_boot_ms is None else silent_boot_ms + self._given.looks.down_after_silence_sec * 1000

    def _plan(self) -> None:
        """Settles when to look next, by the clock that never jumps: a correction of the other must not make it wait.

        After a failure that is when its pause is over, before or after the next moment of the grid.
        """
        pause_ms = (self._back_off.next_attempt_at or self._due_ms) - self._clock.now_ms()
        self._due_boot_ms = self._clock.boot_ms() + max(pause_ms, 0)

    def _next_due_ms(self) -> int:
        """The next moment of the camera's grid.

        A correction of the clock by a few milliseconds backwards must not bring the same moment again, a large
        one must not stop the camera until that time has come.
        """
        now_ms = self._clock.now_ms()
        after_ms = self._due_ms if 0 < self._due_ms - now_ms < self._interval_ms else now_ms
        # The worker knows no camera_key; any number that is always the same for a camera spreads as well.
        return next_due_ms(zlib.crc32(self.start.camera_id.encode()), self._interval_ms, after_ms)

    def _take_asked(self) -> "list[asyncio.Future[Looked]]":
        asked, self._asked = self._asked, []
        return asked

    @staticmethod
    def _answer(asked: "list[asyncio.Future[Looked]]", looked: Looked) -> None:
        for one in asked:
            if not one.done():
                one.set_result(looked)

    # -----------------------------------------------------------------------------------------------------------
    # A look
    # -----------------------------------------------------------------------------------------------------------

    async def _guarded(self, look: Coroutine[Any, Any, Looked]) -> Looked:
        try:
            return await look
        except Exception:
            # One camera's trouble must not take the others down; it is counted against this worker.
            log.exception("look crashed")
        miss = Miss(Fault.CRASH, "the look crashed; the worker's log says where")
        now_boot_ms = self._clock.boot_ms()
        if self._hold.covers(now_boot_ms):
            try:
                return await self._fail(miss, now_boot_ms)
            except Exception:
                log.exception("a look that crashed could not be kept either")
        self._back_off.failed(miss)
        self._reported_ready = False
        return Looked(miss.message)

    async def _look(self, is_asked: bool) -> Looked:
        wanted = Wanted(self._holds, is_asked, is_asked, lambda: self._hold.is_covered)
        caught = await self._streams.look(wanted)
        self._moments.caught()
        while True:
            now_boot_ms = self._clock.boot_ms()
            if not self._hold.covers(now_boot_ms):
                # The process or its machine stood still, or the camera took its time. Somebody else may hold the
                # camera by now, so this is nobody's look.
                self._given.counts.given_up += 1
                log.warning("look given up: the lease ran out while it was made")
                return Looked("the worker lost the camera while it was looking; try again")
            if isinstance(caught, Miss):
                if caught.is_preempted:
                    return self._skip(caught)
                return await self._fail(caught, now_boot_ms)
            boot_ms = now_boot_ms if caught.shot.boot_ms is None else caught.shot.boot_ms
            try:
                made = await self._darkroom.develop(caught.shot, self._headers.now_ms_at(boot_ms))
                self._moments.judged()
                break
            except BadInput as error:
                # The other stream may show it, once.
                caught = await self._streams.undecodable(caught.stream, _unreadable(error), wanted)
        self._streams.decoded(caught.stream, wanted)
        full = None
        if made.verdict is not Verdict.SKIP or is_asked:
            full = await self._full(caught, made, wanted)
        return await self._succeed(made, full, boot_ms)

    async def _full(self, caught: Caught, made: Print, wanted: Wanted) -> Full:
        """The picture to keep: of the main stream where it is another one and can be had."""
        if caught.stream == "sub":
            shot = await self._streams.full(wanted)
            # What was taken after the lease ran out is not ours.
            if shot is not None and self._hold.is_covered:
                try:
                    full = await self._darkroom.full_from(shot)
                    self._streams.full_decoded(None)
                    return full
                except BadInput as error:
                    log.warning("the main stream's picture is unreadable; the other one is kept", cause=error.message)
                    self._streams.full_decoded(_unreadable(error))
        return await self._darkroom.full_of(made.picture)

    async def _succeed(self, made: Print, full: Full | None, boot_ms: int) -> Looked:
        """Keeps a look of the moment `boot_ms`, which is the picture's own."""
        kept = b"" if full is None or made.verdict is Verdict.SKIP else full.jpeg
        self._looks_ok += 1
        gate_state = self.gate_state() if self._looks_ok % GATE_STATE_EVERY == 0 else None
        header = self._headers.ok(made, full, len(kept), boot_ms, gate_state)
        await self._given.spool.add(LookUpload(header, made.developed.infer_jpeg, kept))
        self._given.traces.keep(header, self.start.intent_id, self._moments)
        now_boot_ms = self._clock.boot_ms()
        self._given.counts.kept(now_boot_ms, max(now_boot_ms - boot_ms, 0), made.verdict is not Verdict.SKIP)
        self._back_off.worked()
        if not self._reported_ready:
            self.report_ready()
        if full is None:
            return Looked(captured_at=header.captured_at, seq=header.seq)
        return Looked("", full.jpeg, full.size, header.captured_at, header.seq)

    # -----------------------------------------------------------------------------------------------------------
    # When it fails
    # -----------------------------------------------------------------------------------------------------------

    async def _fail(self, miss: Miss, boot_ms: int) -> Looked:
        """Leaves the failed look and the camera's back-off."""
        header = self._headers.failed(miss, boot_ms)
        self._given.counts.failed += 1
        await self._given.spool.add(LookUpload(header, b"", b""))
        self._given.traces.keep(header, self.start.intent_id, self._moments)
        self._back_off.failed(miss)
        self._reported_ready = False
        return Looked(miss.message, captured_at=header.captured_at, seq=header.seq)

    def _skip(self, miss: Miss) -> Looked:
        """No look this time, through no fault of the camera; the server is told why."""
        self._given.counts.given_up += 1
        log.warning("look left out", cause=miss.message)
        self._streams.preempted(miss)
        return Looked(miss.message)

    def _report_stream(self, name: StreamName, miss: Miss | None) -> None:
        """One of two streams failed, or is back; the camera itself goes on."""
        start = self.start
        if miss is None:
            self._given.reports.add(Kinds.STREAM_READY, start.camera_id, start.generation, stream=name)
            return
        self._given.reports.add(
            Kinds.STREAM_FAULT,
            start.camera_id,
            start.generation,
            stream=name,
            fault=WATCHED_LIVE if miss.is_preempted else miss.fault.value,
            message=miss.message[:255],
        )


def _unreadable(error: BadInput) -> Miss:
    return Miss(Fault.NO_VIDEO, error.message)
