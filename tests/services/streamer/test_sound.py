"""Sound at the streamer: for those who want to hear, beside the pictures, and never a reason why they stand."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from camserver.services.streamer.sound import SoundTimes
from camserver.wire.live import FeedSound
from tests.media.test_sound import tone
from tests.services.streamer.live_rig import Rig, heard, shown, streamer

AAC = FeedSound("aac", b"\x14\x08", 16_000, 1)
OPUS = FeedSound("opus", b"", 48_000, 2)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with streamer() as rig:
        yield rig


@pytest.mark.parametrize("sound", [AAC, OPUS], ids=["aac", "opus"])
async def test_who_wants_to_hear_does_and_the_others_get_pictures_alone(rig: Rig, sound: FeedSound) -> None:
    listener = await rig.watch(rig.desk.admit(), hears=True)
    other = await rig.watch(rig.desk.admit())
    feed = await rig.feed()
    feed.begin(sound=sound)
    pieces = tone(sound.codec, sound.rate, sound.channels, seconds=1.0)
    step = 1024 if sound.codec == "aac" else 960
    pushed = 0
    for number, piece in enumerate(pieces):
        if number * step >= pushed * sound.rate // 10:
            feed.push(1)
            pushed += 1
        feed.sound(piece, 50_000 + number * step)
    feed.push(1)
    # Init segment, pictures and sound, each a message of its own.
    await listener.until_media(1 + pushed + len(pieces) + 1)
    assert "mp4a.40.2" in listener.inits[0]["mime"] or "opus" in listener.inits[0]["mime"]
    assert listener.sounds == [sound.codec]
    frames = heard(b"".join(listener.media))
    assert len(frames) == len(pieces)
    # One after the other, beside the pictures: no holes.
    ends = [(frame.pts, frame.pts + frame.samples) for frame in frames]
    assert all(abs(end - begin) <= frames[0].samples for (_, end), (begin, _) in itertools.pairwise(ends))
    await other.until_media(1 + pushed + 1)
    assert other.sounds == [sound.codec]
    assert "," not in other.inits[0]["mime"]
    assert len(other.frames()) == pushed + 1


async def test_a_microphone_that_says_nothing_holds_nothing_up(rig: Rig) -> None:
    listener = await rig.watch(rig.desk.admit(), hears=True)
    feed = await rig.feed()
    feed.begin(sound=AAC)
    feed.push(30)
    while len(listener.media) < 2 or len(shown(b"".join(listener.media))) < 30:
        assert await listener.next()
    frames = heard(b"".join(listener.media))
    # Three seconds of pictures: nearly as much silence.
    assert sum(frame.samples for frame in frames) >= 2.0 * 16_000


async def test_segments_have_sound_where_it_is_asked_for(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    feed = await rig.feed()
    feed.begin(sound=AAC)
    for number, piece in enumerate(tone("aac", 16_000, 1, seconds=2.0)):
        feed.push(1)
        feed.sound(piece, number * 1024)
    for name, has_sound in (("sound.m3u8", True), ("index.m3u8", False)):
        asking = asyncio.create_task(rig.hls(lease_id, name))
        status, playlist, _ = await feed.push_until(asking, f"{name} is there")
        assert status == 200
        names = [line for line in playlist.decode().splitlines() if line and not line.startswith("#")]
        init = playlist.decode().partition('URI="')[2].partition('"')[0]
        assert all(one.startswith("s-") == has_sound for one in (init, *names))
        status, data, mime = await rig.hls(lease_id, init)
        assert (status, "mp4a" in mime) == (200, has_sound)
        whole = data + b"".join([(await rig.hls(lease_id, one))[1] for one in names])
        assert shown(whole)
        assert not has_sound or heard(whole)


async def test_sound_can_come_and_go(rig: Rig) -> None:
    listener = await rig.watch(rig.desk.admit(), hears=True)
    other = await rig.watch(rig.desk.admit())
    feed = await rig.feed()
    feed.begin()
    feed.push(5)
    await listener.until_media(6)
    feed.begin(sound=AAC)
    feed.push(5)
    while len(listener.inits) < 2 or listener.sounds != ["aac"]:
        assert await listener.next()
    await other.until_media(11)
    assert len(other.inits) == 1  # nothing changed for those who only look


# Times ---------------------------------------------------------------------------------------------------------

RATE, PIECE = 16_000, 1024


def test_pieces_follow_on_one_another_whatever_their_arrival() -> None:
    times = SoundTimes(RATE, PIECE)
    times.begin(160_000)
    placed = [
        times.place(900_000 + number * PIECE, PIECE, 160_000 + number * PIECE + jitter)
        for number, jitter in enumerate((0, 700, -300, 1500, 40, 0))
    ]
    assert [start for _, start in placed] == [160_000 + number * PIECE for number in range(6)]
    assert not any(list(silent) for silent, _ in placed)


def test_a_hole_is_filled_and_a_clock_that_jumps_is_set_anew() -> None:
    times = SoundTimes(RATE, PIECE)
    times.begin(0)
    assert times.place(0, PIECE, 0) == (range(0), 0)
    silent, start = times.place(RATE, PIECE, RATE)
    assert silent.start == PIECE
    assert start == silent.stop
    assert start is not None
    assert RATE - start < PIECE
    # The camera begins to count anew; sound goes on where it was.
    _, again = times.place(5, PIECE, RATE + PIECE)
    assert again == start + PIECE


def test_sound_that_comes_too_early_is_left_out_and_silence_keeps_up() -> None:
    times = SoundTimes(RATE, PIECE)
    times.begin(0)
    for number in range(20):
        times.place(number * PIECE, PIECE, 0)
    assert times.place(20 * PIECE, PIECE, 0) == (range(0), None)
    assert times.keep_up(0) == range(0)
    assert len(times.keep_up(4 * RATE)) > 20
    # A stream that stood for long is not filled up.
    assert times.keep_up(400 * RATE) == range(0)
