"""One camera in one quality: muxed once, shown to all who watch, with the group of pictures so far for newcomers.

It knows packets, viewers and how things stand. Whether somebody may watch, and who feeds it, is decided elsewhere.
"""

from collections import deque
from typing import Protocol

from camserver.base import websocket
from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.media.fragments import Timeline, init_segment, mime_of
from camserver.media.parameter_sets import Described, describe
from camserver.services.streamer import words
from camserver.services.streamer.fragments import Fragment, make_fragment
from camserver.services.streamer.hls import Segments
from camserver.services.streamer.viewers import SocketViewer, text_frame
from camserver.wire.live import (
    FeedKey,
    FeedMessage,
    FeedPacket,
    FeedStatus,
    FeedStream,
    LiveState,
    ViewerInit,
    ViewerStats,
)

log = get_logger(__name__)

# A camera that sends nothing for so long has stalled.
STALL_MS = 5_000
GROUP_MAX_BYTES = 24_000_000
STATS_EVERY_MS = 5_000
RATE_WINDOW_MS = 5_000


class Feed(Protocol):
    """Where a stream's packets come from."""

    @property
    def generation(self) -> int: ...

    def close(self, code: int, reason: str) -> None: ...


class LiveStream:
    def __init__(self, key: FeedKey, clock: Clock) -> None:
        self.key = key
        self._clock = clock
        self._viewers: tuple[SocketViewer, ...] = ()
        self.feed: Feed | None = None
        self._stream: FeedStream | None = None
        self._described: Described | None = None
        self._begin: tuple[bytes, ...] = ()  # the init message and the init segment, framed
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
        self._keyframe: tuple[FeedStream, bytes, int] | None = None

    @property
    def viewers(self) -> tuple[SocketViewer, ...]:
        return self._viewers

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
        if self._begin:
            viewer.begin(self._begin)
            for fragment in self._group:
                viewer.offer(fragment)
        self._viewers = (*self._viewers, viewer)

    def detach(self, viewer: SocketViewer) -> None:
        self._viewers = tuple(one for one in self._viewers if one is not viewer)

    def begin_segments(self) -> Segments:
        """From now on there are segments, too."""
        if self.segments is None:
            self.segments = Segments()
            if self._described is not None:
                self.segments.begin(init_segment(self._described), mime_of(self._described))
                self.segments.begin_with(self._group)
        return self.segments

    def end_segments(self) -> None:
        self.segments = None

    # What comes -----------------------------------------------------------------------------------------------

    def fed_by(self, feed: Feed | None) -> None:
        """Another feed, or none: pictures go on with its first keyframe, later."""
        self.feed = feed
        self._needs_key = True
        self._timeline.begin_anew()
        self._forget_group()
        if self.segments is not None:
            self.segments.interrupted()
        self._packet_boot_ms = self._clock.boot_ms()

    def take(self, message: FeedMessage) -> None:
        if isinstance(message, FeedPacket):
            self._take_packet(message)
        elif isinstance(message, FeedStatus):
            if message.state != "live":
                self.set_status(message.state, message.reason, message.message)
        else:
            self._take_stream(message)

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
            return
        if described == self._described and old is not None and old.note == stream.note:
            return
        self._described = described
        init, mime = init_segment(described), mime_of(described)
        told = ViewerInit(
            mime=mime,
            codec=described.codec,
            width=described.width,
            height=described.height,
            note=stream.note,
        )
        self._begin = (text_frame(told), websocket.frame(websocket.BINARY, init))
        if self.segments is not None:
            self.segments.begin(init, mime)
        for viewer in self._viewers:
            viewer.begin(self._begin)

    def _take_packet(self, packet: FeedPacket) -> None:
        stream, described = self._stream, self._described
        boot_ms = self._clock.boot_ms()
        self._packet_boot_ms = boot_ms
        if stream is None or described is None:
            return
        if packet.is_keyframe:
            self._needs_key = False
            self._forget_group()
            self._keyframe = (stream, packet.data, boot_ms)
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
        if self.segments is not None:
            self.segments.add(fragment)
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
