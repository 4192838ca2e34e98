"""Finds are held against the truth rightly, and the truth is one."""

import pytest

from bench._quality_truth import KINDS, Find, Place, Tally, Truth, judge, read_truth

THERE = Place(0, 0, 100, 100)


def person(sureness: float, *edges: float) -> Find:
    return Find("person", sureness, Place(*edges))


@pytest.mark.parametrize(
    ("finds", "right", "wrong"),
    [
        ([], 0, 0),
        ([person(0.9, 0, 0, 100, 100)], 1, 0),
        ([person(0.9, 0, 0, 100, 51)], 1, 0),
        ([person(0.9, 0, 0, 100, 49)], 0, 1),
        # The second of two finds of one thing is one too many.
        ([person(0.9, 0, 0, 100, 90), person(0.8, 0, 0, 100, 100)], 1, 1),
        ([person(0.9, 300, 300, 400, 400)], 0, 1),
    ],
    ids=["none", "exact", "just enough", "too little", "twice", "elsewhere"],
)
def test_a_find_is_right_when_it_overlaps_enough(finds: list[Find], right: int, wrong: int) -> None:
    assert judge([THERE], [], finds) == (right, wrong)


def test_a_find_in_something_unsure_counts_as_nothing() -> None:
    unsure = [Place(200, 200, 400, 400)]
    assert judge([], unsure, [person(0.9, 250, 250, 300, 300)]) == (0, 0)
    assert judge([], unsure, [person(0.9, 0, 0, 210, 400)]) == (0, 1)


def test_the_surest_find_chooses_first() -> None:
    beside = Place(60, 0, 160, 100)
    assert judge([THERE, beside], [], [person(0.5, 0, 0, 100, 100), person(0.9, 60, 0, 160, 100)]) == (2, 0)


def test_what_a_tally_says() -> None:
    tally = Tally()
    nobody: dict[str, tuple[Place, ...]] = {"person": (), "vehicle": ()}
    somebody = Truth("a", 1, {**nobody, "person": (THERE, Place(200, 0, 300, 100))}, nobody)
    empty = Truth("b", None, nobody, nobody)
    tally.add(somebody, "person", [person(0.9, 0, 0, 100, 100)])
    tally.add(empty, "person", [person(0.9, 0, 0, 100, 100), Find("vehicle", 0.9, THERE)])
    assert (tally.recall, tally.precision, tally.balance) == (50, 50, 50)
    assert (tally.noticed, tally.with_any, tally.alarmed, tally.without) == (1, 1, 1, 1)
    assert tally.wrong_in == ["b None: 1"]


def test_the_truth_is_of_many_pictures_and_every_box_is_one() -> None:
    truths = read_truth()
    assert len(truths) >= 60
    assert len({(truth.source, truth.frame) for truth in truths}) == len(truths)
    for truth in truths:
        for kind in KINDS:
            for place in (*truth.there[kind], *truth.unsure[kind]):
                assert 0 <= place.x1 < place.x2, truth
                assert 0 <= place.y1 < place.y2, truth
    assert all(sum(len(truth.there[kind]) for truth in truths) > 50 for kind in KINDS)
