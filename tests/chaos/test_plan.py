from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.plan import LOOKS_MAX, TARGETS, WORKERS, rounds, rounds_of_each_kind

seeds = st.integers(min_value=0, max_value=10**6)


@pytest.mark.parametrize("kind", TARGETS)
def test_the_same_seed_gives_the_same_storm(kind: str) -> None:
    assert list(islice(rounds(kind, 5), 50)) == list(islice(rounds(kind, 5), 50))
    assert list(islice(rounds(kind, 5), 50)) != list(islice(rounds(kind, 6), 50))


@given(seed=seeds, kind=st.sampled_from(sorted(TARGETS)))
def test_the_shortest_storm_has_each_kind_of_trouble(seed: int, kind: str) -> None:
    storm = list(islice(rounds(kind, seed), rounds_of_each_kind(kind)))
    assert {one.kill for one in storm} == set(TARGETS[kind])
    assert any(one.cut_off is not None for one in storm)
    assert any(one.stop is not None for one in storm)


@given(seed=seeds, kind=st.sampled_from(sorted(TARGETS)))
def test_twenty_rounds_kill_everything_and_disturb_the_network(seed: int, kind: str) -> None:
    storm = list(islice(rounds(kind, seed), 20))
    assert {one.kill for one in storm} == set(TARGETS[kind])
    assert sum(one.cut_off is not None for one in storm) >= 2
    assert any(one.stop is not None for one in storm)


@given(seed=seeds, kind=st.sampled_from(sorted(TARGETS)))
def test_a_round_always_leaves_one_worker_that_can_go_on(seed: int, kind: str) -> None:
    for one in islice(rounds(kind, seed), 60):
        assert 1 <= one.after_looks <= LOOKS_MAX
        assert one.stop is None or one.stop in WORKERS
        assert one.stop != one.kill
