"""One camera in one quality: muxed once, shown to all who watch, with the group of pictures so far for newcomers.

It knows packets, viewers and how things stand. Whether somebody may watch, and who feeds it, is decided elsewhere.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from camserver.base import websocket
from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.media.fragments import TICKS_PER_SEC, Sound, Timeline, init_segment, mime_of
from camserver.media.packets import SoundShape
from camserver.media.parameter_sets import Described, describe
from camserver.media.sound import describe_sound, length, silence
from camserver.services.streamer import words
from camserver.services.streamer.fragments import Fragment, make_fragment, make_sound_fragment
from camserver.services.streamer.hls import Segments
from camserver.services.streamer.sound import SoundTimes
from camserver.services.streamer.viewers import SocketViewer, text_frame
from camserver.wire.live import (
    FeedKey,
    FeedMessage,
    FeedPacket,
    FeedSound,
    FeedSoundPacket,
    FeedStatus,
    FeedStream,
    LiveState,
    ViewerInit,
    ViewerSound,
    ViewerStats,
)

log = get_logger(__name__)

# A camera that sends nothing for so long has stalled.
STALL_MS = 5_000
GROUP_MAX_BYTES = 24_000_000
STATS_EVERY_MS = 5_000
RATE_WINDOW_MS = 5_000
# No stream makes segments faster than this for long, not one whose pictures are all keyframes.
NUMBER_EVERY_MS = 10


class Feed(Protocol):
    """Where a stream's packets come from."""

    @property
    def generation(self) -> int: ...

    def picture(self) -> "asyncio.Future[bytes]": ...

    def close(self, code: int, reason: str) -> None: ...


