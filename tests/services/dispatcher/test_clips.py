"""The running dispatcher asks for the clips of new events, also right after an outage of the store."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from camserver.domain.clips import UNSENT_MS
from camserver.store import errand_orders
from camserver.store.errand_orders import AnswerRow, Sending
from tests.fakes.analyzer import Seen
from tests.services.dispatcher.stage import CutStore, Rows, Stage
from tests.services.dispatcher.test_notifying import add_receiver, until_told

HUMAN = Seen("human")
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


async def clips(stage: Stage) -> Rows:
    return await stage.rows("SELECT * FROM clips ORDER BY clip_id")


async def until_clips(stage: Stage, *states: str) -> None:
    async def reached() -> bool:
        return [row["state"] for row in await clips(stage)] == list(states)

    await stage.until(reached, f"clips {states}")


async def deliver(stage: Stage) -> str:
    """The worker's answer to the errand that there is; the key of its object."""
    [errand] = await stage.rows("SELECT errand_id, errand_uuid, kind FROM errands")
    assert errand["kind"] == "clip"
    sending = Sending(errand["errand_id"], stage.scene.worker_key, 1)
    now_ms = stage.clock.now_ms()
    await stage.store.write(errand_orders.send, (sending,), now_ms)
    key = f"e{stage.scene.epoch_id}/t1/errands/d1/{errand['errand_uuid']}.ab.mp4"
    answer = AnswerRow(
        errand["errand_uuid"], True, "", json.dumps({"codec": "h264"}), key, 9, "video/mp4", stage.scene.epoch_id
    )
    verdict = await stage.store.write(errand_orders.answered, stage.scene.tenant_id, "worker", answer, now_ms)
    assert verdict.recorded
    return key


async def test_an_event_gets_its_clip(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, stage.clock.now_ms()))
        await stage.clock.advance(1_000)
        await until_clips(stage, "asked")
        key = await deliver(stage)
        await stage.clock.advance(1_000)
        await until_clips(stage, "ready")
        # The same event goes on: there is still one.
        await stage.analyzed((0, HUMAN, stage.clock.now_ms()))
        await stage.pass_time(5, 1)
    [clip] = await clips(stage)
    assert (clip["state"], clip["object_key"]) == ("ready", key)


@on_one_database
async def test_a_store_that_was_away_for_a_moment_costs_no_clip(stage: Stage) -> None:
    store = CutStore(stage.store)
    async with stage.dispatcher(store):
        await stage.analyzed((0, HUMAN, stage.clock.now_ms()))
        store.is_cut = True
        await stage.pass_time(10, 1)
        assert await clips(stage) == []
        store.is_cut = False
        await stage.clock.advance(1_000)
        await until_clips(stage, "asked")
        await stage.pass_time(UNSENT_MS // 1000 + 1, 10)
        await until_clips(stage, "none")
    [clip] = await clips(stage)
    assert clip["reason"] == "not_held"


@pytest.mark.parametrize("wanted", [True, False])
@on_one_database
async def test_a_clip_is_copied_to_the_archive_beside_the_pictures(
    stage: Stage, tmp_path: Path, wanted: bool
) -> None:
    (tmp_path / "mnt").mkdir()
    stage.settings = replace(
        stage.settings, archive=replace(stage.settings.archive, folders=(str(tmp_path / "mnt"),), clips=wanted)
    )
    folder = tmp_path / "mnt" / "archive"
    await add_receiver(stage, "folder", "NAS", {"path": str(folder)}, {})
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, stage.clock.now_ms()))
        await stage.clock.advance(1_000)
        await until_clips(stage, "asked")
        key = await deliver(stage)
        await stage.objects.put(key, b"the film.")
        await stage.clock.advance(1_000)
        await until_clips(stage, "ready")
        await until_told(stage)
    films = {path.name: path.read_bytes() for path in folder.rglob("*.mp4")}
    if not wanted:
        assert films == {}
        return
    [event] = await stage.rows("SELECT event_uuid, best_frame_id FROM events")
    [(name, film)] = films.items()
    assert (name.endswith(f"_{event['event_uuid']}.mp4"), film) == (True, b"the film.")
    [row] = await stage.rows("SELECT * FROM drive_objects WHERE path LIKE '%.mp4'")
    assert (row["frame_id"], row["bytes"], row["retention_class"]) == (event["best_frame_id"], 9, "normal")
    [day] = await stage.rows("SELECT bytes FROM archive_days")
    assert day["bytes"] == sum(path.stat().st_size for path in folder.rglob("*.*") if path.suffix in (".jpg", ".mp4"))


@on_one_database
async def test_a_clip_that_is_gone_before_it_was_copied_is_no_failure(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    stage.settings = replace(
        stage.settings, archive=replace(stage.settings.archive, folders=(str(tmp_path / "mnt"),))
    )
    await add_receiver(stage, "folder", "NAS", {"path": str(tmp_path / "mnt" / "archive")}, {})
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, stage.clock.now_ms()))
        await stage.clock.advance(1_000)
        await until_clips(stage, "asked")
        await deliver(stage)  # and nobody stores the object
        await stage.clock.advance(1_000)
        await until_clips(stage, "ready")
        await until_told(stage)
    rows = await stage.rows("SELECT kind, status, last_error, request FROM deliveries ORDER BY delivery_id")
    of_clip = [row for row in rows if "clip_id" in str(row["request"])]
    assert [(row["kind"], row["status"]) for row in of_clip] == [("archive", "done"), ("copy", "suppressed")]
    assert of_clip[1]["last_error"] == "the clip is past its retention"
