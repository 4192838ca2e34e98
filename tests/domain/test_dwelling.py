"""Who stays and who passes, where an analyzer says where people are."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis, Box
from camserver.domain.dwelling import DWELLERS_MAX, follow, parted, people_in, somebody_stays
from camserver.domain.events import LOITERING_TAG, EventPolicy
from camserver.domain.facts import Still

from .build import MIN, SEC, T0, analysis, nothing
from .ledger import POLICIES, Ledger

WIDTH, HEIGHT = 0.1, 0.3
GAP_MS = 90 * SEC
LONG_MS = 180 * SEC


def somebody(x: float, y: float = 0.4, label: str = "person") -> Box:
    return Box(x, y, x + WIDTH, y + HEIGHT, label, 0.9)


def people(*boxes: Box, severity: int = 1) -> Analysis:
    return analysis("human", severity=severity, boxes=boxes)


def loiters(looks: list[Analysis], every_ms: int = MIN, ledger: Ledger | None = None) -> bool:
    """Whether a camera that saw this has an event of loitering."""
    house = ledger or Ledger(interval_ms=every_ms)
    for number, said in enumerate(looks):
        house.look(T0 + number * every_ms, said)
    return any(LOITERING_TAG in tags for tags in house.tags.values())


@pytest.mark.parametrize(
    ("what", "looks", "expected"),
    [
        ("stands still", [people(somebody(0.4))] * 5, True),
        ("shifts about", [people(somebody(0.4 + 0.03 * (n % 2))) for n in range(6)], True),
        ("shifts slowly", [people(somebody(0.3 + 0.02 * n)) for n in range(8)], True),
        ("a busy door", [people(somebody(0.05 + 0.15 * (n % 5))) for n in range(20)], False),
        ("a busy door, two at a time", [people(somebody(0.1 * (n % 7)), somebody(0.8 - 0.1 * (n % 5)))
                                        for n in range(20)], False),
        ("one waits at a busy door", [people(somebody(0.05 + 0.15 * (n % 5), 0.05), somebody(0.45, 0.6))
                                      for n in range(6)], True),
        ("no places are given", [people()] * 5, True),
        ("places without names", [people(Box(0.1 * n, 0.1, 0.1 * n + 0.1, 0.4)) for n in range(5)], True),
        ("too short", [people(somebody(0.4))] * 3, False),
        ("a car stays, people pass", [people(replace(somebody(0.4), label="car"), somebody(0.15 * (n % 5), 0.7))
                                      for n in range(8)], False),
    ],
)  # fmt: skip
def test_who_stays(what: str, looks: list[Analysis], expected: bool) -> None:
    assert loiters(looks) is expected, what


def test_quick_looks_at_a_busy_door_are_no_loitering() -> None:
    """Now and then somebody is where somebody was a moment ago; that is not half of the time."""
    looks = [people(somebody((0.07 * n * n) % 0.85)) for n in range(120)]
    assert not loiters(looks, every_ms=5 * SEC)
    assert loiters([people(somebody((0.07 * n * n) % 0.85), somebody(0.4, 0.05)) for n in range(60)], 5 * SEC)


def test_who_is_hidden_every_other_look_is_noticed_where_looks_are_quick() -> None:
    looks = [people(somebody(0.4) if n % 2 == 0 else somebody(0.85, 0.05 * n)) for n in range(14)]
    assert loiters(looks, every_ms=30 * SEC)


def test_who_leaves_is_forgotten_with_the_event() -> None:
    ledger = Ledger()
    for minute in (0, 1, 4, 5, 8, 9):
        ledger.look(T0 + minute * MIN, people(somebody(0.4)))
    assert all(LOITERING_TAG not in tags for tags in ledger.tags.values())
    assert len(parted(ledger.stills)[1]) == 1


def test_a_camera_that_was_moved_shows_other_places() -> None:
    moved = replace(people(somebody(0.4)), tags=("camera.moved",))
    assert not loiters([people(somebody(0.4))] * 3 + [moved])


def test_without_overlap_the_length_decides_alone() -> None:
    policies = replace(POLICIES, events=EventPolicy(loitering_overlap=0.0))
    door = [people(somebody(0.05 + 0.15 * (n % 5))) for n in range(5)]
    ledger = Ledger(policies)
    assert loiters(door, ledger=ledger)
    assert ledger.stills == ()


def test_a_late_frame_that_makes_it_long_enough() -> None:
    ledger = Ledger()
    for minute in (3, 4, 5):
        ledger.look(T0 + minute * MIN, people(somebody(0.4)))
    elsewhere = ledger.look(T0 + 2 * MIN, people(somebody(0.8)), late=True, now_ms=T0 + 10 * MIN)
    assert not elsewhere.event.is_loitering
    assert ledger.look(T0 + MIN, people(somebody(0.4)), late=True, now_ms=T0 + 10 * MIN).touches_state is False


def test_what_stays_and_who_dwells_share_the_memory_and_do_not_meet() -> None:
    ledger = Ledger()
    car = Box(0.6, 0.6, 0.9, 0.9, "car", 0.9)
    for minute in range(8):
        ledger.look(T0 + minute * MIN, people(somebody(0.4), car))
    things, dwellers = parted(ledger.stills)
    assert [one.label for one in things] == ["car"]
    assert [(one.seen, one.missed) for one in dwellers] == [(8, 0)]
    ledger.look(T0 + 8 * MIN, nothing())
    assert parted(ledger.stills)[1] == dwellers, "a look without people says nothing about where they stay"


def test_only_people_are_followed() -> None:
    boxes = [somebody(0.1, label=label) for label in ("Person ", "child", "car", "dog", "")]
    assert [box.label for box in people_in(boxes)] == ["Person ", "child"]


PLACES = st.builds(somebody, st.floats(0, 0.9), st.floats(0, 0.7))
LOOKS = st.lists(st.lists(PLACES, max_size=6), max_size=30)


@given(LOOKS, st.floats(0.1, 0.9))
def test_the_memory_is_bounded_and_counts_right(looks: list[list[Box]], overlap: float) -> None:
    dwellers: tuple[Still, ...] = ()
    for number, boxes in enumerate(looks):
        at = T0 + number * MIN
        dwellers = follow(dwellers, boxes, at, GAP_MS, overlap)
        assert len(dwellers) <= DWELLERS_MAX
        for one in dwellers:
            assert one.first_seen_at <= one.last_seen_at <= at
            assert at - one.last_seen_at <= GAP_MS
            assert 1 <= one.seen + one.missed <= number + 1


@given(LOOKS, PLACES)
def test_whoever_stays_is_found_among_any_others(looks: list[list[Box]], place: Box) -> None:
    """Others who overlap the very place may be taken for the one who stays, but somebody is found to stay."""
    dwellers: tuple[Still, ...] = ()
    for number in range(5):
        others = looks[number] if number < len(looks) else []
        dwellers = follow(dwellers, [place, *others], T0 + number * MIN, GAP_MS, 0.4)
    assert somebody_stays(dwellers, T0, LONG_MS)


@given(st.permutations(range(9)), st.floats(0.15, 0.9))
def test_who_is_never_where_somebody_was_does_not_stay(order: list[int], overlap: float) -> None:
    dwellers: tuple[Still, ...] = ()
    for number, spot in enumerate(order):
        dwellers = follow(dwellers, [somebody(spot * WIDTH)], T0 + number * MIN, GAP_MS, overlap)
    assert somebody_stays(dwellers, T0, LONG_MS) is False


@given(LOOKS)
def test_duration_stays_a_necessary_condition(looks: list[list[Box]]) -> None:
    ledger = Ledger()
    for number, boxes in enumerate(looks):
        ledger.look(T0 + number * MIN, people(*boxes))
    for event in ledger.of("human"):
        if LOITERING_TAG in ledger.tags[event.event_id]:
            assert event.last_seen_at - event.start_at >= LONG_MS


def test_nothing_is_known_without_places() -> None:
    assert somebody_stays((), T0, LONG_MS) is None
    old = follow((), [somebody(0.4)], T0 - 10 * MIN, GAP_MS, 0.4)
    assert somebody_stays(old, T0, LONG_MS) is None
