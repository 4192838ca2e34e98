from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis, Box
from camserver.domain.facts import Still
from camserver.domain.stationary import (
    StationaryPolicy,
    iou,
    is_full,
    is_still,
    look_through,
    remember,
)

from .build import MIN, SEC, T0, analysis, box, boxes, nothing

POLICY = StationaryPolicy()


def seen_for(looks: int, seen_box: Box, every_ms: int = 2 * MIN) -> tuple[Still, ...]:
    stills: tuple[Still, ...] = ()
    for look in range(looks):
        stills, _ = remember(stills, [seen_box], T0 + look * every_ms, POLICY)
    return stills


PARKED = seen_for(5, box())
AFTER = T0 + 10 * MIN


def vehicle(*seen: Box, **changes: object) -> Analysis:
    return analysis("vehicle", boxes=seen, **changes)


def news(stills: tuple[Still, ...], result: Analysis, at: int = AFTER, late: bool = False) -> Analysis:
    return look_through(stills, result, at, late, POLICY)[1]


def test_iou() -> None:
    assert iou(box(), box()) == pytest.approx(1.0)
    assert iou(box(0.0, 0.0), box(0.5, 0.5)) == 0.0
    assert iou(Box(0, 0, 0.2, 0.2), Box(0.1, 0, 0.3, 0.2)) == pytest.approx(1 / 3)


def test_a_thing_moves_until_it_was_seen_often_and_long_enough() -> None:
    stills: tuple[Still, ...] = ()
    passed = []
    for look in range(7):
        stills, moving = remember(stills, [box()], T0 + look * 2 * MIN, POLICY)
        passed.append(len(moving))
    assert passed == [1, 1, 1, 1, 0, 0, 0]


def test_many_looks_in_a_short_time_are_not_enough() -> None:
    stills = seen_for(50, box(), every_ms=SEC)
    assert not is_still(stills[0], POLICY)


def test_few_looks_over_a_long_time_are_not_enough() -> None:
    stills = seen_for(4, box(), every_ms=60 * MIN)
    assert not is_still(stills[0], POLICY)


def test_a_parked_car_no_longer_feeds_events() -> None:
    seen = vehicle(box(), tags=("camera.dark",))
    left = news(PARKED, seen)
    assert not left.detected
    assert (left.primary_event, left.severity, left.unknown_flag) == ("none", 0, False)


def test_a_second_car_is_news_beside_a_parked_one() -> None:
    result = vehicle(box(), box(0.6, 0.6))
    assert news(PARKED, result) is result


def test_something_else_in_the_place_of_a_parked_car_is_news() -> None:
    result = analysis("animal", boxes=(box(label="dog"),))
    assert news(PARKED, result) is result


def test_a_car_that_leaves_its_place_is_news() -> None:
    result = vehicle(box(0.2, 0.1))
    assert news(PARKED, result) is result


def test_a_person_passing_is_news_and_does_not_make_the_car_news_again() -> None:
    passing = analysis("human", boxes=(box(), box(0.5, 0.5, "person")))
    stills, seen = look_through(PARKED, passing, AFTER, False, POLICY)
    assert seen is passing
    assert not news(stills, vehicle(box()), AFTER + MIN).detected


def test_a_person_who_hides_the_car_for_a_while_does_not_make_it_news_again() -> None:
    stills = PARKED
    for look in range(POLICY.max_missed):
        hidden = analysis("human", boxes=(box(0.1, 0.1, "person"),))
        stills, _ = look_through(stills, hidden, AFTER + look * MIN, False, POLICY)
    assert not news(stills, vehicle(box()), AFTER + 10 * MIN).detected


def test_a_car_that_is_gone_is_forgotten_so_the_next_one_there_is_news() -> None:
    stills = PARKED
    for look in range(POLICY.max_missed + 1):
        stills, _ = look_through(stills, nothing(), AFTER + look * MIN, False, POLICY)
    assert stills == ()
    result = vehicle(box())
    assert news(stills, result) is result


def test_hours_without_an_analyzed_look_are_no_sign_that_it_left() -> None:
    assert not news(PARKED, vehicle(box()), AFTER + 600 * MIN).detected


def test_a_place_where_things_come_and_go_never_becomes_still() -> None:
    stills: tuple[Still, ...] = ()
    for look in range(100):
        seen = [box()] if look % 4 else []
        stills, moving = remember(stills, seen, T0 + look * 5 * MIN, POLICY)
        assert list(moving) == seen


