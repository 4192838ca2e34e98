"""Which camera is suggested: scores, decay, take-over, life, rest, and the choice by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.suggest import (
    MANUAL,
    Board,
    Candidate,
    SuggestPolicy,
    advanced,
    chosen,
    dismissed,
    first_score,
    hazards_among,
    phrase_of,
    reason_of,
    score_of,
)

POLICY = SuggestPolicy()
NOW_MS = 1_767_225_600_000


def event(camera_key: int, event_id: int, primary: str = "human", severity: int = 1, at: int = NOW_MS) -> Candidate:
    return Candidate(camera_key, event_id, primary, severity, at)


@pytest.mark.parametrize(
    ("primary", "severity", "weight", "score"),
    [
        ("hazard", 3, 5, 160),
        ("camera_issue", 1, 5, 100),
        ("unknown", 0, 5, 50),
        ("human", 1, 5, 50),
        ("animal", 1, 5, 40),
        ("vehicle", 2, 5, 40),
        ("human", 1, 10, 100),
        ("human", 1, 0, 0),
        ("human", 1, 1, 10),
    ],
)
def test_an_event_scores_by_severity_kind_and_weight(primary: str, severity: int, weight: int, score: float) -> None:
    assert first_score(replace(event(1, 1, primary, severity), weight=weight)) == score


def test_a_hazard_is_one_by_its_tags_too_and_unknown_counts_for_what_scores_less() -> None:
    assert hazards_among(["person.adult", "hazard.smoke"])
    assert not hazards_among(["person.adult"])
    assert reason_of(replace(event(1, 1), is_hazard=True)) == "hazard"
    assert reason_of(replace(event(1, 1), is_unknown=True)) == "unknown"
    assert reason_of(replace(event(1, 1, "camera_issue"), is_unknown=True)) == "camera_issue"


def test_a_score_falls_by_one_a_second_and_not_below_nothing() -> None:
    one = event(1, 1, "hazard", 3)
    assert score_of(one, NOW_MS + 1_500, POLICY) == 158.5
    assert score_of(one, NOW_MS + 10**9, POLICY) == 0
    assert score_of(one, NOW_MS - 5_000, POLICY) == 160


def test_a_camera_is_suggested_from_fifty_points_on_and_for_a_minute() -> None:
    assert advanced(Board(), [event(1, 1, "animal", 1)], NOW_MS, POLICY).current is None
    board = advanced(Board(), [event(1, 1)], NOW_MS, POLICY)
    assert board.current is not None
    assert (board.current.camera_key, board.current.until) == (1, NOW_MS + 60_000)
    still = advanced(board, [event(1, 1)], NOW_MS + 59_999, POLICY)
    assert still == board, "below fifty by now, but its minute is not over"
    assert advanced(still, [], NOW_MS + 60_000, POLICY).current is None


def test_another_camera_takes_over_only_when_it_is_clearly_higher() -> None:
    board = advanced(Board(), [event(1, 1, "human", 3)], NOW_MS, POLICY)  # 90
    equal = [event(1, 1, "human", 3), event(2, 2, "human", 3)]
    assert advanced(board, equal, NOW_MS, POLICY) == board
    higher = [event(2, 2, "unknown", 3)]  # 110, not above 108 before a second has passed
    assert advanced(board, [event(2, 2, "human", 3, NOW_MS + 10_000)], NOW_MS + 10_000, POLICY) == board  # 90 < 96
    taken = advanced(board, higher, NOW_MS, POLICY)
    assert taken.current is not None
    assert taken.current.camera_key == 2
    later = advanced(board, [event(2, 2, "human", 3, NOW_MS + 20_000)], NOW_MS + 20_000, POLICY)  # 90 > 84
    assert later.current is not None
    assert later.current.camera_key == 2


def test_a_new_event_of_the_same_camera_makes_it_last_longer() -> None:
    board = advanced(Board(), [event(1, 1, "human", 3)], NOW_MS, POLICY)
    again = advanced(
        board, [event(1, 1, "human", 3), event(1, 2, "animal", 0, NOW_MS + 30_000)], NOW_MS + 31_000, POLICY
    )
    assert again.current is not None
    assert (again.current.until, again.current.since, again.current.event_id) == (NOW_MS + 91_000, NOW_MS, 2)
    assert again.current.score_at(NOW_MS + 31_000, POLICY) == 59
    seen_again = advanced(again, [event(1, 2, "animal", 0, NOW_MS + 30_000)], NOW_MS + 40_000, POLICY)
    assert seen_again == again, "an event makes it last longer once"


def test_after_its_end_nothing_is_suggested_for_ten_seconds() -> None:
    board = advanced(Board(), [event(1, 1)], NOW_MS, POLICY)
    waiting = [event(2, 2, "hazard", 3, NOW_MS + 61_000)]
    resting = advanced(board, waiting, NOW_MS + 61_000, POLICY)
    assert (resting.current, resting.rest_until) == (None, NOW_MS + 70_000)
    assert advanced(resting, waiting, NOW_MS + 69_999, POLICY).current is None
    assert advanced(resting, waiting, NOW_MS + 70_000, POLICY).current is not None


def test_the_rest_is_counted_from_the_end_however_late_that_is_seen() -> None:
    board = advanced(Board(), [event(1, 1)], NOW_MS, POLICY)
    at = NOW_MS + 3_600_000
    assert advanced(board, [event(2, 2, "hazard", 3, at)], at, POLICY).current is not None


def test_what_was_dismissed_does_not_come_back() -> None:
    loud = event(1, 1, "hazard", 3)
    board = dismissed(advanced(Board(), [loud], NOW_MS, POLICY), NOW_MS + 1_000, POLICY)
    assert advanced(board, [loud], NOW_MS + 20_000, POLICY).current is None
    new = event(1, 2, "hazard", 3, NOW_MS + 5_000)
    assert advanced(board, [loud, new], NOW_MS + 5_000, POLICY).current is None, "the rest"
    assert advanced(board, [loud, new], NOW_MS + 11_000, POLICY).current is not None


def test_a_choice_by_hand_wins_until_its_time_is_over() -> None:
    board = chosen(advanced(Board(), [event(1, 1)], NOW_MS, POLICY), 7, 120, NOW_MS)
    assert board.current is not None
    assert (board.current.camera_key, board.current.manual, board.current.reason) == (7, True, MANUAL)
    loud = event(1, 2, "hazard", 3, NOW_MS + 119_000)
    assert advanced(board, [loud], NOW_MS + 119_999, POLICY) == board
    after = advanced(board, [loud], NOW_MS + 130_000, POLICY)
    assert after.current is not None
    assert after.current.camera_key == 1
    for duration_sec in (0, 3601):
        with pytest.raises(BadInput, match="seconds"):
            chosen(Board(), 7, duration_sec, NOW_MS)


def test_switched_off_nothing_is_suggested_but_what_was_chosen() -> None:
    off = SuggestPolicy(enabled=False)
    assert advanced(Board(), [event(1, 1, "hazard", 3)], NOW_MS, off).current is None
    board = chosen(Board(), 7, 60, NOW_MS)
    assert advanced(board, [], NOW_MS, off) == board


def test_events_of_the_future_and_of_long_ago_do_not_count() -> None:
    assert advanced(Board(), [event(1, 1, "hazard", 3, NOW_MS + 1)], NOW_MS, POLICY).current is None
    assert advanced(Board(), [event(1, 1, "hazard", 3, NOW_MS - 60_000)], NOW_MS, POLICY).current is None


def test_the_reason_is_told_in_words() -> None:
    board = advanced(Board(), [event(1, 1, "hazard", 3)], NOW_MS, POLICY)
    assert board.current is not None
    assert phrase_of(board.current, 3).en == "Hazard detected (alarm)"
    assert phrase_of(board.current, 3).ja == "危険を検知（警報）"
    by_hand = chosen(Board(), 7, 60, NOW_MS).current
    assert by_hand is not None
    assert phrase_of(by_hand, 0).en == "Chosen by hand"


EVENTS = st.builds(
    Candidate,
    camera_key=st.integers(1, 3),
    event_id=st.integers(1, 30),
    primary_event=st.sampled_from(["human", "animal", "hazard", "unknown", "vehicle"]),
    severity=st.integers(0, 3),
    start_at=st.integers(NOW_MS - 70_000, NOW_MS + 200_000),
    weight=st.integers(0, 10),
)


@given(st.lists(EVENTS, max_size=12), st.lists(st.integers(0, 40_000), min_size=1, max_size=12))
def test_whatever_happens_a_suggestion_rests_jumps_and_ends_by_the_rule(
    events: list[Candidate], steps: list[int]
) -> None:
    board, now_ms = Board(), NOW_MS
    for passed_ms in steps:
        before, now_ms = board, now_ms + passed_ms
        board = advanced(before, events, now_ms, POLICY)
        assert advanced(board, events, now_ms, POLICY) == board, "asked twice, the same answer"
        if board.current is None:
            continue
        assert now_ms < board.current.until <= now_ms + 60_000
        was = before.current
        if was is None or now_ms >= was.until:
            assert board.current.score >= POLICY.least_score
            assert now_ms >= before.rest_until
            assert was is None or now_ms >= was.until + 10_000
        elif was.camera_key != board.current.camera_key:
            assert board.current.score > 1.2 * was.score_at(now_ms, POLICY)
