import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis
from camserver.domain.events import (
    EventPolicy,
    best_score,
    can_merge,
    change_event,
    close_after_ms,
    close_due,
    event_kind,
    merge_gap_ms,
)
from camserver.domain.facts import CameraView, EventAction, EventChange, FrameFacts
from camserver.domain.retention import Retention

from .build import MIN, SEC, T0, analysis, event, frame, incident, nothing, view, view_of

POLICY = EventPolicy()
NORMAL, QUARANTINE, CASE = Retention.NORMAL, Retention.QUARANTINE, Retention.CASE


def change(a_frame: FrameFacts, result: Analysis, a_view: CameraView, retention: Retention = NORMAL) -> EventChange:
    return change_event(a_frame, result, retention, a_view, POLICY)


# The viewpoints of the dispatcher's specification, section 10.3.


def test_same_primary_event_merges() -> None:
    changed = change(frame(T0 + MIN), analysis("human"), view_of(event()))
    assert (changed.action, changed.event_id) == (EventAction.MERGE, 10)
    assert (changed.start_at, changed.last_seen_at) == (T0, T0 + MIN)
    assert changed.close_event_id is None


def test_different_primary_event_is_another_event() -> None:
    changed = change(frame(T0 + MIN), analysis("vehicle"), view_of(event()))
    assert changed.action is EventAction.OPEN
    assert changed.primary_event == "vehicle"
    assert (changed.close_event_id, changed.close_end_at) == (10, T0)
    assert (changed.start_at, changed.last_seen_at) == (T0 + MIN, T0 + MIN)


@pytest.mark.parametrize(("gap_ms", "action"), [(90 * SEC, EventAction.MERGE), (90 * SEC + 1, EventAction.OPEN)])
def test_a_gap_too_long_is_another_event(gap_ms: int, action: EventAction) -> None:
    changed = change(frame(T0 + gap_ms), analysis("human"), view_of(event()))
    assert changed.action is action
    assert changed.close_event_id == (10 if action is EventAction.OPEN else None)


@pytest.mark.parametrize(("after_ms", "end_at"), [(120 * SEC, None), (120 * SEC + 1, T0)])
def test_120_seconds_without_detection_close(after_ms: int, end_at: int | None) -> None:
    assert close_due(event(), T0 + after_ms, MIN, None, POLICY) == end_at


# Decision 18: what makes an event.


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (analysis("human"), "human"),
        (analysis("none", detected=True), None),
        (analysis("human", detected=False), None),
        (analysis("none", detected=False, unknown_flag=True), "unknown"),
        (analysis("none", detected=True, unknown_flag=True), "unknown"),
        (analysis("unknown", unknown_flag=True), "unknown"),
        (analysis("animal", detected=False, unknown_flag=True), "animal"),
        (nothing(), None),
    ],
)
def test_what_feeds_an_event(result: Analysis, kind: str | None) -> None:
    assert event_kind(result) == kind
    changed = change(frame(), result, view())
    if kind is None:
        assert changed == EventChange(EventAction.NONE)
    else:
        assert (changed.action, changed.primary_event) == (EventAction.OPEN, kind)


def test_a_look_that_shows_nothing_leaves_the_open_event_alone() -> None:
    assert change(frame(T0 + MIN), nothing(), view_of(event())) == EventChange(EventAction.NONE)


# Decision 19: gaps follow the interval.


@pytest.mark.parametrize(
    ("interval_sec", "gap_sec", "close_sec"),
    [(1, 90, 120), (60, 90, 120), (61, 91.5, 121.5), (300, 450, 480), (3600, 5400, 5430)],
)
def test_gap_and_close_follow_the_interval(interval_sec: int, gap_sec: float, close_sec: float) -> None:
    assert merge_gap_ms(POLICY, interval_sec * SEC) == gap_sec * SEC
    assert close_after_ms(POLICY, interval_sec * SEC) == close_sec * SEC


@given(st.integers(1, 10**7), st.integers(1, 86_400), st.integers(1, 86_400))
def test_an_event_is_never_closed_while_a_frame_may_still_join(
    interval_ms: int, grace_sec: int, gap_sec: int
) -> None:
    policy = EventPolicy(close_grace_sec=grace_sec, merge_gap_sec=gap_sec)
    assert close_after_ms(policy, interval_ms) > merge_gap_ms(policy, interval_ms) >= interval_ms


@pytest.mark.parametrize(
    ("oldest_ms", "end_at"),
    [(T0 - MIN, None), (T0 + MIN, None), (T0 + 120 * SEC, None), (T0 + 120 * SEC + 1, T0), (None, T0)],
)
def test_an_unfinished_job_from_before_keeps_the_event_open(oldest_ms: int | None, end_at: int | None) -> None:
    assert close_due(event(), T0 + 60 * MIN, MIN, oldest_ms, POLICY) == end_at


@pytest.mark.parametrize(
    ("at", "kind", "wanted"),
    [
        (T0 - 90 * SEC, "human", True),
        (T0 - 90 * SEC - 1, "human", False),
        (T0 + MIN, "human", True),
        (T0 + 2 * MIN + 90 * SEC, "human", True),
        (T0 + 2 * MIN + 90 * SEC + 1, "human", False),
        (T0 + MIN, "vehicle", False),
    ],
)
def test_can_merge_on_both_sides_of_the_span(at: int, kind: str, wanted: bool) -> None:
    assert can_merge(event(T0, T0 + 2 * MIN), kind, at, 90 * SEC) is wanted


# Frames out of order and late.


