"""One of many does it: taking, renewing, losing and giving back a duty."""

import asyncio

import pytest

from camserver.domain.duties import HOLD_MS
from camserver.store import Store
from camserver.store.duties import find, release, release_all, take
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_one_has_it_until_it_runs_out(fresh_store: Store) -> None:
    mine = await fresh_store.write(take, "mqtt:1", "a", "t1", NOW_MS)
    assert mine is not None
    assert mine.until == NOW_MS + HOLD_MS
    assert await fresh_store.write(take, "mqtt:1", "b", "t2", NOW_MS + HOLD_MS - 1) is None
    renewed = await fresh_store.write(take, "mqtt:1", "a", "t1", NOW_MS + 10)
    assert renewed is not None
    assert renewed.until == NOW_MS + 10 + HOLD_MS
    assert await fresh_store.write(take, "mqtt:2", "b", "t2", NOW_MS) is not None
    taken = await fresh_store.write(take, "mqtt:1", "b", "t3", NOW_MS + 10 + HOLD_MS)
    assert taken is not None
    assert await fresh_store.write(take, "mqtt:1", "a", "t1", NOW_MS + 11 + HOLD_MS) is None
    assert await fresh_store.read(find, "mqtt:1") == taken


async def test_a_hold_that_ran_out_is_never_renewed(fresh_store: Store) -> None:
    await fresh_store.write(take, "x", "a", "t1", NOW_MS)
    assert await fresh_store.write(take, "x", "a", "t1", NOW_MS + HOLD_MS) is None
    assert await fresh_store.write(take, "x", "a", "t2", NOW_MS + HOLD_MS) is not None


async def test_what_is_given_back_can_be_taken_at_once(fresh_store: Store) -> None:
    await fresh_store.write(take, "x", "a", "t1", NOW_MS)
    await fresh_store.write(release, "x", "stale")
    assert await fresh_store.write(take, "x", "b", "t2", NOW_MS) is None
    await fresh_store.write(release, "x", "t1")
    assert await fresh_store.write(take, "x", "b", "t2", NOW_MS) is not None
    assert await fresh_store.write(release_all, "b") == 1


async def test_of_many_who_ask_at_once_one_gets_it(fresh_pair: tuple[Store, Store]) -> None:
    for turn in range(5):
        answers = await asyncio.gather(
            *(
                store.write(take, f"x{turn}", str(number), f"{number}-{asked}", NOW_MS)
                for number, store in enumerate(fresh_pair)
                for asked in range(3)
            )
        )
        assert len([answer for answer in answers if answer is not None]) == 1
