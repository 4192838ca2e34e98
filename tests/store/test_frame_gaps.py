"""In whatever order looks arrive, and in whatever batches, the gaps are exactly the looks that are missing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.store import Tx
from camserver.store.frames import Look
from tests.rig.effort import times
from tests.store.conftest import Driven
from tests.store.scenery import Scene, furnish, look, recorded

SEQ_MAX = 14
# Batches of looks: each batch is recorded in one transaction, numbers may come again.
arrivals = st.lists(st.lists(st.integers(1, SEQ_MAX), min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def scene(driven: Driven) -> Scene:
    driven.wipe()
    return driven.do(furnish(driven.store, cameras=1))


async def start_over(tx: Tx) -> None:
    for table in ("frames", "frame_gaps", "inference_jobs"):
        await tx.run(f"DELETE FROM {table}")
    await tx.run("UPDATE camera_leases SET last_seq = 0")


async def state(tx: Tx) -> tuple[set[int], list[tuple[int, int]], int]:
    frames = {row["seq"] for row in await tx.all("SELECT seq FROM frames")}
    gaps = [
        (row["first_seq"], row["last_seq"])
        for row in await tx.all("SELECT first_seq, last_seq FROM frame_gaps ORDER BY first_seq")
    ]
    lease = await tx.one("SELECT last_seq FROM camera_leases")
    assert lease is not None
    return frames, gaps, lease["last_seq"]


@settings(max_examples=times(30, 300))
@given(batches=arrivals)
def test_gaps_are_exactly_what_is_missing(driven: Driven, scene: Scene, batches: list[list[int]]) -> None:
    driven.do(driven.store.write(start_over))
    arrived: set[int] = set()
    for batch in batches:
        answers = driven.do(recorded(driven.store, *_looks(scene, batch)))
        seen = set(arrived)
        for seq, answer in zip(batch, answers, strict=True):
            assert answer.repeat == (seq in seen)
            seen.add(seq)
        arrived |= seen
        frames, gaps, last_seq = driven.do(driven.store.read(state))
        assert frames == arrived
        assert last_seq == max(arrived)
        missing = {seq for first, last in gaps for seq in range(first, last + 1)}
        assert missing == set(range(1, max(arrived))) - arrived
        assert sum(last - first + 1 for first, last in gaps) == len(missing), "gaps overlap"
        assert all(first <= last for first, last in gaps)


def _looks(scene: Scene, batch: list[int]) -> list[Look]:
    return [look(scene, seq=seq) for seq in batch]
