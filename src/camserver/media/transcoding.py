"""Live video and sound that browsers don't play, or must not see as it is, made anew: H.264, and AAC.

A `Transcoding` stands between a camera's hub and whoever takes its packets. What needs no work is passed on at once;
the rest is done in one thread of its own, and never in the thread that reads cameras nor in the loop. It is bounded:
size, pictures a second and what waits. When it can't keep up it leaves out pictures before they are encoded, then up
to the camera's next keyframe. Nothing of a masked camera comes out of it but what was masked here.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
from av.video.frame import PictureType, VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.domain.polygons import Polygon
from camserver.media import nal_units
from camserver.media.masks import blacken_frame
from camserver.media.packets import Consumer, Miss, Packet, Stream
from camserver.media.sound_encoding import SoundEncoder
from camserver.media.video_picture import new_decoder, turned

log = get_logger(__name__)

CLOCK_HZ = 90_000
_CLOCK = Fraction(1, CLOCK_HZ)
# What waits for the thread: some seconds of any camera.
WAITING_MAX = 250
# A picture that is later than this is decoded, because others build on it, and not encoded.
LATE_MS = 400
# Later than this, nothing is decoded up to the next keyframe.
HOPELESS_MS = 2_000
KEYFRAMES_APART_SEC = 2
# Pictures whose arrival is remembered until they come out of the decoder, which may hold some back to order them.
REMEMBERED_MAX = 64
QUALITY = 26  # constant rate factor: less is better and larger
# Bits a second and pixel that it may take for longer than a moment.
BITS_PER_PIXEL = 2.5
SOUND_PASSED_ON = frozenset({"aac", "opus"})
SOUND_CONVERTED = frozenset({"pcm_mulaw", "pcm_alaw"})


@dataclass(frozen=True, slots=True)
class VideoWork:
    """What is made of the pictures."""

    width_max: int = 1280
    fps_max: int = 15
    rotation: int = 0  # with the clock, in degrees; masks are drawn over the turned picture
    masks: tuple[Polygon, ...] = ()


def target_size(width: int, height: int, width_max: int) -> tuple[int, int]:
    """The size to encode: as it is or smaller, both even; tall pictures are bounded by their height as well."""
    scale = min(1.0, width_max / width, width_max / height)
    return max(round(width * scale) & ~1, 2), max(round(height * scale) & ~1, 2)


class VideoTranscoder:
    """One camera's pictures, one after the other. Work for a thread; not thread-safe."""

    def __init__(self, work: VideoWork) -> None:
        self._work = work
        self._decoder: Any = None
        self._source: Stream | None = None
        self._encoder: Any = None
        self._size = (0, 0)
        self._scaler = VideoReformatter()
        self._stream: Stream | None = None  # of what comes out
        self._arrived: dict[int, int] = {}  # when a picture came, by its time
        self._boot_ms = 0  # of the last picture that came out
        self._last_pts = -1
        self._shift = 0  # keeps times growing where the camera's clock goes back
        self._due_pts: int | None = None  # no picture is encoded before
        self._key_pts = 0
        self._needs_key = True
        self.left_out = 0

    def feed(self, packet: Packet, late_ms: int) -> list[Packet]:
        """What comes out when this goes in."""
        if not self._takes(packet, late_ms):
            self.left_out += 1
            return []
        pts = self._pts(packet)
        self._arrived[pts] = packet.boot_ms
        if len(self._arrived) > REMEMBERED_MAX:
            del self._arrived[min(self._arrived)]
        given = av.Packet(packet.data)
        given.pts, given.time_base = pts, _CLOCK
        try:
            frames = self._decoder.decode(given)
        except av.FFmpegError as error:
            log.info("a picture can't be decoded for live view", cause=type(error).__name__)
            self._needs_key = True
            return []
        made: list[Packet] = []
        for frame in frames:
            if frame.is_corrupt:
                continue
            made += self._encoded(frame, packet.boot_ms, late_ms)
        return made

    def finish(self) -> list[Packet]:
        """What is still inside, to be put in order; nothing may be fed afterwards."""
        if self._decoder is None:
            return []
        try:
            frames = [frame for frame in self._decoder.decode(None) if not frame.is_corrupt]
        except av.FFmpegError as error:
            log.info("the last pictures can't be decoded", cause=type(error).__name__)
            return []
        return [packet for frame in frames for packet in self._encoded(frame, self._boot_ms, 0)]

    def _takes(self, packet: Packet, late_ms: int) -> bool:
        if packet.stream is not self._source and (self._decoder is None or packet.is_keyframe):
            if self._source is None or _is_other(self._source, packet.stream):
                self._decoder = new_decoder(packet.stream)
                self._needs_key = True
            self._source = packet.stream
        if late_ms > HOPELESS_MS:
            self._needs_key = True
            return False
        if self._needs_key and not (packet.is_keyframe or packet.is_recovery):
            return False
        self._needs_key = False
        return True

    def _pts(self, packet: Packet) -> int:
        stamp = packet.pts if packet.pts is not None else packet.dts
        if stamp is None:
            return packet.boot_ms * (CLOCK_HZ // 1000)
        return int(stamp * packet.stream.time_base * CLOCK_HZ)

    def _encoded(self, frame: VideoFrame, boot_ms: int, late_ms: int) -> list[Packet]:
        pts = frame.pts if frame.pts is not None else boot_ms * (CLOCK_HZ // 1000)
        # Those that came later and are shown earlier (B-frames) waited for one another.
        self._boot_ms = max(self._boot_ms, self._arrived.pop(pts, boot_ms))
        pts += self._shift
        step = CLOCK_HZ // self._work.fps_max
        if pts <= self._last_pts or pts > self._last_pts + 60 * CLOCK_HZ > 0:
            # Another connection, or a clock that was set.
            self._shift += self._last_pts + step - pts
            pts, self._due_pts = self._last_pts + step, None
        if late_ms > LATE_MS or (self._due_pts is not None and pts < self._due_pts):
            self.left_out += 1
            return []
        # Of 25 pictures a second every second one, not two of three in turn with one.
        self._due_pts = pts + step - CLOCK_HZ // 100
        picture = self._picture(frame)
        encoder = self._fitting_encoder(picture)
        self._last_pts = pts
        # Not where the camera has its own, which may be far too rarely or with every picture.
        is_key = pts - self._key_pts >= KEYFRAMES_APART_SEC * CLOCK_HZ
        self._key_pts = pts if is_key else self._key_pts
        picture.pict_type = PictureType.I if is_key else PictureType.NONE
        picture.pts, picture.time_base = pts, _CLOCK
        return [
            self._as_packet(bytes(one), one.pts, one.is_keyframe, self._boot_ms) for one in encoder.encode(picture)
        ]

    def _picture(self, frame: VideoFrame) -> VideoFrame:
        """Scaled, turned and masked."""
        size = target_size(frame.width, frame.height, self._work.width_max)
        scaled = self._scaler.reformat(
            frame, *size, format="yuv420p", interpolation=Interpolation.FAST_BILINEAR, threads=1
        )
        picture = turned(scaled, self._work.rotation)
        return blacken_frame(picture, self._work.masks) if self._work.masks else picture

    def _fitting_encoder(self, picture: VideoFrame) -> Any:
        size = (picture.width, picture.height)
        if self._encoder is None or size != self._size:
            self._size = size
            self._encoder = new_encoder(size, self._work.fps_max)
            self._key_pts = -KEYFRAMES_APART_SEC * CLOCK_HZ
        return self._encoder

    def _as_packet(self, data: bytes, pts: int, is_keyframe: bool, boot_ms: int) -> Packet:
        if is_keyframe:
            sets = nal_units.kind_of_bytes("h264", data).sets
            if sets and (self._stream is None or sets != self._stream.extradata):
                self._stream = Stream("h264", sets, _CLOCK, fps=float(self._work.fps_max))
        assert self._stream is not None
        return Packet(self._stream, pts, pts, is_keyframe, data, boot_ms)


def new_encoder(size: tuple[int, int], fps: int) -> Any:
    """H.264 as every browser plays it, each picture at once."""
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = *size, "yuv420p"
    encoder.time_base, encoder.framerate = _CLOCK, Fraction(fps, 1)
    encoder.gop_size = fps * KEYFRAMES_APART_SEC * 2  # they are asked for by time
    encoder.max_b_frames = 0
    encoder.thread_count = 1
    rate = max(round(size[0] * size[1] * BITS_PER_PIXEL), 200_000)
    encoder.options = {
        "preset": "veryfast",
        "tune": "zerolatency",
        "profile": "main",
        "crf": str(QUALITY),
        "maxrate": str(rate),
        "bufsize": str(rate),
        "forced-idr": "1",
        "rc-lookahead": "0",
        "sc_threshold": "0",
    }
    return encoder


def _is_other(old: Stream, new: Stream) -> bool:
    """Whether another decoder is needed; parameter sets in the video itself are followed by the one there is."""
    return old.codec != new.codec or old.raw != new.raw or (bool(new.extradata) and old.extradata != new.extradata)


class Transcoding:
    """A `Consumer` in front of another one. `close` ends its thread."""

    def __init__(self, onward: Consumer, work: VideoWork | None, boot_ms: Callable[[], int]) -> None:
        """Without `work` pictures are passed on as they are."""
        self._onward = onward
        # Said once, by what was asked for: whatever becomes of the thread, no picture passes it by.
        self._passes_pictures = work is None
        self._video = None if work is None else VideoTranscoder(work)
        self._boot_ms = boot_ms
        self._waiting: queue.Queue[Packet | None] = queue.Queue(WAITING_MAX)
        self._sound: SoundEncoder | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._has_hole = False
        self.source_codec = ""  # of the pictures that go in
        self._held: list[Packet] | None = None if work is None else []  # pictures that came before it began
        self._warm_boot_ms = 0

    @property
    def left_out(self) -> int:
        """Pictures that were not shown, by choice or for want of time."""
        return 0 if self._video is None else self._video.left_out

    def begin(self, warm: Sequence[Packet]) -> None:
        """Pictures go in from now on, after those that came before, of which the last may have come twice."""
        sent = set(map(id, warm))
        with self._lock:
            held, self._held = self._held or [], None
            self._warm_boot_ms = warm[-1].boot_ms if warm else 0
            for packet in (*warm, *(one for one in held if id(one) not in sent)):
                self._enqueue(packet)

    def offer(self, packet: Packet) -> None:
        codec, is_sound = packet.stream.codec, packet.stream.sound is not None
        if codec in SOUND_PASSED_ON if is_sound else self._passes_pictures:
            self._onward.offer(packet)
        elif not is_sound or codec in SOUND_CONVERTED:
            self._put(packet)

    def ended(self, miss: Miss) -> None:
        self._onward.ended(miss)

    def close(self) -> None:
        """Nothing comes out any more; the thread ends with what it is about."""
        with self._lock:
            self._closed.set()
            thread = self._thread
        if thread is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                log.debug("a transcode ends behind what waits")

    def _put(self, packet: Packet) -> None:
        with self._lock:
            if self._held is not None and packet.stream.sound is None:
                if len(self._held) < WAITING_MAX:
                    self._held.append(packet)
            else:
                self._enqueue(packet)

    def _enqueue(self, packet: Packet) -> None:
        if self._closed.is_set():
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="live-transcode", daemon=True)
            self._thread.start()
        # A hole is bridged from the next keyframe on, lest what follows shows wrong pictures.
        if self._has_hole and packet.stream.sound is None and not packet.is_keyframe:
            return
        try:
            self._waiting.put_nowait(packet)
            self._has_hole = self._has_hole and packet.stream.sound is not None
        except queue.Full:
            self._has_hole = True

    def _run(self) -> None:
        try:
            while (packet := self._waiting.get()) is not None and not self._closed.is_set():
                made = self._heard(packet) if packet.stream.sound is not None else self._seen(packet)
                for one in made:
                    if self._closed.is_set():
                        return
                    self._onward.offer(one)
        except Exception as error:
            # Rather no picture than one that was not made as it should be.
            log.exception("a transcode crashed")
            self._onward.ended(Miss(Fault.CRASH, f"live video can't be transcoded: {type(error).__name__}"))
        finally:
            self._sound = None
            self._video = None

    def _seen(self, packet: Packet) -> list[Packet]:
        if self._video is None:
            return []
        self.source_codec = packet.stream.codec
        try:
            late_ms = self._boot_ms() - packet.boot_ms
            # What came before it began is old and has to be decoded all the same, because the next builds on it.
            if packet.boot_ms < self._warm_boot_ms:
                late_ms = min(max(late_ms, LATE_MS + 1), HOPELESS_MS)
            return self._video.feed(packet, late_ms)
        except BadInput as error:
            log.info("a picture can't be transcoded", cause=error.message)
            return []

    def _heard(self, packet: Packet) -> list[Packet]:
        if self._sound is None or self._sound.source != packet.stream:
            self._sound = SoundEncoder(packet.stream)
        return self._sound.feed(packet)
