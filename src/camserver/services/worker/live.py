"""Live view at the worker: pushes a camera's packets to the streamer that asked, over the camera's one connection.

A push is one task a camera and quality. It ends when the streamer closes its socket, when the camera is let go, or
when the line to the server is short: looks go first. A camera that fails is tried again while the push lasts, after
growing pauses, and every change is told to the streamer, which tells whoever watches.
"""

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from camserver.base.clock import Clock
from camserver.base.errors import CamError
from camserver.base.log import bind_ids, get_logger
from camserver.domain.jobs import backoff_ms
from camserver.domain.leases import Fault
from camserver.domain.live import Line, shed_until
from camserver.domain.looks import keyframe_wait_ms
from camserver.media.packets import Miss, Packet
from camserver.media.packets import Stream as Video
from camserver.media.rtsp_lean.pump import shared_pump
from camserver.services.worker.camera import Camera
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.feed_line import BACKLOG_MAX_BYTES, FeedLine, connect
from camserver.services.worker.streams import Stream
from camserver.services.worker.waiting import end, event_within
from camserver.wire.live import STATUS_EVERY_SEC, FeedStatus, FeedStream, LiveState, pack_stream, packet_head
from camserver.wire.worker import Ack, LiveStart, LiveStop

log = get_logger(__name__)

PUSHES_MAX = 128
TICK_SEC = 1.0
# How far back the spool's size is compared with.
SPOOL_WINDOW = 10
RETRY_BASE_SEC = 1.0
RETRY_CAP_SEC = 30.0
# A device that bears no more streams is said to after so long.
WAIT_SHOWN_SEC = 1.0
# A camera that sends nothing for so long is begun anew.
STALL_SEC = 15.0
# What is older than this in the ring is no beginning of now.
WARM_MS = 1_500
PLAYABLE = frozenset({"h264", "hevc"})
# Why a push is cancelled whose line is needed for looks.
SHED = "shed"

PushKey: TypeAlias = tuple[str, str, bool, str]  # camera, quality, transcoded, streamer


