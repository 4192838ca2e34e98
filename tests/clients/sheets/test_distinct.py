"""Different hashes, counted part by part."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camserver.clients.sheets import distinct
from camserver.clients.sheets.distinct import Distinct


def counted(hashes: list[int], folder: Path) -> int:
    found = Distinct(folder)
    for one in hashes:
        found.add(one)
    return found.count()


def test_more_than_are_sorted_at_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    hashes = [chance.getrandbits(64) for _ in range(distinct.PART)]
    assert counted(hashes * 2 + hashes[:1000] + [0, 2**64 - 1], tmp_path) == len({*hashes, 0, 2**64 - 1})


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_any_hashes(tmp_path: Path, hashes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "HELD_MAX", 7)
        patch.setattr(distinct, "PART", 10)
        assert counted(hashes, tmp_path) == len(set(hashes))
