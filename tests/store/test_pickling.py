"""What crosses to the SQLite writer comes out as what it was."""

import pickle
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import pytest

from camserver.store import pickling


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: tuple[float, ...] | None = None


class Empty(NamedTuple):
    pass


@dataclass(frozen=True, slots=True)
class Held:
    pair: Pair
    colour: Colour = Colour.RED


@pytest.mark.parametrize(
    "held",
    [Pair(1), Pair(2, (0.1, 0.2)), Empty(), Held(Pair(3)), (1, Pair(4), [Pair(4)]), {"one": Held(Pair(5, ()))}],
)
def test_a_round_trip_keeps_values_and_types(held: object) -> None:
    came = pickling.loads(pickling.dumps(held))
    assert came == held
    assert repr(came) == repr(held)


def test_a_long_list_of_tuples_names_their_class_once() -> None:
    held = [Pair(number) for number in range(100)]
    assert len(pickling.dumps(held)) < 2 * len(pickle.dumps(held))
    assert pickling.dumps(held).count(b"Pair") == 1