def test_an_older_frame_moves_the_start_back_but_never_last_seen() -> None:
    changed = change(frame(T0 - MIN), analysis("human"), view_of(event(T0, T0 + MIN)))
    assert changed.action is EventAction.MERGE
    assert (changed.start_at, changed.last_seen_at, changed.start_moved) == (T0 - MIN, T0 + MIN, True)


def test_an_older_frame_within_the_span_moves_nothing() -> None:
    changed = change(frame(T0 + MIN), analysis("human"), view_of(event(T0, T0 + 2 * MIN)))
    assert (changed.start_at, changed.last_seen_at, changed.start_moved) == (T0, T0 + 2 * MIN, False)


def test_an_older_frame_of_another_kind_never_closes_the_open_event() -> None:
    changed = change(frame(T0 - SEC), analysis("vehicle"), view_of(event()))
    assert changed.action is EventAction.PAST
    assert changed.close_event_id is None
    assert (changed.start_at, changed.last_seen_at) == (T0 - SEC, T0 - SEC)


def test_an_older_frame_joins_the_event_that_covers_it() -> None:
    earlier = event(T0 - 5 * MIN, T0 - 2 * MIN, event_id=9, primary_event="vehicle")
    changed = change(frame(T0 - 3 * MIN), analysis("vehicle"), view_of(event(), covering=(earlier,)))
    assert (changed.action, changed.event_id) == (EventAction.MERGE, 9)


def test_an_older_frame_of_another_kind_than_the_covering_event_is_past() -> None:
    earlier = event(T0 - 5 * MIN, T0 - 2 * MIN, event_id=9, primary_event="vehicle")
    changed = change(frame(T0 - 3 * MIN), analysis("animal"), view_of(event(), covering=(earlier,)))
    assert changed.action is EventAction.PAST


def test_of_two_events_the_nearer_takes_an_older_frame() -> None:
    earlier = event(T0 - 5 * MIN, T0 - 80 * SEC, event_id=9)
    both = view_of(event(), covering=(earlier,))
    assert change(frame(T0 - 70 * SEC), analysis("human"), both).event_id == 9
    assert change(frame(T0 - 10 * SEC), analysis("human"), both).event_id == 10


@pytest.mark.parametrize("kind", ["human", "vehicle"])
def test_a_late_frame_never_opens_or_closes(kind: str) -> None:
    changed = change(frame(T0 + 60 * MIN, late=True), analysis(kind), view_of(event()))
    assert changed.action is EventAction.PAST
    assert changed.close_event_id is None


def test_a_late_frame_without_any_event_is_past() -> None:
    assert change(frame(late=True), analysis(), view()).action is EventAction.PAST


def test_a_late_frame_joins_the_open_event_when_it_covers_it() -> None:
    changed = change(frame(T0 + 30 * SEC, late=True), analysis(), view_of(event(T0, T0 + MIN)))
    assert (changed.action, changed.event_id) == (EventAction.MERGE, 10)


def test_a_new_frame_after_a_closed_event_opens_a_new_one() -> None:
    closed = event()
    changed = change(frame(T0 + MIN), analysis(), view(covering=(closed,), incident=incident()))
    assert changed.action is EventAction.OPEN


def test_a_frame_older_than_the_newest_incident_opens_nothing() -> None:
    closed = event()
    behind = view(covering=(closed,), incident=incident())
    assert change(frame(T0 - SEC), analysis("human"), behind).action is EventAction.MERGE
    assert change(frame(T0 - SEC), analysis("vehicle"), behind).action is EventAction.PAST


# Decision 20: what is kept of the frames.


def test_a_merge_keeps_the_greatest_of_everything() -> None:
    strong = event(severity_max=3, confidence_max=0.9, retention=CASE, best_score=3090.0)
    changed = change(frame(T0 + MIN), analysis(severity=1, confidence=0.2), view_of(strong))
    assert (changed.severity_max, changed.confidence_max) == (3, 0.9)
    assert (changed.retention, changed.best_score, changed.is_best_frame) == (CASE, 3090.0, False)
    changed = change(frame(T0 + MIN), analysis(severity=3, confidence=0.95), view_of(strong), QUARANTINE)
    assert changed.confidence_max == 0.95
    assert (changed.retention, changed.is_best_frame) == (CASE, True)
    weak = event()
    assert change(frame(T0 + MIN), analysis(), view_of(weak), QUARANTINE).retention is QUARANTINE


def test_best_score_is_the_decided_sum() -> None:
    assert best_score(2, 0.75, 40.0) == pytest.approx(2000 + 75 - 4)
    assert best_score(1, None, None) == 1000


def test_only_a_higher_score_replaces_the_best_frame() -> None:
    same = analysis(severity=1, confidence=0.5)
    assert not change(frame(T0 + MIN), same, view_of(event())).is_best_frame
    better = replace(same, confidence=0.51)
    assert change(frame(T0 + MIN), better, view_of(event())).is_best_frame
    assert not change(frame(T0 + MIN, blur_score=100.0), better, view_of(event())).is_best_frame


@given(st.lists(st.integers(0, 600), min_size=1, max_size=40))
def test_in_order_events_are_the_runs_without_a_long_gap(seconds: list[int]) -> None:
    times = sorted(T0 + at * SEC for at in seconds)
    opened = 0
    now_open = None
    for at in times:
        changed = change(frame(at), analysis(), view_of(now_open) if now_open else view())
        opened += changed.action is EventAction.OPEN
        now_open = event(changed.start_at, changed.last_seen_at)
    runs = 1 + sum(b - a > 90 * SEC for a, b in itertools.pairwise(times))
    assert opened == runs
