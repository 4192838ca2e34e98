import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import Bug
from camserver.domain.uploads import Gap, captured_at_by_age, gap_before, settled_captured_at, without_seq


@pytest.mark.parametrize(
    ("last_seq", "seq", "gap"),
    [
        (0, 1, None),
        (0, 3, Gap(1, 2)),
        (5, 6, None),
        (5, 7, Gap(6, 6)),
        (5, 10, Gap(6, 9)),
        (5, 5, None),
        (5, 2, None),
    ],
)
def test_a_jump_in_seq_leaves_a_gap(last_seq: int, seq: int, gap: Gap | None) -> None:
    assert gap_before(last_seq, seq) == gap


@pytest.mark.parametrize(
    ("seq", "left"),
    [
        (3, (Gap(4, 6),)),
        (6, (Gap(3, 5),)),
        (4, (Gap(3, 3), Gap(5, 6))),
    ],
)
def test_a_missing_look_splits_its_gap(seq: int, left: tuple[Gap, ...]) -> None:
    assert without_seq(Gap(3, 6), seq) == left


def test_the_last_missing_look_closes_its_gap() -> None:
    assert without_seq(Gap(3, 3), 3) == ()


@pytest.mark.parametrize("seq", [2, 7])
def test_a_look_outside_a_gap_is_a_bug(seq: int) -> None:
    with pytest.raises(Bug):
        without_seq(Gap(3, 6), seq)


@given(st.lists(st.integers(1, 40), max_size=60))
def test_gaps_are_exactly_what_never_arrived(arrivals: list[int]) -> None:
    last_seq, gaps, arrived = 0, set[Gap](), set[int]()
    for seq in arrivals:
        if seq in arrived:
            continue
        arrived.add(seq)
        home = next((gap for gap in gaps if gap.first_seq <= seq <= gap.last_seq), None)
        if home is not None:
            gaps.remove(home)
            gaps.update(without_seq(home, seq))
        elif (gap := gap_before(last_seq, seq)) is not None:
            gaps.add(gap)
        last_seq = max(last_seq, seq)
        missing = {n for gap in gaps for n in range(gap.first_seq, gap.last_seq + 1)}
        assert missing == set(range(1, last_seq)) - arrived
        assert sum(gap.count for gap in gaps) == len(missing)


def test_a_frame_is_never_from_the_future() -> None:
    assert settled_captured_at(5_000, 10_000) == 5_000
    assert settled_captured_at(10_900, 10_000) == 10_900
    assert settled_captured_at(99_000, 10_000) == 11_000


def test_the_age_of_a_look_tells_its_time_whatever_the_worker_thinks_the_date_is() -> None:
    assert captured_at_by_age(boot_ms=1_000, sent_boot_ms=4_000, received_at=500_000, claimed_at=5) == 497_000
    assert captured_at_by_age(boot_ms=4_000, sent_boot_ms=4_000, received_at=500_000, claimed_at=5) == 500_000


@pytest.mark.parametrize(
    ("claimed_at", "captured_at"),
    [
        (97_000, 97_000),
        (96_500, 97_000),  # the worker's clock is a little off
        (97_500, 97_000),
        (88_000, 88_000),  # nine seconds on a line that held it back
        (97_000 - 180_000, 97_000 - 180_000),
        (97_000 - 180_001, 97_000),  # no upload lasts so long: its idea of the date is wrong
        (200_000, 97_000),
    ],
)
def test_an_upload_that_was_held_back_on_its_way_was_captured_earlier(claimed_at: int, captured_at: int) -> None:
    """Or it would seem to be captured after the worker's lease had ended, and be refused for good."""
    received_at = 100_000
    assert captured_at_by_age(1_000, 4_000, received_at, claimed_at) == captured_at


def test_stamps_that_contradict_each_other_are_not_believed() -> None:
    assert captured_at_by_age(boot_ms=4_001, sent_boot_ms=4_000, received_at=100_000, claimed_at=5) == 5
