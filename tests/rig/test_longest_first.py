import itertools
from dataclasses import dataclass

from tests.rig.longest_first import LONGEST, longest_first
from tests.rig.processes import REPOSITORY


@dataclass(frozen=True)
class Item:
    nodeid: str


def test_every_file_of_the_list_is_there_once() -> None:
    assert [path for path in LONGEST if not (REPOSITORY / path).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_files_stay_whole_and_others_keep_their_order() -> None:
    first, second = LONGEST[:2]
    asked = [Item("tests/z.py::a"), Item(f"{second}::a"), Item("tests/a.py::b"), Item(f"{first}::b")]
    asked += [Item("tests/z.py::b"), Item(f"{second}::b")]
    ordered = [item.nodeid for item in longest_first(asked)]
    assert ordered == [
        f"{first}::b",
        f"{second}::a",
        f"{second}::b",
        "tests/z.py::a",
        "tests/z.py::b",
        "tests/a.py::b",
    ]
    assert longest_first([]) == []


def test_long_ones_are_spread_and_none_is_at_the_end() -> None:
    others = [f"tests/test_{number}.py::a" for number in range(len(LONGEST) * 12)]
    ordered = [item.nodeid for item in longest_first([Item(one) for one in (*others, *(f"{p}::a" for p in LONGEST))])]
    places = [ordered.index(f"{path}::a") for path in LONGEST]
    assert places == sorted(places)
    assert {after - before for before, after in itertools.pairwise(places)} == {10}
    assert len(ordered) - places[-1] > len(others) / 5
    assert [one for one in ordered if one in set(others)] == others
