"""Availability in business hours: which hours count, and what counts in them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.availability import AvailabilityPolicy, Share, business_hours, is_business, share_of
from camserver.domain.statistics import HOUR_MS
from camserver.domain.timeline import CELLS, Cell, write_hour

TOKYO = ZoneInfo("Asia/Tokyo")
POLICY = AvailabilityPolicy()


def at(text: str, zone: ZoneInfo | None = None) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("moment", "policy", "expected"),
    [
        ("2026-11-16T09:00", POLICY, True),  # a Monday
        ("2026-11-16T17:00", POLICY, True),
        ("2026-11-16T18:00", POLICY, False),
        ("2026-11-16T08:00", POLICY, False),
        ("2026-11-15T12:00", POLICY, False),  # a Sunday
        ("2026-11-20T23:00", AvailabilityPolicy(from_hour=22, until_hour=4), True),  # Friday night
        ("2026-11-21T03:00", AvailabilityPolicy(from_hour=22, until_hour=4), True),  # still Friday's night
        ("2026-11-21T23:00", AvailabilityPolicy(from_hour=22, until_hour=4), False),
        ("2026-11-16T03:00", AvailabilityPolicy(from_hour=22, until_hour=4), False),  # Sunday's night
    ],
)
def test_hours_of_business_are_those_of_the_site(moment: str, policy: AvailabilityPolicy, expected: bool) -> None:
    assert is_business(at(moment, TOKYO), TOKYO, policy) is expected


def test_only_whole_hours_within_count() -> None:
    hours = business_hours(at("2026-11-16T00:30"), at("2026-11-16T03:59"), TOKYO, POLICY)  # 9:30 to 12:59 there
    assert hours == tuple(at(f"2026-11-16T0{hour}:00") for hour in (1, 2))
    week = business_hours(at("2026-11-09T00:00"), at("2026-11-16T00:00"), TOKYO, POLICY)
    assert len(week) == 5 * 9


def test_cells_without_a_good_look_count_against_a_camera() -> None:
    good, bad = Cell(ok=3, failed=1), Cell(failed=2)
    hour = write_hour({0: good, 1: good, 2: bad})
    assert share_of([hour, None]) == Share(2, 2 * CELLS)
    assert share_of([write_hour(dict.fromkeys(range(CELLS), good))]).ratio == 1
    assert share_of([]).ratio is None


@given(
    st.lists(st.one_of(st.none(), st.dictionaries(st.integers(0, CELLS - 1), st.builds(Cell, ok=st.integers(0, 2)))))
)
def test_a_share_is_one(hours: list[dict[int, Cell] | None]) -> None:
    share = share_of(None if hour is None else write_hour(hour) for hour in hours)
    assert 0 <= share.seen <= share.wanted == len(hours) * HOUR_MS // 300_000
    assert share.plus(Share()) == share


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="funday"):
        AvailabilityPolicy(days=("mon", "funday"))
