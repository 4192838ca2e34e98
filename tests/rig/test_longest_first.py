from dataclasses import dataclass

from tests.rig.longest_first import LONGEST, longest_first
from tests.rig.processes import REPOSITORY


@dataclass(frozen=True)
class Item:
    nodeid: str


def test_every_file_of_the_list_is_there_once() -> None:
    assert [path for path in LONGEST if not (REPOSITORY / path).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_others_follow_in_their_order_and_files_stay_whole() -> None:
    asked = [Item("tests/z.py::a"), Item(f"{LONGEST[1]}::a"), Item("tests/a.py::b"), Item(f"{LONGEST[0]}::b")]
    asked += [Item("tests/z.py::b"), Item(f"{LONGEST[1]}::b")]
    ordered = [item.nodeid for item in longest_first(asked)]
    first, second = LONGEST[:2]
    assert ordered == [
        f"{first}::b",
        f"{second}::a",
        f"{second}::b",
        "tests/z.py::a",
        "tests/a.py::b",
        "tests/z.py::b",
    ]
