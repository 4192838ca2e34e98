"""Covered, moved and frozen cameras, and everything that only looks like it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from camserver.domain.sight import HealthPolicy, Picture, Sight, agreement, look_at
from tests.domain.build import MIN, SEC, T0

POLICY = HealthPolicy()
DAY = "00ff" * 9
NIGHT = "0ff0" * 9  # agrees with DAY in half of the cells
ELSEWHERE = "3c3c" * 9


def look(
    sight: Sight, at: int, structure: float = 0.5, view: str = DAY, picture: str = "", every_ms: int = MIN
) -> Sight:
    made = Picture(at, at // SEC, picture or f"{at:016x}", structure, view)
    return look_at(sight, made, True, every_ms, 2, POLICY)


def through(sight: Sight, values: Iterable[tuple[float, str]], begin: int, every_ms: int = MIN) -> list[Sight]:
    found = []
    for number, (structure, view) in enumerate(values):
        sight = look(sight, begin + number * every_ms, structure, view, every_ms=every_ms)
        found.append(sight)
    return found


def usual(looks: int = 30, every_ms: int = MIN) -> Sight:
    """A camera that has been well for a while; its newest look was just before T0."""
    return through(Sight(), [(0.5, DAY)] * looks, T0 - looks * every_ms, every_ms)[-1]


def held(suspicion: object) -> bool:
    return getattr(suspicion, "held_at", None) is not None


def test_a_lens_that_is_covered_from_one_look_to_the_next_is_covered_when_it_lasts() -> None:
    states = through(usual(), [(0.0, DAY)] * 4, T0)
    assert [held(sight.covered) for sight in states] == [False, False, True, True]
    found = states[-1].covered
    assert found is not None
    assert (found.since, found.frame_id) == (T0, T0 // SEC)
    # Two good looks end it, and the usual texture was not forgotten meanwhile.
    back = through(states[-1], [(0.5, DAY)] * 2, T0 + 4 * MIN)
    assert [held(sight.covered) for sight in back] == [True, False]


def test_quick_looks_at_a_hand_before_the_lens_are_no_cover() -> None:
    states = through(usual(every_ms=SEC), [(0.0, DAY)] * 30 + [(0.5, DAY)], T0, SEC)
    assert not any(held(sight.covered) for sight in states)
    assert states[-1].covered is None


def test_dusk_is_no_cover_and_neither_is_the_lamp_that_goes_on_and_off_after_it() -> None:
    dusk = [(0.5 * 0.93**minute, DAY) for minute in range(90)] + [(0.0, DAY)] * 120
    states = through(usual(), dusk, T0)
    lamp = through(states[-1], [(0.4, DAY)] * 10 + [(0.0, DAY)] * 60, T0 + len(dusk) * MIN)
    assert not any(sight.covered for sight in states + lamp)
    # By day it counts again.
    dawn = through(lamp[-1], [(0.5, DAY)] * 90, T0 + 24 * 60 * MIN)
    covered = through(dawn[-1], [(0.0, DAY)] * 3, T0 + 24 * 60 * MIN + 90 * MIN)
    assert held(covered[-1].covered)


def test_a_scene_with_hardly_any_texture_is_not_judged_by_it() -> None:
    foggy = through(Sight(), [(0.02, DAY)] * 30, T0)
    assert through(foggy[-1], [(0.0, DAY)] * 10, T0 + 30 * MIN)[-1].covered is None


def test_a_camera_that_is_turned_away_is_moved_when_it_lasts() -> None:
    states = through(usual(), [(0.5, ELSEWHERE)] * 7, T0)
    assert [held(sight.moved) for sight in states] == [False] * 5 + [True] * 2
    back = through(states[-1], [(0.5, DAY)] * 2, T0 + 7 * MIN)
    assert [held(sight.moved) for sight in back] == [True, False]


def test_a_new_view_that_stays_becomes_a_usual_one() -> None:
    states = through(usual(), [(0.5, ELSEWHERE)] * 62, T0)
    assert held(states[59].moved)
    assert states[61].moved is None
    assert set(states[61].views) == {DAY, ELSEWHERE}
    # From then on neither is news: by day and with infra-red a camera looks at the same place.
    again = through(states[-1], ([(0.5, DAY)] * 30 + [(0.5, ELSEWHERE)] * 30) * 3, T0 + 62 * MIN)
    assert not any(sight.moved for sight in again)


def test_what_passes_by_or_flickers_is_no_move() -> None:
    flicker = [(0.5, view) for _ in range(30) for view in (ELSEWHERE, NIGHT)]
    assert not any(held(sight.moved) for sight in through(usual(), flicker, T0))
    passing = [(0.5, ELSEWHERE)] * 4 + [(0.5, DAY)]
    assert through(usual(), passing, T0)[-1].moved is None


def test_a_view_that_changes_slowly_is_followed() -> None:
    """A bit a look, until nothing is as it was: sun and shade over a day."""
    views = [f"{int(DAY, 16) ^ ((1 << count) - 1):036x}" for count in range(0, 145, 3)]
    states = through(usual(), [(0.5, view) for view in views], T0)
    assert not any(sight.moved for sight in states)
    assert agreement(views[0], views[-1]) == 0


def test_equal_pictures_are_a_frozen_camera_when_they_are_many_and_last() -> None:
    sight = usual()
    states = []
    for minute in range(13):
        sight = look(sight, T0 + minute * MIN, picture="same")
        states.append(held(sight.frozen))
    assert states == [False] * 11 + [True] * 2
    sight = look(sight, T0 + 20 * MIN)
    assert held(sight.frozen)
    assert look(sight, T0 + 21 * MIN).frozen is None


@pytest.mark.parametrize("every_ms", [SEC, 30 * MIN])
def test_neither_many_equal_pictures_nor_a_long_time_alone_are_enough(every_ms: int) -> None:
    sight = usual(every_ms=every_ms)
    for number in range(9 if every_ms > MIN else 500):
        sight = look(sight, T0 + number * every_ms, picture="same", every_ms=every_ms)
    assert sight.frozen is not None
    assert not held(sight.frozen)


def test_a_picture_of_a_file_may_stay_as_it_is() -> None:
    sight = usual()
    for minute in range(60):
        picture = Picture(T0 + minute * MIN, minute, "same", 0.5, DAY)
        sight = look_at(sight, picture, False, MIN, 2, POLICY)
    assert sight.frozen is None


def test_a_covered_camera_is_neither_frozen_nor_moved() -> None:
    sight = usual()
    for minute in range(60):
        sight = look(sight, T0 + minute * MIN, 0.0, "0" * 36, picture="black")
    assert held(sight.covered)
    assert sight.frozen is None
    assert sight.moved is None


def test_looks_without_measures_change_nothing_but_the_newest_picture() -> None:
    sight = replace(usual(), hash_hex="")
    assert look_at(sight, Picture(T0, 1), True, MIN, 2, POLICY) == sight


def test_agreement() -> None:
    assert agreement(DAY, DAY) == 1
    assert agreement("0" * 36, "f" * 36) == 0
    assert agreement(DAY, NIGHT) == 0.5