class LiveStream:
    def __init__(self, key: FeedKey, clock: Clock) -> None:
        self.key = key
        self._clock = clock
        self._viewers: tuple[SocketViewer, ...] = ()
        self._listeners: tuple[SocketViewer, ...] = ()  # those of them that hear
        self.feed: Feed | None = None
        self._stream: FeedStream | None = None
        self._described: Described | None = None
        self._begin: tuple[bytes, ...] = ()  # the init message and the init segment, framed
        self._begin_heard: tuple[bytes, ...] = ()  # the same with sound, where there is any
        self._sound: Sound | None = None
        self._sound_said: FeedSound | None = None
        self._sound_times: SoundTimes | None = None
        self._shown: tuple[int, int] | None = None  # the newest picture: when it came to the worker, and its time
        self._timeline = Timeline()
        self._group: list[Fragment] = []
        self._group_bytes = 0
        self._needs_key = True
        self._number = 0
        self._status = words.status("connecting", "", "", clock.now_ms())
        self._packet_boot_ms = clock.boot_ms()
        self._recent: deque[tuple[int, int]] = deque()  # boot ms and bytes of the last seconds' packets
        self._stats_boot_ms = clock.boot_ms()
        self.segments: Segments | None = None
        self.sound_segments: Segments | None = None
        # Told when it turns out that this video can't be shown as it is.
        self.on_unplayable: Callable[[LiveStream], None] = lambda stream: None
        self._keyframe: tuple[FeedStream, bytes, int] | None = None

    @property
    def viewers(self) -> tuple[SocketViewer, ...]:
        return self._viewers

    @property
    def codec(self) -> str:
        """Of its video; empty while that is not known."""
        return "" if self._described is None else self._described.codec

    @property
    def state(self) -> LiveState:
        return self._status.state

    @property
    def keyframe(self) -> "tuple[FeedStream, bytes, int] | None":
        """The newest keyframe: its stream, access unit and arrival."""
        return self._keyframe

    # Viewers --------------------------------------------------------------------------------------------------

    def attach(self, viewer: SocketViewer) -> None:
        """Shows it how things stand and, at once, the picture there is."""
        viewer.send(text_frame(self._status))
        if self._sound is not None:
            viewer.send(self._sound_frame())
        if self._begin:
            viewer.begin(self._begin_of(viewer))
            for fragment in self._group:
                if viewer.hears or not fragment.is_sound:
                    viewer.offer(fragment)
        self._viewers = (*self._viewers, viewer)
        if viewer.hears:
            self._listeners = (*self._listeners, viewer)

    def detach(self, viewer: SocketViewer) -> None:
        self._viewers = tuple(one for one in self._viewers if one is not viewer)
        self._listeners = tuple(one for one in self._listeners if one is not viewer)

    def _begin_of(self, viewer: SocketViewer) -> tuple[bytes, ...]:
        return self._begin_heard if viewer.hears and self._begin_heard else self._begin

    def begin_segments(self) -> Segments:
        """From now on there are segments, too."""
        if self.segments is None:
            self.segments = Segments(self._first_number)
            if self._described is not None:
                self.segments.begin(init_segment(self._described), mime_of(self._described))
                self.segments.begin_with([one for one in self._group if not one.is_sound])
        return self.segments

    @property
    def note(self) -> tuple[str, str]:
        """Why pictures are not as the camera sends them, and what it sends; empty when they are."""
        return ("", "") if self._stream is None else (self._stream.note, self._stream.source_codec)

    @property
    def segment_sound(self) -> str:
        """What can be heard in segments; their players play no Opus."""
        return "aac" if self._sound is not None and self._sound.mime != "opus" else ""

    def begin_sound_segments(self) -> Segments:
        """Segments with sound; those without where there is none that all players of segments play."""
        if not self.segment_sound or self._sound is None or self._described is None:
            return self.begin_segments()
        if self.sound_segments is None:
            self.sound_segments = Segments(self._first_number)
            sound = self._sound
            self.sound_segments.begin(init_segment(self._described, sound), mime_of(self._described, sound))
            self.sound_segments.begin_with(self._group)
        return self.sound_segments

    @property
    def _first_number(self) -> int:
        """Higher than that of any segment so far, of any stream."""
        return self._clock.boot_ms() // NUMBER_EVERY_MS

    def end_segments(self) -> None:
        self.segments = self.sound_segments = None

    # What comes -----------------------------------------------------------------------------------------------

    def fed_by(self, feed: Feed | None) -> None:
        """Another feed, or none: pictures go on with its first keyframe, later."""
        self.feed = feed
        self._needs_key = True
        self._timeline.begin_anew()
        self._shown = None
        if self._sound_times is not None:
            self._sound_times.begin_anew()
        self._forget_group()
        for segments in (self.segments, self.sound_segments):
            if segments is not None:
                segments.interrupted()
        self._packet_boot_ms = self._clock.boot_ms()

    def take(self, message: FeedMessage) -> None:
        if isinstance(message, FeedPacket):
            self._take_packet(message)
        elif isinstance(message, FeedSoundPacket):
            self._take_sound(message)
        elif isinstance(message, FeedStatus):
            if self._is_news(message.state):
                self.set_status(message.state, message.reason, message.message)
            if message.reason == "codec":
                self.on_unplayable(self)
        elif isinstance(message, FeedStream):
            self._take_stream(message)

    def _is_news(self, said: LiveState) -> bool:
        """Pictures say best that it is live. A worker that connects anew says first what went wrong before, so while
        pictures are shown *connecting* is only a word that came late."""
        return said != "live" and (said, self.state) != ("connecting", "live")

    def set_status(self, state: LiveState, reason: str = "", message: str = "") -> None:
        """Tells the viewers, when it is something else than before."""
        old = self._status
        if (old.state, old.reason, old.message) == (state, reason, message[:255]):
            return
        self._status = words.status(state, reason, message, self._clock.now_ms())
        frame = text_frame(self._status)
        for viewer in self._viewers:
            viewer.send(frame)

    def tick(self) -> None:
        """Now and then: whether it stands still, what viewers take, and how much goes by."""
        boot_ms = self._clock.boot_ms()
        if self.state == "live" and boot_ms - self._packet_boot_ms >= STALL_MS:
            self.set_status("stalled", "no_video")
        for viewer in self._viewers:
            viewer.tick(boot_ms)
        if boot_ms - self._stats_boot_ms >= STATS_EVERY_MS:
            self._stats_boot_ms = boot_ms
            self._send_stats(boot_ms)

    def _take_stream(self, stream: FeedStream) -> None:
        """What the packets that follow are; viewers need a new init segment when that is another video."""
        old, self._stream = self._stream, stream
        if old == stream and self._described is not None:
            return
        self._needs_key = True
        self._forget_group()
        if not stream.extradata and stream.codec in ("h264", "hevc"):
            return  # its first keyframe will tell
        try:
            described = describe(stream.codec, stream.extradata)
        except BadInput as error:
            self.set_status("refused", "codec", error.message)
            self.on_unplayable(self)
            return
        is_same = described == self._described and old is not None and old.note == stream.note
        is_same_sound = self._hear_of(stream.sound)
        if is_same and is_same_sound:
            return
        self._described = described
        self._begin = self._beginning(described, stream, None)
        self._begin_heard = () if self._sound is None else self._beginning(described, stream, self._sound)
        if self.segments is not None and not is_same:
            self.segments.begin(init_segment(described), mime_of(described))
        if not self.segment_sound or self._sound is None:
            self.sound_segments = None
        elif self.sound_segments is not None:
            self.sound_segments.begin(init_segment(described, self._sound), mime_of(described, self._sound))
        for viewer in self._viewers:
            # Whoever does not hear is spared what concerns the sound alone.
            if not is_same or viewer.hears:
                viewer.begin(self._begin_of(viewer))

    def _beginning(self, video: Described, stream: FeedStream, sound: Sound | None) -> tuple[bytes, ...]:
        told = ViewerInit(
            mime=mime_of(video, sound),
            codec=video.codec,
            width=video.width,
            height=video.height,
            note=stream.note,
            source_codec=stream.source_codec,
        )
        return text_frame(told), websocket.frame(websocket.BINARY, init_segment(video, sound))

    def _hear_of(self, said: FeedSound | None) -> bool:
        """Which sound there is from now on; whether it is the same as before."""
        if said == self._sound_said:
            return True
        self._sound_said, self._sound = said, None
        if said is not None:
            try:
                self._sound = describe_sound(said.codec, said.config, SoundShape(said.rate, said.channels))
                lasts = length(said.codec, silence(said.codec, said.channels))
                self._sound_times = SoundTimes(self._sound.rate, lasts)
            except BadInput as error:
                log.info("a camera's sound can't be played", cause=error.message)
        frame = self._sound_frame()
        for viewer in self._viewers:
            viewer.send(frame)
        return False

    def _sound_frame(self) -> bytes:
        is_heard = self._sound is not None and self._sound_said is not None
        return text_frame(ViewerSound(codec=self._sound_said.codec if is_heard and self._sound_said else ""))

    def _take_sound(self, packet: FeedSoundPacket) -> None:
        sound, said, times = self._sound, self._sound_said, self._sound_times
        if sound is None or said is None or times is None or self._shown is None or self._needs_key:
            return
        shown_boot_ms, shown = self._shown
        due = (shown + (packet.boot_ms - shown_boot_ms) * TICKS_PER_SEC // 1000) * sound.rate // TICKS_PER_SEC
        lasts = length(said.codec, packet.data)
        pts = None if packet.pts is None else packet.pts * sound.rate // said.rate
        silent, start = times.place(pts, lasts, max(due, 0))
        self._be_silent(silent, said)
        if start is not None and lasts:
            self._sounded(packet.data, start, lasts)

    def _be_silent(self, starts: range, said: FeedSound) -> None:
        data = silence(said.codec, said.channels)
        for start in starts:
            self._sounded(data, start, starts.step)

    def _sounded(self, data: bytes, start: int, lasts: int) -> None:
        assert self._sound is not None
        self._number += 1
        fragment = make_sound_fragment(self._number, data, start, lasts, self._sound.rate)
        if self._group:
            self._keep(fragment)
        for viewer in self._listeners:
            viewer.offer(fragment)
        if self.sound_segments is not None:
            self.sound_segments.add(fragment)

    def _take_packet(self, packet: FeedPacket) -> None:
        stream, described = self._stream, self._described
        boot_ms = self._clock.boot_ms()
        self._packet_boot_ms = boot_ms
        if stream is None or described is None:
            return
        if packet.is_keyframe:
            self._needs_key = False
            self._forget_group()
            self._keyframe = (stream, bytes(packet.data), boot_ms)
        elif self._needs_key:
            return
        placed = self._timeline.place(packet.pts, packet.dts, stream.time_base, packet.is_keyframe, boot_ms)
        self._number += 1
        fragment = make_fragment(self._number, described.codec, packet, placed)
        self._keep(fragment)
        if self._status.state != "live":
            self.set_status("live")
        for viewer in self._viewers:
            viewer.offer(fragment)
        for segments in (self.segments, self.sound_segments):
            if segments is not None:
                segments.add(fragment)
        self._shown = (packet.boot_ms, placed.dts)
        if self._sound_times is not None and self._sound_said is not None and self._sound is not None:
            at = placed.dts * self._sound.rate // TICKS_PER_SEC
            self._sound_times.begin(at)
            self._be_silent(self._sound_times.keep_up(at), self._sound_said)
        self._recent.append((boot_ms, len(fragment.frame)))
        while self._recent[0][0] < boot_ms - RATE_WINDOW_MS:
            self._recent.popleft()

    def _keep(self, fragment: Fragment) -> None:
        """For who comes next. A group that is too large is shown to nobody who comes in its middle."""
        if self._group_bytes + fragment.size > GROUP_MAX_BYTES:
            self._forget_group()
        if self._group or fragment.is_key:
            self._group.append(fragment)
            self._group_bytes += fragment.size

    def _forget_group(self) -> None:
        self._group, self._group_bytes = [], 0

    def _send_stats(self, boot_ms: int) -> None:
        since = boot_ms - RATE_WINDOW_MS
        while self._recent and self._recent[0][0] < since:
            self._recent.popleft()
        seconds = RATE_WINDOW_MS / 1000
        fps = round(len(self._recent) / seconds, 1)
        kbps = round(sum(size for _, size in self._recent) * 8 / 1000 / seconds)
        for viewer in self._viewers:
            viewer.send(
                text_frame(ViewerStats(fps=fps, kbps=kbps, viewers=len(self._viewers), skipped=viewer.skipped))
            )
