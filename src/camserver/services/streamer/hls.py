"""HLS from the same fragments: one segment a group of pictures, a few in memory, none on disk."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from camserver.media.fragments import TICKS_PER_SEC
from camserver.services.streamer.fragments import Fragment

# Groups of pictures that are longer are cut.
SEGMENT_MAX_SEC = 4.0
# What the list says that no segment is longer than. It may not change while somebody reads (RFC 8216, 6.2.1), so it
# is what segments are cut at from the beginning; only a single picture that is shown for longer makes it grow.
TARGET_SEC = round(SEGMENT_MAX_SEC)
# So many are in the list, or more where they are short: it covers three times the longest (6.2.2), up to a bound.
SEGMENTS_LISTED = 6
SEGMENTS_LISTED_MAX = 36
LISTED_TARGETS = 3
# Players may still be loading what just left the list.
SEGMENTS_KEPT_BEHIND = 3
SEGMENT_MAX_BYTES = 16_000_000
INITS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Segment:
    number: int
    data: bytes
    seconds: float
    init: int
    follows: bool  # directly on the one before
    discontinuities: int  # up to its beginning


class Segments:
    """`first`: what numbers begin behind. Where a viewing goes on with another stream, its numbers must go on, too:
    players take lower ones for what they have had, and the same name for the same file."""

    def __init__(self, first: int = 0) -> None:
        self._number = first
        self._open: list[Fragment] = []
        self._open_bytes = 0
        self._end = 0  # of its pictures
        self._kept: deque[Segment] = deque()
        self._target_sec = TARGET_SEC
        self._discontinuities = first
        self._inits: dict[int, tuple[bytes, str]] = {}
        self._init = first
        self._follows = True

    @property
    def is_empty(self) -> bool:
        return not self._kept

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
        with_it_sec = self._open_sec + fragment.duration / TICKS_PER_SEC
        is_full = with_it_sec > SEGMENT_MAX_SEC or self._open_bytes > SEGMENT_MAX_BYTES
        if fragment.is_key or (is_full and not fragment.is_sound):
            self._finish()
        if not self._open and (fragment.is_sound or (not fragment.is_key and not self._kept)):
            return
        self._open.append(fragment)
        self._open_bytes += fragment.size
        if not fragment.is_sound:
            self._end = fragment.dts + fragment.duration

    def begin_with(self, fragments: Sequence[Fragment]) -> None:
        for fragment in fragments:
            self.add(fragment)

    def playlist(self, prefix: str = "", told: Sequence[str] = ()) -> str:
        """The list; what it names begins with `prefix`. `told` are lines of ours, which other players pass over."""
        listed = list(self._kept)[-self._listed :]
        lines = [
            "#EXTM3U",
            "#EXT-X-VERSION:7",
            f"#EXT-X-TARGETDURATION:{self._target_sec}",
            f"#EXT-X-MEDIA-SEQUENCE:{listed[0].number if listed else 0}",
            f"#EXT-X-DISCONTINUITY-SEQUENCE:{listed[0].discontinuities if listed else 0}",
        ]
        lines += told
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
        return next((one.data for one in self._kept if one.number == number), None)

    def init(self, number: int) -> tuple[bytes, str] | None:
        return self._inits.get(number)

    @property
    def _listed(self) -> int:
        """How many of the newest are in the list."""
        covered_sec = 0.0
        for number, segment in enumerate(reversed(self._kept)):
            is_long_enough = number >= SEGMENTS_LISTED and covered_sec >= LISTED_TARGETS * self._target_sec
            if is_long_enough or number == SEGMENTS_LISTED_MAX:
                return number
            covered_sec += segment.seconds
        return len(self._kept)

    @property
    def _open_sec(self) -> float:
        if not self._open:
            return 0.0
        return (self._end - self._open[0].dts) / TICKS_PER_SEC

    def _finish(self) -> None:
        if not self._open:
            return
        data = b"".join(fragment.mp4 for fragment in self._open)
        seconds = self._open_sec
        if self._kept and not self._follows:
            self._discontinuities += 1
        self._number += 1
        self._kept.append(Segment(self._number, data, seconds, self._init, self._follows, self._discontinuities))
        self._target_sec = max(self._target_sec, ceil(seconds))
        while len(self._kept) > self._listed + SEGMENTS_KEPT_BEHIND:
            self._kept.popleft()
        self._follows = True
        self._open, self._open_bytes = [], 0