class Lives:
    """All pushes of a worker."""

    def __init__(
        self,
        cameras: Cameras,
        clock: Clock,
        line_now: Callable[[], tuple[int, int]],
        tls: ssl.SSLContext | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`line_now`: the last renewal's round trip in ms, and the looks in the spool."""
        self._cameras = cameras
        self._clock = clock
        self._line_now = line_now
        self._tls = tls
        self._jitter = jitter
        self._pushes: dict[PushKey, asyncio.Task[None]] = {}
        self._spool: deque[int] = deque(maxlen=SPOOL_WINDOW)
        self._shed_until_boot_ms = 0
        self._begun = asyncio.Event()
        self.shed = 0

    def __len__(self) -> int:
        return len(self._pushes)

    async def run(self) -> None:
        """Watches the line until cancelled, while anybody watches a camera."""
        while True:
            await self._begun.wait()
            self._spool.clear()
            while self._pushes:
                self._watch_line()
                await self._clock.sleep(TICK_SEC)
            self._begun.clear()

    def start(self, intent: LiveStart) -> Ack:
        """Begins to push, or says why not: a code, a colon and words."""
        why = self._why_not(intent)
        if why:
            log.warning("live_refused", camera_id=intent.camera_id, generation=intent.generation, cause=why)
            return Ack(intent_id=intent.intent_id, status="refused", details=why[:255])
        camera = self._cameras.camera(intent.camera_id, intent.generation)
        assert camera is not None
        key = (intent.camera_id, intent.quality, intent.transcode, intent.streamer_url)
        if (old := self._pushes.get(key)) is not None:
            old.cancel()
        with bind_ids(camera_id=intent.camera_id, generation=intent.generation, intent_id=intent.intent_id):
            task = asyncio.ensure_future(self._push(intent, camera))
        self._pushes[key] = task
        self._begun.set()
        task.add_done_callback(lambda done: self._ended(key, done))
        return Ack(intent_id=intent.intent_id, status="ok")

    def stop(self, intent: LiveStop) -> Ack:
        for key, task in tuple(self._pushes.items()):
            if key[:3] == (intent.camera_id, intent.quality, intent.transcode):
                task.cancel()
        return Ack(intent_id=intent.intent_id, status="ok")

    async def close(self) -> None:
        await end(*self._pushes.values())

    def _why_not(self, intent: LiveStart) -> str:
        camera = self._cameras.camera(intent.camera_id, intent.generation)
        if camera is None or not camera.hold.is_covered:
            return "moved: this worker does not hold the camera (any more)"
        params = camera.start.params
        if params.do_not_process:
            return "not_processed: the camera is not to be processed"
        if self._clock.boot_ms() < self._shed_until_boot_ms:
            return "shed: the line to the server is short; looks go first"
        if camera.stream(intent.quality).video is None:
            return "codec: the camera sends no video, only single pictures"
        if params.privacy_masks and not intent.transcode:
            return "masked: the camera has a privacy mask, so its video is not passed on as it is"
        if intent.transcode:
            return "codec: this worker can't transcode live video"
        if len(self._pushes) >= PUSHES_MAX:
            return f"shed: {PUSHES_MAX} cameras are watched at this worker already"
        return ""

    def _ended(self, key: PushKey, task: "asyncio.Task[None]") -> None:
        if self._pushes.get(key) is task:
            del self._pushes[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a push crashed", exc_info=error, camera_id=key[0])

    def _watch_line(self) -> None:
        rtt_ms, looks = self._line_now()
        self._spool.append(looks)
        boot_ms = self._clock.boot_ms()
        was_shed = boot_ms < self._shed_until_boot_ms
        self._shed_until_boot_ms = shed_until(Line(rtt_ms, looks, self._spool[0]), self._shed_until_boot_ms, boot_ms)
        if boot_ms < self._shed_until_boot_ms and not was_shed and self._pushes:
            log.warning("live view is let go: the line is short", rtt_ms=rtt_ms, spool_looks=looks)
            self.shed += len(self._pushes)
            for task in self._pushes.values():
                task.cancel(msg=SHED)

    async def _push(self, intent: LiveStart, camera: Camera) -> None:
        try:
            line = await connect(intent.streamer_url, intent.ticket, self._tls)
        except CamError as error:
            log.warning("streamer can't be fed", cause=error.message)
            return
        try:
            with shared_pump().hurried():
                await Push(camera, camera.stream(intent.quality), line, self._clock, self._jitter).run()
        finally:
            line.close()
            log.info("live_ended", quality=intent.quality, close_code=line.close_code)


class Push:
    """One camera's stream to one streamer."""

    def __init__(
        self, camera: Camera, stream: Stream, line: FeedLine, clock: Clock, jitter: Callable[[], float]
    ) -> None:
        self._camera = camera
        self._stream = stream
        self._line = line
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._status = FeedStatus(state="connecting")

    async def run(self) -> None:
        """Until the streamer wants no more, or the camera is not ours any more."""
        log.info("live_begins", quality=self._stream.name)
        feeding = asyncio.ensure_future(self._feed_on())
        others = [
            asyncio.ensure_future(work)
            for work in (self._line.closed.wait(), self._camera.over.wait(), self._tell_on())
        ]
        why = FeedStatus(state="moving", reason="moved")
        try:
            await asyncio.wait({feeding, *others}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            if cancelled.args == (SHED,):
                why = FeedStatus(state="waiting", reason=SHED)
            raise
        finally:
            await end(feeding, *others)
            if not self._line.closed.is_set():
                self._line.send_status(why)
        if feeding.done() and not feeding.cancelled():
            feeding.result()

    async def _tell_on(self) -> None:
        """Says how things stand, so that silence means something; ends when the camera is not ours any more."""
        while self._camera.hold.is_covered:
            self._line.send_status(self._status)
            await self._clock.sleep(STATUS_EVERY_SEC)

    def _tell(self, status: FeedStatus) -> None:
        if status != self._status:
            self._status = status
            self._line.send_status(status)

    async def _feed_on(self) -> None:
        while True:
            if self._camera.is_locked_out:
                self._tell(FeedStatus(state="refused", reason="unauthorized"))
                await self._clock.sleep(RETRY_CAP_SEC)
                continue
            miss = await self._feed_once()
            self._camera.live_failed(miss)
            self._failures += 1
            state: LiveState = "stalled" if miss.is_stalled else "refused"
            self._tell(FeedStatus(state=state, reason=miss.fault.value, message=miss.message[:255]))
            pause_ms = backoff_ms(self._failures, self._jitter(), RETRY_BASE_SEC, RETRY_CAP_SEC)
            log.info("watched camera is tried again", cause=miss.message, pause_ms=pause_ms)
            await self._clock.sleep(pause_ms / 1000)

    async def _feed_once(self) -> Miss:
        """Pushes what one connection gives; why it ended."""
        consumer = Pushed(self._line, asyncio.get_running_loop(), self._clock.boot_ms)
        joining = asyncio.ensure_future(self._stream.join_live(consumer))
        try:
            if not await _done_within(self._clock, WAIT_SHOWN_SEC, joining):
                self._tell(FeedStatus(state="waiting", reason="device_full"))
            await joining
            self._tell(FeedStatus(state="connecting"))
            consumer.begin(self._warm(consumer))
            return await self._until_ended(consumer)
        finally:
            await end(joining)
            self._stream.leave_live(consumer)

    def _warm(self, consumer: "Pushed") -> tuple[Packet, ...]:
        """The group of pictures so far, where the camera is connected anyway: a picture at once."""
        ring, video = self._camera.ring, self._stream.video
        if ring is None or video is None or not video.accompanies(ring):
            return ()
        now_boot_ms = self._clock.boot_ms()
        return ring.cut(now_boot_ms - WARM_MS, now_boot_ms)

    async def _until_ended(self, consumer: "Pushed") -> Miss:
        wait_ms = keyframe_wait_ms(self._stream.source.learned_gop_ms)
        patience_sec = self._camera.start.params.connect_timeout_sec + wait_ms / 1000
        if not await event_within(self._clock, patience_sec, consumer.begun) and consumer.miss is None:
            return Miss(Fault.NO_VIDEO, f"no video within {patience_sec:g} s", timed_out=True)
        self._stream.opened_live()
        while consumer.miss is None:
            if consumer.stream is not None and consumer.stream.codec not in PLAYABLE:
                return Miss(Fault.NO_VIDEO, f"browsers can't play {consumer.stream.codec}")
            if consumer.begun.is_set():
                self._failures = 0
                self._tell(FeedStatus(state="live"))
            await event_within(self._clock, TICK_SEC, consumer.over)
            silent_ms = self._clock.boot_ms() - consumer.heard_boot_ms
            if consumer.miss is None and silent_ms > STALL_SEC * 1000:
                text = f"the camera sent nothing for {STALL_SEC:g} s"
                return Miss(Fault.NO_VIDEO, text, timed_out=True, is_stalled=True)
        return consumer.miss


class Pushed:
    """A `Consumer`: packets from the reading thread to the loop, and from there to the streamer.

    What the streamer does not take is bounded: beyond it packets are left out up to the next keyframe.
    """

    def __init__(self, line: FeedLine, loop: asyncio.AbstractEventLoop, boot_ms: Callable[[], int]) -> None:
        self._line = line
        self._loop = loop
        self._waiting: deque[Packet] = deque()
        self._is_flushing = True  # until it begins
        self._needs_key = True
        self.stream: Video | None = None
        self.begun = asyncio.Event()  # a packet came, or nothing will
        self.over = asyncio.Event()
        self.miss: Miss | None = None
        self.heard_boot_ms = boot_ms()
        self.skipped = 0

    # In the reading thread -------------------------------------------------------------------------------------

    def offer(self, packet: Packet) -> None:
        self._waiting.append(packet)
        if not self._is_flushing:
            self._is_flushing = True
            self._call(self._flush)

    def ended(self, miss: Miss) -> None:
        self._call(self._end, miss)

    def _call(self, work: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(work, *args)
        except RuntimeError:
            log.debug("the loop is closed")

    # In the loop -----------------------------------------------------------------------------------------------

    def begin(self, warm: tuple[Packet, ...]) -> None:
        """Pushes what came before, then what comes. The last of the one may be the first of the other."""
        sent = set(map(id, warm))
        for packet in warm:
            self._push(packet)
        while self._waiting and id(self._waiting[0]) in sent:
            self._waiting.popleft()
        self._flush()

    def _flush(self) -> None:
        self._is_flushing = False
        while self._waiting:
            self._push(self._waiting.popleft())

    def _end(self, miss: Miss) -> None:
        self.miss = miss
        self.begun.set()
        self.over.set()

    def _push(self, packet: Packet) -> None:
        self.heard_boot_ms = packet.boot_ms
        if packet.stream is not self.stream:
            self._tell_stream(packet.stream)
        if not self.begun.is_set():
            self.begun.set()
        if packet.is_keyframe:
            self._needs_key = self._line.backlog_bytes > BACKLOG_MAX_BYTES // 2
        elif not self._needs_key and self._line.backlog_bytes > BACKLOG_MAX_BYTES:
            self._needs_key = True
        if self._needs_key:
            self.skipped += 1
            return
        head = packet_head(packet.pts, packet.dts, packet.is_keyframe, packet.boot_ms, packet.starts)
        self._line.send(head, packet.data)

    def _tell_stream(self, stream: Video) -> None:
        old, self.stream = self.stream, stream
        if old is None or old != stream:
            self._line.send(pack_stream(FeedStream(stream.codec, stream.extradata, stream.time_base)))


async def _done_within(clock: Clock, seconds: float, task: "asyncio.Task[None]") -> bool:
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        timer.cancel()
