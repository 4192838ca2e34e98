"""HLS from the same fragments: one segment a group of pictures, a few in memory, none on disk."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from camserver.media.fragments import TICKS_PER_SEC
from camserver.services.streamer.fragments import Fragment

SEGMENTS_LISTED = 6
# Players may still be loading what just left the list.
SEGMENTS_KEPT = SEGMENTS_LISTED + 3
# Groups of pictures that are longer are cut.
SEGMENT_MAX_SEC = 4.0
SEGMENT_MAX_BYTES = 16_000_000
INITS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Segment:
    number: int
    data: bytes
    seconds: float
    init: int
    follows: bool  # directly on the one before


class Segments:
    def __init__(self) -> None:
        self._number = 0
        self._open: list[Fragment] = []
        self._open_bytes = 0
        self._end = 0  # of its pictures
        self._listed: deque[Segment] = deque(maxlen=SEGMENTS_KEPT)
        self._inits: dict[int, tuple[bytes, str]] = {}
        self._init = 0
        self._follows = True

    @property
    def is_empty(self) -> bool:
        return not self._listed

    def begin(self, init: bytes, mime: str) -> None:
        """Another video: what is begun is finished, and the next segment needs this init."""
        self._finish()
        self._init += 1
        self._inits[self._init] = (init, mime)
        self._inits.pop(self._init - INITS_KEPT, None)
        self._follows = False

    def interrupted(self) -> None:
        """Pictures are missing from here on."""
        self._finish()
        self._follows = False

    def add(self, fragment: Fragment) -> None:
        is_full = self._open_sec >= SEGMENT_MAX_SEC or self._open_bytes > SEGMENT_MAX_BYTES
        if fragment.is_key or (is_full and not fragment.is_sound):
            self._finish()
        if not self._open and (fragment.is_sound or (not fragment.is_key and not self._listed)):
            return
        self._open.append(fragment)
        self._open_bytes += fragment.size
        if not fragment.is_sound:
            self._end = fragment.dts + fragment.duration

    def begin_with(self, fragments: Sequence[Fragment]) -> None:
        for fragment in fragments:
            self.add(fragment)

    def playlist(self, prefix: str = "", sound: str = "") -> str:
        """The list; what it names begins with `prefix`. `sound`: what can be heard, if there is anything."""
        listed = list(self._listed)[-SEGMENTS_LISTED:]
        longest = max((segment.seconds for segment in listed), default=1.0)
        lines = [
            "#EXTM3U",
            "#EXT-X-VERSION:7",
            f"#EXT-X-TARGETDURATION:{max(round(longest + 0.5), 1)}",
            f"#EXT-X-MEDIA-SEQUENCE:{listed[0].number if listed else 0}",
        ]
        if sound:
            lines.append(f"#CAMSERVER-SOUND:{sound}")
        init = None
        for number, segment in enumerate(listed):
            if number and not segment.follows:
                lines.append("#EXT-X-DISCONTINUITY")
            if segment.init != init:
                init = segment.init
                lines.append(f'#EXT-X-MAP:URI="{prefix}init-{init}.mp4"')
            lines += [f"#EXTINF:{segment.seconds:.3f},", f"{prefix}{segment.number}.m4s"]
        return "\n".join([*lines, ""])

    def segment(self, number: int) -> bytes | None:
        return next((one.data for one in self._listed if one.number == number), None)

    def init(self, number: int) -> tuple[bytes, str] | None:
        return self._inits.get(number)

    @property
    def _open_sec(self) -> float:
        if not self._open:
            return 0.0
        return (self._end - self._open[0].dts) / TICKS_PER_SEC

    def _finish(self) -> None:
        if not self._open:
            return
        data = b"".join(fragment.mp4 for fragment in self._open)
        self._number += 1
        self._listed.append(Segment(self._number, data, self._open_sec, self._init, self._follows))
        self._follows = True
        self._open, self._open_bytes = [], 0