def test_something_that_creeps_away_is_not_followed() -> None:
    stills = PARKED
    moved = 0
    for step in range(1, 20):
        stills, moving = remember(stills, [box(0.1 + step * 0.01)], AFTER + step * MIN, POLICY)
        moved += len(moving)
    assert moved, "a slow car must become news again"


@pytest.mark.parametrize("label", ["person", "Person", " human", "hazard.smoke_like", "smoke", None, ""])
def test_people_hazards_and_nameless_things_never_count_as_still(label: str | None) -> None:
    stills = seen_for(30, box(label=label))
    assert stills == ()


@pytest.mark.parametrize("primary_event", ["human", "hazard", "camera_issue", "object_missing"])
def test_looks_that_tell_of_people_hazards_or_faults_are_untouched(primary_event: str) -> None:
    result = analysis(primary_event, boxes=(box(),))
    assert news(PARKED, result) is result


@pytest.mark.parametrize("tag", ["hazard.smoke_like", "behavior.loitering", "camera.occluded", "camera.offline"])
def test_telling_tags_keep_a_look_untouched(tag: str) -> None:
    result = vehicle(box(), tags=(tag,))
    assert news(PARKED, result) is result


def test_labels_without_boxes_are_untouched_and_teach_nothing() -> None:
    result = vehicle()
    assert look_through(PARKED, result, AFTER, False, POLICY) == (PARKED, result)


def test_more_counted_than_boxed_is_untouched() -> None:
    assert news(PARKED, vehicle(box(), count_hint=2)).detected
    assert not news(PARKED, vehicle(box(), count_hint=1)).detected


def test_a_lamp_taken_for_an_unknown_thing_is_left_out_too() -> None:
    lamp = box(0.7, 0.1, "sports ball")
    stills = seen_for(6, lamp)
    doubtful = analysis("none", detected=True, unknown_flag=True, boxes=(lamp,))
    assert not news(stills, doubtful, T0 + 20 * MIN).unknown_flag


def test_a_moved_camera_forgets_all_places() -> None:
    result = vehicle(box(), tags=("camera.moved",))
    assert look_through(PARKED, result, AFTER, False, POLICY) == ((), result)


def test_a_late_look_is_judged_by_the_memory_and_leaves_it_alone() -> None:
    stills, seen = look_through(PARKED, vehicle(box()), T0 + MIN, True, POLICY)
    assert stills is PARKED
    assert not seen.detected
    before_it_came = vehicle(box())
    assert news(PARKED, before_it_came, T0 - MIN, late=True) is before_it_came


def test_an_older_look_counts_no_miss() -> None:
    stills, _ = remember(PARKED, [], T0 + MIN, POLICY)
    assert stills == PARKED


def test_switched_off_it_changes_nothing() -> None:
    result = vehicle(box())
    off = replace(POLICY, enabled=False)
    assert look_through(PARKED, result, AFTER, False, off) == (PARKED, result)


def test_reaching_the_bound_keeps_the_best_known_and_shows() -> None:
    small = replace(POLICY, max_stills=2)
    crowd = [box(0.3, y) for y in (0.0, 0.3, 0.6)]
    stills, moving = remember(PARKED, [box(), *crowd], AFTER, small)
    assert len(stills) == 2
    assert stills[0].seen == 6
    assert list(moving) == crowd
    assert is_full(stills, small)
    assert not is_full(PARKED, small)


@given(st.lists(st.tuples(st.integers(0, 3600), st.lists(boxes, max_size=6)), max_size=30))
def test_memory_is_bounded_and_never_swallows_people(looks: Sequence[tuple[int, list[Box]]]) -> None:
    small = replace(POLICY, max_stills=4, min_looks=2, min_duration_sec=1)
    stills: tuple[Still, ...] = ()
    for at_sec, seen in looks:
        before = stills
        stills, moving = remember(before, seen, T0 + at_sec * SEC, small)
        assert len(stills) <= 4
        assert [b for b in seen if b.label in ("person", None)] == [b for b in moving if b.label in ("person", None)]
        # What is left out was known before: nothing is still at first sight.
        assert len(seen) - len(moving) <= len(before)
        assert all(still.first_seen_at <= still.last_seen_at for still in stills)


@given(st.permutations([0, 2, 4, 6, 8, 10]))
def test_looks_in_any_order_teach_the_same(order: list[int]) -> None:
    stills: tuple[Still, ...] = ()
    for minute in order:
        stills, _ = remember(stills, [box()], T0 + minute * MIN, POLICY)
    assert len(stills) == 1
    assert (stills[0].first_seen_at, stills[0].last_seen_at, stills[0].seen) == (T0, T0 + 10 * MIN, 6)
