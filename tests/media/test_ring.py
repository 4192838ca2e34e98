from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.leases import Fault
from camserver.media.packets import Miss, Packet, Stream
from camserver.media.ring import CAMERA_MAX_BYTES, Ring, Rings
from tests.media.video import H264, packet

LOST = Miss(Fault.NO_VIDEO, "the camera ended the video")


class Boot:
    ms = 0


def rings(boot: Boot, seconds: float = 10, max_bytes: int = 1_000_000) -> Rings:
    return Rings(max_bytes, seconds, lambda: boot.ms)


def feed(ring: Ring, boot: Boot, begin_ms: int, end_ms: int, keyframe_ms: int = 2_000, size: int = 100) -> None:
    """A packet every 100 ms, a keyframe every two seconds."""
    for ms in range(begin_ms, end_ms, 100):
        boot.ms = ms
        ring.offer(packet(ms, (ms - begin_ms) % keyframe_ms == 0, b"x" * size))


def times(packets: tuple[Packet, ...]) -> tuple[int, int]:
    return packets[0].boot_ms, packets[-1].boot_ms


def test_a_cut_begins_with_the_keyframe_before() -> None:
    boot = Boot()
    ring = rings(boot).new()
    feed(ring, boot, 0, 8_000)
    cut = ring.cut(3_500, 6_000)
    assert times(cut) == (2_000, 6_000)
    assert cut[0].is_keyframe


def test_what_is_too_old_is_forgotten_by_whole_groups() -> None:
    boot = Boot()
    ring = rings(boot, seconds=5).new()
    feed(ring, boot, 0, 20_000)
    cut = ring.cut(0, 20_000)
    assert times(cut) == (14_000, 19_900)
    assert cut[0].is_keyframe
    assert ring.size_bytes == 100 * len(cut)


def test_packets_before_the_first_keyframe_are_nothing() -> None:
    boot = Boot()
    ring = rings(boot).new()
    ring.offer(packet(0))
    assert ring.cut(0, 1_000) == ()
    assert ring.size_bytes == 0


def test_a_time_that_is_not_there_is_nothing() -> None:
    boot = Boot()
    ring = rings(boot).new()
    feed(ring, boot, 10_000, 14_000)
    assert ring.cut(0, 9_000) == ()
    assert ring.cut(15_000, 16_000) == ()


def test_the_memory_is_shared() -> None:
    boot = Boot()
    memory = rings(boot, seconds=60, max_bytes=20_000)
    first, second = memory.new(), memory.new()
    for ring in (first, second):
        feed(ring, boot, 0, 20_000)
    assert memory.share_bytes == 10_000
    assert memory.used_bytes <= 20_000
    assert first.cut(0, 20_000)[0].is_keyframe


def test_only_those_that_have_video_share_the_memory() -> None:
    boot = Boot()
    memory = rings(boot, seconds=60, max_bytes=20_000)
    patrols = [memory.new() for _ in range(9)]
    held = memory.new()
    feed(held, boot, 0, 15_000)
    assert memory.share_bytes == 20_000
    assert times(held.cut(0, 15_000)) == (0, 14_900)
    # One more has its share at once.
    feed(patrols[0], boot, 15_000, 16_000)
    assert memory.share_bytes == 10_000
    assert held.size_bytes <= 10_000


def test_a_group_that_does_not_fit_is_told_apart() -> None:
    boot = Boot()
    ring = rings(boot, seconds=60, max_bytes=2_500).new()
    feed(ring, boot, 0, 2_000)
    assert not ring.is_too_large
    feed(ring, boot, 2_000, 6_000, keyframe_ms=4_000)
    assert (ring.is_empty, ring.is_too_large) == (True, True)
    feed(ring, boot, 6_000, 10_000)
    assert not ring.is_too_large


def test_without_keyframes_a_cut_begins_at_a_recovery_point() -> None:
    boot = Boot()
    ring = rings(boot).new()
    for ms in range(0, 8_000, 100):
        boot.ms = ms
        ring.offer(packet(ms, is_recovery=ms % 1_000 == 0))
    cut = ring.cut(3_500, 6_000)
    assert times(cut) == (3_000, 6_000)
    assert cut[0].is_recovery


def test_one_camera_never_takes_all() -> None:
    assert rings(Boot(), max_bytes=10 * CAMERA_MAX_BYTES).share_bytes == CAMERA_MAX_BYTES


def test_a_camera_that_went_is_forgotten_by_the_others_video() -> None:
    boot = Boot()
    memory = rings(boot, seconds=5)
    gone, there = memory.new(), memory.new()
    feed(gone, boot, 0, 4_000)
    feed(there, boot, 4_000, 12_000)
    assert gone.size_bytes == 0
    assert there.size_bytes > 0


def test_a_break_of_the_connection_parts_the_pieces() -> None:
    boot = Boot()
    ring = rings(boot, seconds=60).new()
    feed(ring, boot, 0, 3_000)
    ring.ended(LOST)
    ring.offer(packet(3_100))  # of a group whose beginning is missing
    feed(ring, boot, 4_000, 10_000)
    assert times(ring.cut(0, 10_000)) == (4_000, 9_900)
    assert times(ring.cut(1_000, 3_500)) == (0, 2_900)


def test_another_stream_parts_the_pieces() -> None:
    boot = Boot()
    ring = rings(boot, seconds=60).new()
    feed(ring, boot, 0, 4_000)
    other = Stream("h264", b"other parameters", Fraction(1, 90_000))
    for ms in (4_000, 4_100):
        ring.offer(replace(packet(ms, ms == 4_000), stream=other))
    assert {one.stream for one in ring.cut(0, 5_000)} == {H264}
    assert {one.stream for one in ring.cut(4_000, 5_000)} == {other}


def test_cleared() -> None:
    boot = Boot()
    ring = rings(boot).new()
    feed(ring, boot, 0, 4_000)
    ring.clear()
    assert (ring.size_bytes, ring.cut(0, 4_000)) == (0, ())
    ring.offer(packet(4_000))
    assert ring.size_bytes == 0


@given(
    st.lists(st.tuples(st.sampled_from(["key", "delta", "lost"]), st.integers(1, 3_000), st.integers(1, 400))),
    st.integers(0, 60_000),
    st.integers(0, 60_000),
)
def test_always_bounded_and_every_cut_can_be_decoded(
    steps: list[tuple[str, int, int]], begin_ms: int, length_ms: int
) -> None:
    boot = Boot()
    memory = rings(boot, seconds=10, max_bytes=2_000)
    ring = memory.new()
    for what, pause_ms, size in steps:
        boot.ms += pause_ms
        if what == "lost":
            ring.ended(LOST)
        else:
            ring.offer(packet(boot.ms, what == "key", b"x" * size))
        assert 0 <= ring.size_bytes <= 2_000
    cut = ring.cut(begin_ms, begin_ms + length_ms)
    assert not cut or cut[0].is_keyframe
    assert list(cut) == sorted(cut, key=lambda one: one.boot_ms)
