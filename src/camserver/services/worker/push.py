"""One camera's stream to one streamer: from the thread that reads the camera, or makes it anew, over the loop.

A camera that fails is tried again while the push lasts, after growing pauses, and every change is told.
"""

import asyncio
import threading
from collections.abc import Callable
from fractions import Fraction

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.jobs import backoff_ms
from camserver.domain.leases import Fault
from camserver.domain.looks import keyframe_wait_ms
from camserver.media.packets import Miss, Packet
from camserver.media.packets import Stream as Video
from camserver.media.parameter_sets import is_played_everywhere
from camserver.media.shots import JpegShot
from camserver.media.transcoding import Transcoding, VideoWork
from camserver.media.video_picture import decode
from camserver.services.worker.camera import Camera
from camserver.services.worker.feed_line import BACKLOG_MAX_BYTES, FeedLine
from camserver.services.worker.streams import Stream
from camserver.services.worker.waiting import end, event_within, within
from camserver.wire.live import (
    PICTURE_ASKED,
    STATUS_EVERY_SEC,
    FeedSound,
    FeedStatus,
    FeedStream,
    LiveState,
    pack_stream,
    packet_head,
    sound_head,
)

log = get_logger(__name__)

# How often the line to the server is looked at, and how often whether a camera still sends.
TICK_SEC = 1.0
CHECK_SEC = 2.0
RETRY_BASE_SEC = 1.0
RETRY_CAP_SEC = 30.0
# A device that bears no more streams is said to after so long.
WAIT_SHOWN_SEC = 1.0
# A camera that sends nothing for so long is begun anew.
STALL_SEC = 15.0
# What is older than this in the ring is no beginning of now.
WARM_MS = 1_500
# A first picture that is made anew may take so much longer.
TRANSCODE_SEC = 5.0
# Between two pictures of a camera that gives single ones.
PICTURE_PAUSE_SEC = 0.25
# Why a push is cancelled whose line is needed for looks.
SHED = "shed"
PICTURES = Video("mjpeg", b"", Fraction(1, 1000))


