"""Hours and days of figures."""

from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.statistics import HOUR_MS, Bucket, Counts, by_day, by_hour, hour_of, hours_of_event

TOKYO, UTC = ZoneInfo("Asia/Tokyo"), ZoneInfo("UTC")
NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC

COUNTS = st.builds(
    Counts,
    looks=st.integers(0, 99),
    events=st.integers(0, 9),
    severity_max=st.integers(0, 3),
    by_event=st.dictionaries(st.sampled_from(["human", "animal"]), st.integers(1, 5)),
)
HOURS = st.lists(
    st.tuples(st.integers(0, 60).map(lambda n: NOON + n * HOUR_MS), st.sampled_from([TOKYO, UTC]), COUNTS)
)


def test_counts_add_up_by_event() -> None:
    one = Counts(looks=2, events=1, severity_max=3, bytes=10, by_event={"human": 1})
    other = Counts(looks=1, looks_failed=1, events=2, severity_max=1, by_event={"human": 1, "animal": 1})
    assert one + other == Counts(3, 1, 0, 0, 0, 3, 3, 10, {"human": 2, "animal": 1})


def test_a_day_is_the_site_s_own() -> None:
    # Noon UTC is 21:00 in Tokyo; three hours later it is the next day there.
    hours = [
        (NOON, TOKYO, Counts(looks=1)),
        (NOON + 3 * HOUR_MS, TOKYO, Counts(looks=2)),
        (NOON, UTC, Counts(looks=4)),
    ]
    assert by_day(hours) == (
        Bucket(NOON, Counts(looks=5), "2026-01-01"),
        Bucket(NOON + 3 * HOUR_MS, Counts(looks=2), "2026-01-02"),
    )


@given(hours=HOURS)
def test_nothing_is_lost_or_counted_twice(hours: list[tuple[int, ZoneInfo, Counts]]) -> None:
    whole = sum((counts for _, _, counts in hours), Counts())
    for buckets in (by_hour(hours), by_day(hours)):
        assert sum((bucket.counts for bucket in buckets), Counts()) == whole
        starts = [bucket.day or bucket.start_at for bucket in buckets]
        assert starts == sorted(set(starts))


def test_an_event_touches_the_hours_it_may_have_begun_in() -> None:
    begin = hour_of(NOON)
    assert list(hours_of_event(NOON + 5, NOON + 10)) == [begin]
    assert list(hours_of_event(NOON + HOUR_MS - 1, NOON + HOUR_MS)) == [begin, begin + HOUR_MS]
    assert len(hours_of_event(NOON, NOON + 100 * HOUR_MS)) == 3
    assert list(hours_of_event(NOON, NOON - 10)) == [begin]
