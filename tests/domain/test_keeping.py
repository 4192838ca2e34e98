"""How long what is kept stays, and what goes when room is short."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.keeping import (
    DAY_MS,
    Fate,
    KeptClip,
    KeptEvent,
    KeptFrame,
    Why,
    beyond_bytes,
    clip_is_over,
    clip_may_go,
    days_until_floor,
    event_is_over,
    frame_fate,
    freed_bytes,
    short_bytes,
    thin_out,
)
from camserver.domain.retention import Retention, RetentionPolicy

POLICY = RetentionPolicy()
T0 = 1_767_225_600_000
SEEN = KeptFrame(
    frame_id=1,
    captured_at=T0,
    retention=Retention.NORMAL,
    keep_until=None,
    is_quiet=False,
    is_seen=True,
    is_best=False,
    is_awaited=False,
    infer_bytes=100,
    full_bytes=500,
)
QUIET = replace(SEEN, is_quiet=True, is_seen=False, full_bytes=None)

AGES = [
    ("nothing shown", QUIET, 14),
    ("detected", SEEN, 30),
    ("quarantine", replace(SEEN, retention=Retention.QUARANTINE), 60),
]


@pytest.mark.parametrize(("frame", "days"), [row[1:] for row in AGES], ids=[row[0] for row in AGES])
def test_a_frame_goes_when_the_days_of_its_kind_are_over_and_not_a_moment_before(frame: KeptFrame, days: int) -> None:
    over_ms = T0 + days * DAY_MS
    assert frame_fate(Why.AGE, frame, False, POLICY, over_ms - 1) is Fate.KEEP
    assert frame_fate(Why.AGE, frame, False, POLICY, over_ms) is Fate.DELETE


def test_the_best_frame_of_an_event_keeps_its_small_picture() -> None:
    best = replace(SEEN, is_best=True)
    later = T0 + 40 * DAY_MS
    assert frame_fate(Why.AGE, best, False, POLICY, later) is Fate.SHRINK
    assert frame_fate(Why.AGE, replace(best, full_bytes=None), False, POLICY, later) is Fate.KEEP
    assert (freed_bytes(best, Fate.SHRINK), freed_bytes(best, Fate.DELETE)) == (500, 600)


def test_grace_after_a_case_outlasts_the_days_of_the_class() -> None:
    kept = replace(SEEN, keep_until=T0 + 100 * DAY_MS)
    assert frame_fate(Why.AGE, kept, False, POLICY, T0 + 100 * DAY_MS - 1) is Fate.KEEP
    assert frame_fate(Why.AGE, kept, False, POLICY, T0 + 100 * DAY_MS) is Fate.DELETE
    assert frame_fate(Why.FLOOR_BEST, kept, False, POLICY, T0 + DAY_MS) is Fate.KEEP


NEEDS = [Why.CAMERA_QUOTA, Why.TENANT_QUOTA, Why.FLOOR]


@pytest.mark.parametrize("why", NEEDS)
def test_when_room_is_short_ordinary_pictures_go_and_small_pictures_of_events_stay(why: Why) -> None:
    assert frame_fate(why, SEEN, False, POLICY, T0) is Fate.STRIP
    assert frame_fate(why, QUIET, False, POLICY, T0) is Fate.STRIP
    assert frame_fate(why, replace(SEEN, is_best=True), False, POLICY, T0) is Fate.SHRINK
    assert frame_fate(why, replace(SEEN, is_best=True, full_bytes=None), False, POLICY, T0) is Fate.KEEP
    assert frame_fate(Why.FLOOR_BEST, replace(SEEN, is_best=True), False, POLICY, T0) is Fate.STRIP


FRAMES = st.builds(
    KeptFrame,
    frame_id=st.integers(1, 9),
    captured_at=st.integers(0, T0),
    retention=st.sampled_from(Retention),
    keep_until=st.none() | st.integers(0, 2 * T0),
    is_quiet=st.booleans(),
    is_seen=st.booleans(),
    is_best=st.booleans(),
    is_awaited=st.booleans(),
    infer_bytes=st.none() | st.integers(1, 9),
    full_bytes=st.none() | st.integers(1, 9),
)


@given(st.sampled_from(Why), FRAMES, st.booleans(), st.integers(0, 3 * T0))
def test_what_never_goes(why: Why, frame: KeptFrame, is_newest: bool, now_ms: int) -> None:
    fate = frame_fate(why, frame, is_newest, POLICY, now_ms)
    protected = (
        frame.retention is Retention.CASE
        or is_newest
        or frame.is_awaited
        or (frame.keep_until is not None and now_ms < frame.keep_until)
    )
    if protected:
        assert fate is Fate.KEEP
    if why is not Why.AGE and frame.retention is not Retention.NORMAL:
        assert fate is Fate.KEEP, "only age takes quarantine"
    if why is not Why.AGE:
        assert fate is not Fate.DELETE, "before its time only the picture goes; that there was a look stays known"
    if frame.is_best and why is not Why.FLOOR_BEST:
        assert fate in (Fate.KEEP, Fate.SHRINK)


def test_an_event_lives_180_days_and_at_least_as_long_as_its_class() -> None:
    event = KeptEvent(1, T0, Retention.NORMAL, None, is_open=False, has_case_frames=False)
    over_ms = T0 + 180 * DAY_MS
    assert not event_is_over(event, POLICY, over_ms - 1)
    assert event_is_over(event, POLICY, over_ms)
    for kept in (
        replace(event, is_open=True),
        replace(event, has_case_frames=True),
        replace(event, retention=Retention.CASE),
        replace(event, keep_until=over_ms + 1),
    ):
        assert not event_is_over(kept, POLICY, over_ms)
    longer = replace(POLICY, quarantine_days=200)
    assert not event_is_over(replace(event, retention=Retention.QUARANTINE), longer, over_ms)


@pytest.mark.parametrize(("retention", "days"), [(Retention.NORMAL, 30), (Retention.QUARANTINE, 60)])
def test_a_clip_lives_as_long_as_frames_of_its_events_class(retention: Retention, days: int) -> None:
    clip = KeptClip(1, T0, retention, None, 9)
    assert not clip_is_over(clip, POLICY, T0 + days * DAY_MS - 1)
    assert clip_is_over(clip, POLICY, T0 + days * DAY_MS)
    assert clip_may_go(clip, T0) is (retention is Retention.NORMAL)
    assert not clip_is_over(replace(clip, retention=Retention.CASE), POLICY, T0 + 9999 * DAY_MS)


def quiet(*seconds: float) -> list[KeptFrame]:
    return [
        replace(QUIET, frame_id=number, captured_at=T0 + round(at * 1000)) for number, at in enumerate(seconds, 1)
    ]


def test_of_quiet_pictures_one_a_minute_stays() -> None:
    assert thin_out(quiet(0, 5, 10, 59, 61, 90, 122), None, 60).frame_ids == (2, 3, 5, 6)
    assert thin_out(quiet(0, 59.9, 119.9), None, 60).frame_ids == (), "looks come a little early or late"
    seen = [replace(SEEN, captured_at=T0 + 1)]
    assert thin_out([*quiet(0), *seen], None, 60).frame_ids == ()


@given(st.lists(st.integers(0, 10_000), max_size=60).map(sorted), st.integers(1, 120), st.integers(0, 60))
def test_thinning_pages_is_thinning_all_and_thinning_twice_takes_nothing(
    seconds: list[int], every_sec: int, cut: int
) -> None:
    frames = quiet(*seconds)
    whole = thin_out(frames, None, every_sec)
    first = thin_out(frames[:cut], None, every_sec)
    second = thin_out(frames[cut:], first.kept_at, every_sec)
    assert first.frame_ids + second.frame_ids == whole.frame_ids
    left = [frame for frame in frames if frame.frame_id not in whole.frame_ids]
    assert thin_out(left, None, every_sec).frame_ids == ()
    assert bool(left) == bool(frames)


def test_bounds_are_kept_with_a_little_room() -> None:
    assert beyond_bytes(100, 0) == 0
    assert beyond_bytes(1000, 1000) == 0
    assert beyond_bytes(1001, 1000) == 21
    policy = replace(POLICY, free_min_bytes=1000)
    assert short_bytes(None, policy) == 0, "a bucket has no floor"
    assert short_bytes(1000, policy) == 0
    assert short_bytes(900, policy) == 120
    assert short_bytes(0, replace(policy, free_min_bytes=0)) == 0


def test_the_forecast_says_when_the_floor_is_reached() -> None:
    policy = replace(POLICY, free_min_bytes=1000)
    assert days_until_floor(5000, 400, policy) == 10
    assert days_until_floor(500, 400, policy) == 0
    assert days_until_floor(5000, 0, policy) is None
    assert days_until_floor(None, 400, policy) is None
