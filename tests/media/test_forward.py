from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from av.video.frame import VideoFrame

from camserver.base.errors import BadInput
from camserver.media import forward
from camserver.media.forward import ForwardDecoder, ForwardShot
from camserver.media.keyframes import Keyframes
from camserver.media.nal_units import kind_of_bytes
from camserver.media.packets import Packet
from camserver.media.video_picture import decode
from tests.media.video import encoded, flat, refreshed


def shades(first: int, count: int) -> list[Packet]:
    return encoded([flat(first + 4 * number) for number in range(count)])


def shade(decoder: ForwardDecoder, packets: list[Packet]) -> float:
    return float(ForwardShot(tuple(packets), decoder).decode(320).gray(320).mean())


def is_recovery(one: Packet) -> bool:
    return kind_of_bytes("h264", one.data).is_recovery


def full_range(luma: int) -> float:
    return (luma - 16) * 255 / 219


def test_each_look_decodes_only_what_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    feed = forward._feed

    def noted(going: forward._Going, packets: Sequence[Packet]) -> VideoFrame | None:
        fed.append(len(packets) - going.seen)
        return feed(going, packets)

    monkeypatch.setattr(forward, "_feed", noted)
    packets = shades(40, 30)
    decoder = ForwardDecoder()
    for count in (5, 12, 30):
        assert abs(shade(decoder, packets[:count]) - full_range(40 + 4 * (count - 1))) < 3
    assert fed == [5, 7, 18]


def test_another_group_begins_anew() -> None:
    decoder = ForwardDecoder()
    assert abs(shade(decoder, shades(40, 5)) - full_range(56)) < 3
    assert abs(shade(decoder, shades(100, 3)) - full_range(108)) < 3


def test_forgetting_costs_nothing_but_time() -> None:
    decoder = ForwardDecoder()
    packets = shades(40, 10)
    shade(decoder, packets[:4])
    decoder.forget()
    assert abs(shade(decoder, packets) - full_range(76)) < 3


def test_the_same_packets_again_show_the_same_picture() -> None:
    decoder = ForwardDecoder()
    packets = shades(40, 6)
    assert shade(decoder, packets) == shade(decoder, packets)


def test_what_is_no_video_says_so() -> None:
    broken = [replace(one, data=b"\0\0\0\1nonsense") for one in shades(40, 2)]
    with pytest.raises(BadInput):
        shade(ForwardDecoder(), broken)


def test_a_group_that_is_damaged_is_named_once() -> None:
    decoder = ForwardDecoder()
    packets = shades(40, 4)
    shade(decoder, packets)
    assert decoder.take_broken() is None
    broken = [packets[0], replace(packets[1], data=b"\0\0\0\1\x67\xff\xff\xff")]
    with pytest.raises(BadInput):
        shade(decoder, broken)
    assert decoder.take_broken() is packets[0]
    assert decoder.take_broken() is None


async def test_intra_refresh_shows_whole_pictures_to_one_who_came_late() -> None:
    """A real encoder that sends one keyframe, at its very beginning, and nobody saw it."""
    made = encoded([flat(60 + 2 * number) for number in range(60)], 20, intra_refresh="1")
    assert [number for number, one in enumerate(made) if kind_of_bytes("h264", one.data).is_keyframe] == [0]
    late = [replace(one, is_keyframe=False, is_recovery=is_recovery(one)) for one in made][5:]
    looked = Keyframes(1000, lambda: late[-1].boot_ms)
    looked.begin()
    for one in late:
        looked.offer(one)
    got = await looked.take()
    assert isinstance(got, tuple)
    assert got[0].is_recovery
    assert got[-1] is late[-1]
    picture = ForwardShot(got, ForwardDecoder()).decode(320).gray(320)
    assert abs(float(picture.mean()) - full_range(60 + 2 * 59)) < 3
    assert int(picture.max()) - int(picture.min()) < 10  # no stripe of it is old or gray


async def test_h265_that_is_refreshed_piece_by_piece_is_seen_from_its_recovery_points() -> None:
    made = refreshed(60)
    kinds = [kind_of_bytes("hevc", one.data) for one in made]
    assert [number for number, kind in enumerate(kinds) if kind.is_keyframe] == [0]
    assert [number for number, kind in enumerate(kinds) if kind.is_recovery] == [20, 40]
    looked = Keyframes(1000, lambda: made[-1].boot_ms)
    looked.begin()
    for one in made[5:]:  # too late for the only keyframe
        looked.offer(one)
    got = await looked.take()
    assert isinstance(got, tuple)
    assert (got[0], got[-1]) == (made[40], made[59])
    picture = ForwardShot(got, ForwardDecoder()).decode(320).gray(320)
    assert np.array_equal(picture, decode(made).gray(320))
