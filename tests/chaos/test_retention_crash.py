"""kill -9 of a retention round at any step: rows keep their objects, cases lose nothing, the next round ends it."""

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.keeping import DAY_MS
from camserver.domain.picture_keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.store import cases, open_store
from camserver.store.cases import CaseChange
from tests.rig.effort import times
from tests.rig.processes import REPOSITORY
from tests.store.casework import Evidence
from tests.store.scenery import NOW_MS

# Between a few hundred, which is what a round of this house takes.
STEPS_MAX = 160
# Other steps on each database.
KILLS = times(3, 12)


def _key(row: dict[str, Any], kind: Kind) -> str:
    return frame_key(
        row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind
    )


async def named(evidence: Evidence) -> set[str]:
    frames = await evidence.rows("SELECT * FROM frames WHERE epoch_id IS NOT NULL")
    clips = await evidence.rows("SELECT object_key FROM clips WHERE object_key IS NOT NULL")
    keys = {_key(row, kind) for row in frames for kind in Kind if row[f"{kind.value}_bytes"] is not None}
    return keys | {row["object_key"] for row in clips}


async def furnish(url: str, objects: LocalObjects) -> tuple[Evidence, set[int]]:
    """Evidence old and new, some of it in a case, and a case that somebody died closing; what must stay."""
    store = await open_store(url)
    evidence = await Evidence.gather(store, 2)
    for camera in range(2):
        for number in range(12):
            await evidence.frame(NOW_MS - (10 + number) * DAY_MS, camera)
        for number in range(4):
            event = await evidence.event(NOW_MS - (170 + number * 6) * DAY_MS, camera, frames=2)
            await evidence.clip(event, NOW_MS - (170 + number * 6) * DAY_MS, camera)
    frames = [row["frame_id"] for row in await evidence.rows("SELECT frame_id FROM frames ORDER BY frame_id")]
    [oldest] = await evidence.rows("SELECT min(event_id) AS event_id FROM events")
    await evidence.case((ItemKind.FRAME, frames[11]), (ItemKind.EVENT, oldest["event_id"]))
    unfinished = await evidence.case((ItemKind.FRAME, frames[10]))
    scoped = store.as_(evidence.somebody)
    await scoped.write(cases.change, unfinished, CaseChange(state=CaseState.CLOSED), "", NOW_MS)
    held = await evidence.rows("SELECT frame_id FROM frames WHERE retention_class = 'case'")
    for key in await named(evidence):
        await objects.put(key, b"picture")
    await store.close()
    return evidence, {row["frame_id"] for row in held}


async def test_a_round_that_is_killed_at_any_step_loses_nothing(db_url: str, db_kind: str, tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path / "objects")
    evidence, held = await furnish(db_url, objects)
    chance = random.Random(db_kind)
    steps = sorted(chance.sample(range(STEPS_MAX), KILLS))
    ends = []
    for number, step in enumerate((*steps, 10**9)):
        # Each a minute later: the duty of the one that was killed has run out.
        now_ms = NOW_MS + number * 60_000
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.chaos.retention_child", db_url, str(objects.root), str(now_ms), str(step)),
            cwd=REPOSITORY,
        )
        ends.append(await child.wait())
        store = await open_store(db_url)
        evidence.store = store
        there = set(await objects.list(f"e{evidence.scene.epoch_id}/", 10_000))
        binned = set(await evidence.garbage())
        assert await named(evidence) <= there, step
        assert there <= await named(evidence) | binned, step
        frames = await evidence.rows("SELECT frame_id FROM frames WHERE infer_bytes IS NOT NULL AND full_bytes = 500")
        assert held <= {row["frame_id"] for row in frames}, step
        if ends[-1] == 0:
            assert binned == set()
            assert there == await named(evidence)
        await store.close()
    assert ends[-1] == 0
    assert -signal.SIGKILL in ends, "nothing was killed: the steps are too late"
