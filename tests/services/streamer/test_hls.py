"""The list of segments as players of others read it (RFC 8216): what it promises once, it keeps."""

import re

import pytest

from camserver.media.fragments import TICKS_PER_SEC
from camserver.services.streamer.fragments import Fragment
from camserver.services.streamer.hls import SEGMENTS_KEPT_BEHIND, SEGMENTS_LISTED_MAX, Segments


class Camera:
    """Sends pictures one after the other."""

    def __init__(self) -> None:
        self.segments = Segments()
        self.segments.begin(b"init", "video/mp4")
        self._dts = 0

    def group(self, pictures: int, seconds: float) -> None:
        """A keyframe and what follows it, each shown for so long."""
        for number in range(pictures):
            duration = round(seconds * TICKS_PER_SEC)
            self.segments.add(Fragment(b"picture", 0, number == 0, self._dts, duration))
            self._dts += duration

    def interrupted(self) -> None:
        self.segments.interrupted()

    def number(self, tag: str) -> int:
        found = re.search(rf"^#EXT-X-{tag}:(\d+)$", self.segments.playlist(), re.MULTILINE)
        assert found is not None, self.segments.playlist()
        return int(found[1])

    @property
    def seconds(self) -> list[float]:
        return [float(one) for one in re.findall(r"^#EXTINF:(.+),$", self.segments.playlist(), re.MULTILINE)]


@pytest.mark.parametrize(
    "groups",
    [[(25, 0.04)] * 30, [(10, 0.1), (80, 0.1), (10, 0.1)] * 5, [(200, 0.04)] * 4, [(3, 1.7)] * 10],
    ids=["one second", "of different lengths", "longer than a segment", "few pictures"],
)
def test_the_target_duration_never_changes_and_holds(groups: list[tuple[int, float]]) -> None:
    camera = Camera()
    targets = {camera.number("TARGETDURATION")}
    for pictures, seconds in groups:
        camera.group(pictures, seconds)
        targets.add(camera.number("TARGETDURATION"))
        assert all(one <= max(targets) for one in camera.seconds)
    assert targets == {4}


def test_a_picture_that_is_shown_for_longer_raises_it_for_good() -> None:
    camera = Camera()
    for pictures, seconds in [(1, 6.5), (25, 0.04), *[(25, 0.04)] * 40]:
        camera.group(pictures, seconds)
    assert camera.number("TARGETDURATION") == 7
    assert 6.5 not in camera.seconds


def test_the_list_covers_three_target_durations_and_is_bounded() -> None:
    camera = Camera()
    for _ in range(40):
        camera.group(25, 0.04)
    assert sum(camera.seconds) == pytest.approx(12)
    for _ in range(100):
        camera.group(1, 0.04)
    assert len(camera.seconds) == SEGMENTS_LISTED_MAX
    newest = camera.number("MEDIA-SEQUENCE") + SEGMENTS_LISTED_MAX - 1
    assert camera.segments.segment(newest) == b"picture"
    assert camera.segments.segment(newest - SEGMENTS_LISTED_MAX - SEGMENTS_KEPT_BEHIND) is None


def test_a_discontinuity_that_left_the_list_is_counted() -> None:
    """Each segment keeps its number of discontinuities before it, whichever part of them is still listed."""
    camera = Camera()
    of_segment: dict[str, int] = {}
    for turn in range(60):
        camera.group(20, 0.1)
        if turn % 4 == 3:
            camera.interrupted()
        count = camera.number("DISCONTINUITY-SEQUENCE")
        for line in camera.segments.playlist().splitlines():
            count += line == "#EXT-X-DISCONTINUITY"
            if line.endswith(".m4s"):
                assert of_segment.setdefault(line, count) == count
    assert camera.number("DISCONTINUITY-SEQUENCE") == max(of_segment.values()) - 1 > 10