class Push:
    """One camera's stream to one streamer."""

    def __init__(
        self,
        camera: Camera,
        stream: Stream,
        line: FeedLine,
        clock: Clock,
        jitter: Callable[[], float],
        work: VideoWork | None = None,
    ) -> None:
        """With `work` pictures are made anew."""
        self._work = work
        self._camera = camera
        self._stream = stream
        self._line = line
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._status = FeedStatus(state="connecting")
        self._consumer: Pushed | None = None
        self._picturing: asyncio.Task[None] | None = None
        line.on_picture_asked = self._picture_asked

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
            await end(feeding, *others, *(() if self._picturing is None else (self._picturing,)))
            if not self._line.closed.is_set():
                self._line.send_status(why)
        if feeding.done() and not feeding.cancelled():
            feeding.result()

    def _picture_asked(self) -> None:
        """One at a time; whoever asks again meanwhile gets the same one."""
        if self._picturing is None or self._picturing.done():
            self._picturing = asyncio.ensure_future(self._send_picture())

    async def _send_picture(self) -> None:
        key = None if self._consumer is None else self._consumer.keyframe
        jpeg = b"" if key is None else await asyncio.to_thread(_jpeg, key)
        self._line.send(PICTURE_ASKED, jpeg)

    async def _tell_on(self) -> None:
        """Says how things stand, so that silence means something; ends when the camera is not ours any more."""
        while self._camera.hold.is_covered:
            self._line.send_status(self._status)
            await self._clock.sleep(self._until_next(STATUS_EVERY_SEC))

    def _tell(self, status: FeedStatus) -> None:
        if status != self._status:
            self._status = status
            self._line.send_status(status)

    def _until_next(self, every_sec: float) -> float:
        """All pushes of a machine do it at the same moments: waking up for each alone costs more than doing it."""
        every_ms = round(every_sec * 1000)
        return (every_ms - self._clock.boot_ms() % every_ms) / 1000

    async def _feed_on(self) -> None:
        while True:
            if self._camera.is_locked_out:
                self._tell(FeedStatus(state="refused", reason="unauthorized"))
                await self._clock.sleep(RETRY_CAP_SEC)
                continue
            miss = await self._feed_once()
            self._camera.live_failed(miss)
            self._failures += 1
            self._tell(_trouble(miss))
            pause_ms = backoff_ms(self._failures, self._jitter(), RETRY_BASE_SEC, RETRY_CAP_SEC)
            log.info("watched camera is tried again", cause=miss.message, pause_ms=pause_ms)
            await self._clock.sleep(pause_ms / 1000)

    async def _feed_once(self) -> Miss:
        """Pushes what one connection gives; why it ended."""
        consumer = self._consumer = Pushed(self._line, asyncio.get_running_loop(), self._clock.boot_ms)
        between = Transcoding(consumer, self._work, self._clock.boot_ms)
        if self._work is not None:
            note = "transcoded_mask" if self._work.masks else "transcoded_codec"
            consumer.about = lambda: (note, between.source_codec)
        try:
            if self._stream.video is None:
                return await self._feed_pictures(consumer, between)
            return await self._feed_video(consumer, between)
        finally:
            between.close()

    async def _feed_video(self, consumer: "Pushed", between: Transcoding) -> Miss:
        joining = asyncio.ensure_future(self._stream.join_live(between))
        try:
            if not await _done_within(self._clock, WAIT_SHOWN_SEC, joining):
                self._tell(FeedStatus(state="waiting", reason="device_full"))
            await joining
            # Whoever was told what is wrong is not told of every further try, nor shown what came before it.
            warm: tuple[Packet, ...] = ()
            if not self._failures:
                self._tell(FeedStatus(state="connecting"))
                warm = self._warm()
            consumer.begin(warm if self._work is None else ())
            between.begin(() if self._work is None else warm)
            return await self._until_ended(consumer)
        finally:
            await end(joining)
            self._stream.leave_live(between)

    async def _feed_pictures(self, consumer: "Pushed", between: Transcoding) -> Miss:
        """A camera that gives single pictures: a film of them."""
        consumer.begin(())
        between.begin(())
        grabbing = asyncio.ensure_future(self._grab_on(between))
        try:
            return await self._until_ended(consumer)
        finally:
            await end(grabbing)

    async def _grab_on(self, between: Transcoding) -> None:
        patience_sec = self._camera.start.params.connect_timeout_sec * 2
        while True:
            try:
                caught = await within(self._clock, patience_sec, self._stream.source.grab())
            except TimeoutError:
                caught = Miss(Fault.NO_VIDEO, f"no picture within {patience_sec:g} s", timed_out=True)
            if isinstance(caught, Miss):
                between.ended(caught)
                return
            assert isinstance(caught, JpegShot)
            boot_ms = self._clock.boot_ms()
            between.offer(Packet(PICTURES, boot_ms, None, True, caught.jpeg, boot_ms))
            await self._clock.sleep(PICTURE_PAUSE_SEC)

    def _warm(self) -> tuple[Packet, ...]:
        """The group of pictures so far, where the camera is connected anyway: a picture at once."""
        ring, video = self._camera.ring, self._stream.video
        if ring is None or video is None or not video.accompanies(ring):
            return ()
        now_boot_ms = self._clock.boot_ms()
        return ring.cut(now_boot_ms - WARM_MS, now_boot_ms)

    async def _until_ended(self, consumer: "Pushed") -> Miss:
        wait_ms = keyframe_wait_ms(self._stream.source.learned_gop_ms)
        patience_sec = self._camera.start.params.connect_timeout_sec + wait_ms / 1000
        patience_sec += 0 if self._work is None else TRANSCODE_SEC
        if not await event_within(self._clock, patience_sec, consumer.begun) and consumer.miss is None:
            return Miss(Fault.NO_VIDEO, f"no video within {patience_sec:g} s", timed_out=True)
        self._stream.opened_live()
        while consumer.miss is None:
            if consumer.unplayable:
                self._tell(FeedStatus(state="refused", reason="codec", message=consumer.unplayable))
            elif consumer.begun.is_set():
                self._failures = 0
                self._tell(FeedStatus(state="live"))
            await event_within(self._clock, self._until_next(CHECK_SEC), consumer.over)
            silent_ms = self._clock.boot_ms() - consumer.heard_boot_ms
            if consumer.miss is None and silent_ms > STALL_SEC * 1000:
                text = f"the camera sent nothing for {STALL_SEC:g} s"
                return Miss(Fault.NO_VIDEO, text, timed_out=True, is_stalled=True)
        return consumer.miss


