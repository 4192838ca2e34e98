"""Films for browsers that don't play what the camera sends: H.264 that shows the same, or nothing in time."""

import io
from fractions import Fraction
from itertools import pairwise

import av
import pytest

from camserver.base.errors import BadInput, Unavailable
from camserver.media.mp4_clip import film
from camserver.media.packets import Packet, Stream
from camserver.media.playable_film import film_transcoded, is_playable, playable_anew
from camserver.media.transcoding import VideoWork
from tests.media.test_mp4_clip import FRAMES, SIZE, played, recorded, rises

H265 = {"x265-params": "log-level=none:pools=none"}
WORK = VideoWork(width_max=1280, fps_max=30)


@pytest.mark.parametrize(
    ("codec", "options", "plays", "expected"),
    [
        ("libx264", {}, ("h264",), True),
        ("libx265", H265, ("h264",), False),
        ("libx265", H265, ("h264", "hevc"), True),
    ],
)
def test_what_a_browser_plays(codec: str, options: dict[str, str], plays: tuple[str, ...], expected: bool) -> None:
    assert is_playable(recorded(codec, **options), plays) is expected


def test_other_profiles_are_told_by_what_the_pictures_say() -> None:
    [first, *_] = recorded()
    sps = first.data.index(b"\0\0\0\1\x67") + 5
    odd = first.data[:sps] + bytes((122,)) + first.data[sps + 1 :]  # High 4:2:2
    [packet] = [Packet(first.stream, 0, 0, True, odd, 0)]
    assert not is_playable([packet], ("h264", "hevc"))
    assert not is_playable([Packet(Stream("mjpeg", b"", Fraction(1, 1000)), 0, 0, True, b"", 0)], ("h264",))


@pytest.mark.parametrize(
    "options", [H265, {"x265-params": "log-level=none:pools=none:bframes=3"}], ids=["plain", "b"]
)
def test_every_picture_is_in_it_in_order_and_at_its_time(options: dict[str, str]) -> None:
    clip = film_transcoded(recorded("libx265", **options), WORK, lambda: True)
    assert (clip.codec, clip.width, clip.height) == ("h264", *SIZE)
    about, times, levels = played(clip.mp4)
    assert about == ("h264", *SIZE)
    assert len(levels) == FRAMES
    assert rises(levels)
    assert all(later - earlier == pytest.approx(0.1, abs=0.02) for earlier, later in pairwise(times))
    with av.open(io.BytesIO(clip.mp4)) as container:
        assert container.streams.video[0].codec_context.profile == "Main"


def test_it_is_no_larger_than_a_live_view() -> None:
    clip = film_transcoded(recorded("libx265", **H265), VideoWork(width_max=80, fps_max=5), lambda: True)
    _, times, _ = played(clip.mp4)
    assert clip.width == 80
    assert FRAMES // 2 - 1 <= len(times) <= FRAMES // 2 + 1


def test_it_stops_when_nobody_wants_it_any_more() -> None:
    asked: list[int] = []

    def is_wanted() -> bool:
        asked.append(1)
        return len(asked) < 5

    with pytest.raises(Unavailable, match="too long"):
        film_transcoded(recorded("libx265", **H265), WORK, is_wanted)
    assert len(asked) == 5


def test_what_holds_no_picture_is_no_film() -> None:
    [first, *_] = recorded("libx265", **H265)
    broken = Packet(first.stream, 0, 0, True, b"\0\0\0\1 no picture", 0)
    with pytest.raises(BadInput, match="no video"):
        film_transcoded([broken], WORK, lambda: True)


# Films that are kept


@pytest.mark.parametrize(
    "options", [H265, {"x265-params": "log-level=none:pools=none:bframes=3"}], ids=["plain", "b"]
)
def test_a_film_that_is_kept_is_made_anew_with_every_picture_at_its_time(options: dict[str, str]) -> None:
    made = playable_anew(film(recorded("libx265", **options)).mp4, WORK, lambda: True)
    assert made is not None
    about, times, levels = played(made)
    assert about == ("h264", *SIZE)
    assert len(levels) == FRAMES
    assert rises(levels)
    assert all(later - earlier == pytest.approx(0.1, abs=0.02) for earlier, later in pairwise(times))


def test_a_film_that_every_browser_plays_is_left_as_it_is() -> None:
    assert playable_anew(film(recorded()).mp4, WORK, lambda: True) is None


@pytest.mark.parametrize("content", [b"", b"no film", b"\0\0\0\x18ftypmp42" + bytes(16)])
def test_what_is_no_film_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput):
        playable_anew(content, WORK, lambda: True)
