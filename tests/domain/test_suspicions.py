"""From a suspicion to something that people are told: tables, and what holds whatever comes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.suspicions import Suspicion, denied, held, held_when_lasting, shown, told_when_due

SEC = 1000


def test_the_first_look_makes_a_suspicion_and_later_ones_count() -> None:
    first = shown(None, 10 * SEC, 7)
    assert first == Suspicion(since=10 * SEC, last_at=10 * SEC, frame_id=7)
    second = shown(replace(first, denied=1), 20 * SEC, 8)
    assert second == replace(first, last_at=20 * SEC, looks=2, denied=0)


def test_one_look_ends_a_mere_suspicion_and_what_is_held_takes_several() -> None:
    suspicion = shown(None, 0, 1)
    assert denied(None, 2) is None
    assert denied(suspicion, 2) is None
    once = denied(held(suspicion, 0), 2)
    assert once is not None
    assert once.denied == 1
    assert denied(once, 2) is None
    assert denied(shown(once, 1, 2), 2) is not None  # shown again in between: counted anew


def test_lasting_takes_both_looks_and_time() -> None:
    quick = replace(shown(None, 0, 1), looks=50, last_at=59 * SEC)
    rare = replace(shown(None, 0, 1), looks=2, last_at=3600 * SEC)
    assert held_when_lasting(quick, 3, 60 * SEC).held_at is None
    assert held_when_lasting(rare, 3, 60 * SEC).held_at is None
    both = held_when_lasting(replace(quick, last_at=60 * SEC), 3, 60 * SEC)
    assert both.held_at == 60 * SEC
    assert held_when_lasting(replace(both, last_at=90 * SEC), 3, 60 * SEC).held_at == 60 * SEC


def test_people_are_told_after_the_wait_and_not_before() -> None:
    suspicion = held(shown(None, 0, 1), 5 * SEC)
    assert not told_when_due(shown(None, 0, 1), 0, 10**9).told
    assert not told_when_due(suspicion, 60 * SEC, 65 * SEC - 1).told
    assert told_when_due(suspicion, 60 * SEC, 65 * SEC).told


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4), st.integers(1, 5))
def test_held_only_by_looks_in_a_row_and_over_only_by_looks_in_a_row(
    looks: list[bool], held_after: int, over_after: int
) -> None:
    suspicion: Suspicion | None = None
    row_shown = row_denied = 0
    was_held = False
    for number, is_shown in enumerate(looks):
        if is_shown:
            suspicion = held_when_lasting(shown(suspicion, number, number), held_after, 0)
            row_shown, row_denied = row_shown + 1, 0
        else:
            suspicion = denied(suspicion, over_after)
            row_denied += 1
            row_shown = 0 if suspicion is None else row_shown
        is_held = suspicion is not None and suspicion.held_at is not None
        if is_held and not was_held:
            assert row_shown >= held_after
        if was_held and not is_held:
            assert row_denied >= over_after
        was_held = is_held