class Pushed:
    """A `Consumer`: packets from the thread that reads, or transcodes, to the streamer.

    What the streamer does not take is bounded: beyond it packets are left out up to the next keyframe.
    """

    def __init__(
        self,
        line: FeedLine,
        loop: asyncio.AbstractEventLoop,
        boot_ms: Callable[[], int],
    ) -> None:
        # Why pictures are not as the camera sends them, and what it sends.
        self.about: Callable[[], tuple[str, str]] = lambda: ("", "")
        self._sound: Video | None = None
        self._is_sound_told = False
        self.unplayable = ""  # why no browser plays what the camera sends
        self._line = line
        self._loop = loop
        self._lock = threading.Lock()
        self._held: list[Packet] | None = []  # what came before it began
        self._is_begun = False
        self._needs_key = True
        self.stream: Video | None = None
        self.keyframe: Packet | None = None  # the newest that was pushed
        self.begun = asyncio.Event()  # a packet came, or nothing will
        self.over = asyncio.Event()
        self.miss: Miss | None = None
        self.heard_boot_ms = boot_ms()
        self.skipped = 0

    # In the reading thread, and in that which transcodes ---------------------------------------------------------

    def offer(self, packet: Packet) -> None:
        with self._lock:
            if self._held is not None:
                self._held.append(packet)
            else:
                self._push(packet)

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
        with self._lock:
            held, self._held = self._held or [], None
            for packet in (*warm, *(one for one in held if id(one) not in sent)):
                self._push(packet)

    def _end(self, miss: Miss) -> None:
        self.miss = miss
        self.begun.set()
        self.over.set()

    # In either, one at a time ----------------------------------------------------------------------------------

    def _push(self, packet: Packet) -> None:
        if packet.stream.sound is not None:
            self._push_sound(packet)
            return
        self.heard_boot_ms = packet.boot_ms
        if packet.stream is not self.stream:
            self._note_stream(packet.stream)
        if not self._is_begun:
            self._is_begun = True
            self._call(self.begun.set)
        if self.unplayable:
            return
        if packet.is_keyframe:
            self._needs_key = self._line.backlog_bytes > BACKLOG_MAX_BYTES // 2
        elif not self._needs_key and self._line.backlog_bytes > BACKLOG_MAX_BYTES:
            self._needs_key = True
        if self._needs_key:
            self.skipped += 1
            return
        if packet.is_keyframe:
            self.keyframe = packet
        head = packet_head(packet.pts, packet.dts, packet.is_keyframe, packet.boot_ms, packet.starts)
        self._line.send(head, packet.data)

    def _push_sound(self, packet: Packet) -> None:
        if packet.stream is not self._sound:
            is_same, self._sound = packet.stream == self._sound, packet.stream
            if not is_same and self.stream is not None and not self.unplayable:
                self._tell_stream(self.stream)
        if packet.data and self._is_sound_told and not self._needs_key:
            self._line.send(sound_head(packet.pts, packet.boot_ms), packet.data)

    def _note_stream(self, stream: Video) -> None:
        old, self.stream = self.stream, stream
        if old is not None and old == stream:
            return
        is_played = is_played_everywhere(stream.codec, stream.extradata)
        self.unplayable = "" if is_played else f"browsers can't play this kind of {stream.codec}"
        if is_played:
            self._tell_stream(stream)

    def _tell_stream(self, stream: Video) -> None:
        sound, heard = self._sound, None
        if sound is not None and sound.sound is not None:
            rate = round(1 / sound.time_base)
            heard = FeedSound(sound.codec, sound.extradata, rate, sound.sound.channels)
        self._is_sound_told = heard is not None
        told = FeedStream(stream.codec, stream.extradata, stream.time_base, *self.about(), heard)
        self._line.send(pack_stream(told))


def _trouble(miss: Miss) -> FeedStatus:
    """What viewers are told. A device that says it is busy bears no more streams; one that is off refuses too."""
    message = miss.message[:255]
    if miss.is_crowded and miss.fault is not Fault.REFUSED:
        return FeedStatus(state="waiting", reason="device_full", message=message)
    state: LiveState = "stalled" if miss.is_stalled else "refused"
    return FeedStatus(state=state, reason=miss.fault.value, message=message)


def _jpeg(key: Packet) -> bytes:
    """Work for a thread."""
    try:
        return decode((key,)).full()
    except BadInput as error:
        log.info("no picture can be made of a keyframe", cause=error.message)
        return b""


async def _done_within(clock: Clock, seconds: float, task: "asyncio.Task[None]") -> bool:
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        timer.cancel()
