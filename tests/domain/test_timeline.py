"""Hours in cells, and buckets of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.statistics import HOUR_MS
from camserver.domain.timeline import (
    CELL_MS,
    CELLS,
    HOUR_CHARS,
    Cell,
    Gap,
    Pause,
    coarse_hour,
    counted_until,
    gaps,
    make_strip,
    shortest_gap_ms,
    with_pauses,
    write_hour,
)

FROM = 1_767_225_600_000
LATE = FROM + 1000 * HOUR_MS
CELL = st.builds(Cell, ok=st.integers(0, 3), failed=st.integers(0, 2), severity=st.integers(0, 3),
                 events=st.integers(0, 9))  # fmt: skip
HOURS = st.lists(st.dictionaries(st.integers(0, CELLS - 1), CELL), min_size=1, max_size=5)


def test_an_hour_is_three_letters_a_cell() -> None:
    text = write_hour({0: Cell(ok=5), 1: Cell(failed=2, severity=0), 2: Cell(4, 1, 3, 2), 11: Cell(events=40)})
    assert text == "o00x00m32" + ".00" * 8 + ".09"
    assert len(text) == HOUR_CHARS


def test_buckets_hold_the_gravest_and_all_events() -> None:
    hours = {FROM: write_hour({0: Cell(ok=5), 2: Cell(ok=1, severity=2, events=1), 3: Cell(failed=1, events=2)})}
    strip = make_strip(hours, FROM, FROM + 2 * HOUR_MS, 3 * CELL_MS, LATE)
    assert (strip.looked, strip.severity, strip.events) == ("ox......", "20000000", [(0, 1), (1, 2)])
    whole = make_strip(hours, FROM, FROM + 2 * HOUR_MS, HOUR_MS, LATE)
    assert (whole.looked, whole.severity, whole.events) == ("m.", "20", [(0, 3)])


@given(HOURS, st.sampled_from([1, 3, 12]))
def test_buckets_are_what_their_cells_are(hours: list[dict[int, Cell]], step: int) -> None:
    texts = {FROM + number * HOUR_MS: write_hour(cells) for number, cells in enumerate(hours)}
    strip = make_strip(texts, FROM, FROM + len(hours) * HOUR_MS, step * CELL_MS, LATE)
    flat = [cells.get(number, Cell()) for cells in hours for number in range(CELLS)]
    for place in range(0, len(flat), step):
        bucket, part = place // step, flat[place : place + step]
        ok, failed = any(cell.ok for cell in part), any(cell.failed for cell in part)
        assert strip.looked[bucket] == {(0, 0): ".", (1, 0): "o", (0, 1): "x", (1, 1): "m"}[ok, failed]
        assert strip.severity[bucket] == str(max(cell.severity for cell in part))
        assert dict(strip.events).get(bucket, 0) == sum(cell.events for cell in part)
    assert len(strip.looked) == len(strip.severity) == len(flat) // step


def test_time_that_is_not_counted_yet_or_before_the_camera_is_no_gap() -> None:
    hours = {FROM + HOUR_MS: write_hour({number: Cell(ok=1) for number in range(6)})}
    now = FROM + HOUR_MS + 7 * CELL_MS
    strip = make_strip(hours, FROM, FROM + 2 * HOUR_MS, CELL_MS, now, born_ms=FROM + 3 * CELL_MS)
    assert strip.looked == "???" + "." * 9 + "o" * 6 + "." + "?" * 5
    assert gaps(strip, FROM, CELL_MS) == (
        Gap(FROM + 3 * CELL_MS, FROM + HOUR_MS),
        Gap(FROM + HOUR_MS + 6 * CELL_MS, FROM + HOUR_MS + 7 * CELL_MS),
    )
    assert gaps(strip, FROM, 2 * CELL_MS) == (Gap(FROM + 3 * CELL_MS, FROM + HOUR_MS),)


@pytest.mark.parametrize(("interval_ms", "shortest_ms"), [(1000, CELL_MS), (60_000, CELL_MS), (600_000, 1_200_000)])
def test_a_gap_is_longer_than_what_lies_between_two_looks(interval_ms: int, shortest_ms: int) -> None:
    assert shortest_gap_ms(interval_ms) == shortest_ms


def test_an_hour_of_which_only_the_whole_is_known() -> None:
    text = coarse_hour(looks=60, failed=2, severity=1, events=3)
    strip = make_strip({FROM: text}, FROM, FROM + HOUR_MS, HOUR_MS, LATE)
    assert (strip.looked, strip.severity, strip.events) == ("m", "1", [(0, 3)])
    assert make_strip({FROM: coarse_hour(0, 0, 0, 0)}, FROM, FROM + HOUR_MS, HOUR_MS, LATE).looked == "."


def test_what_is_counted_follows_the_newest_look_but_never_lags_for_ever() -> None:
    assert counted_until(FROM, FROM + 60_000) == FROM
    assert counted_until(0, FROM) == FROM - 600_000


def test_time_in_which_looks_were_put_off_is_told_apart() -> None:
    hours = {FROM: write_hour({0: Cell(ok=1), 5: Cell(ok=1), 11: Cell(failed=1)})}
    strip = make_strip(hours, FROM, FROM + HOUR_MS, CELL_MS, LATE)
    assert strip.looked == "o....o.....x"
    # Most of the first of these cells, all of two, a little of the next; and some where there were looks.
    pauses = [
        Pause(FROM + CELL_MS + 100_000, FROM + 4 * CELL_MS + 10_000, "watched_live"),
        Pause(FROM + 5 * CELL_MS, FROM + 5 * CELL_MS + 200_000, "watched_live"),
    ]
    assert with_pauses(strip, pauses, FROM, CELL_MS).looked == "owww.o.....x"
    assert with_pauses(strip, [], FROM, CELL_MS) == strip
    first, second = gaps(strip, FROM, CELL_MS, pauses)
    assert first == Gap(FROM + CELL_MS, FROM + 5 * CELL_MS, "watched_live")
    assert second == Gap(FROM + 6 * CELL_MS, FROM + 11 * CELL_MS, "")


def test_a_gap_is_explained_when_half_of_it_was_put_off_together() -> None:
    strip = make_strip({FROM: write_hour({})}, FROM, FROM + HOUR_MS, CELL_MS, LATE)
    halves = [
        Pause(FROM + n * HOUR_MS // 4, FROM + n * HOUR_MS // 4 + HOUR_MS // 8, "watched_live") for n in range(4)
    ]
    assert gaps(strip, FROM, CELL_MS, halves)[0].cause == "watched_live"
    assert gaps(strip, FROM, CELL_MS, halves[1:])[0].cause == ""
