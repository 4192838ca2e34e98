"""The service looks at what was brought, works on what waits, and goes on after another one died."""

import asyncio
import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uuid_utils

from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import RunStatus, plan_chunks
from camserver.domain.scoring_sheets import SheetKind, SheetState, SheetWishes
from camserver.objects.local import LocalObjects
from camserver.services.scoring import service
from camserver.services.scoring.filling import fill
from camserver.services.scoring.looking import look_at_next
from camserver.services.scoring.places import Places
from camserver.store import (
    ScopedStore,
    Store,
    open_store,
    scoring_chunks,
    scoring_desk,
    scoring_runs,
    scoring_sheets,
    tenants,
)
from camserver.store.scoring_sheets import NewSheet, RunWanted
from tests.fakes.scoring_llm import ScoringLlm, truth
from tests.rig.polling import poll_async
from tests.rig.templates import SqliteTemplate

SHEET = b"t\n,,,red,green\n\n\n" + b"".join(f",,n {n}\n".encode() for n in range(9))


def set_up(folder: Path, llm_url: str) -> Settings:
    config = folder / "camserver.toml"
    config.write_text(
        f'[llm]\nprovider = "openai"\nmodel = "m"\nbase_url = "{llm_url}"\n[scoring]\nflush_interval_sec = 0.1\n'
    )
    settings = load(config, {}, folder / "data")
    settings.server.data_dir.mkdir()
    return settings


async def brought(scoped: ScopedStore, objects: LocalObjects, now_ms: int) -> str:
    new = NewSheet(str(uuid_utils.uuid7()), SheetKind.FILE, "a.csv", SheetWishes(), len(SHEET))
    await scoped.write(scoring_sheets.add, new, 1_000_000, "", now_ms)
    place = await scoped.write(scoring_sheets.claim_part, new.sheet_uuid, 0, len(SHEET), now_ms)
    await objects.put(place.object_key, SHEET)
    await scoped.write(scoring_sheets.note_part, new.sheet_uuid, place.object_key, now_ms)
    return new.sheet_uuid


async def begun(scoped: ScopedStore, sheet_uuid: str, now_ms: int) -> int:
    chunks = tuple(plan_chunks(5, 13, 4))
    wanted = RunWanted(str(uuid_utils.uuid7()), sheet_uuid, f"file:{sheet_uuid}", None, chunks)
    return (await scoped.write(scoring_sheets.begin_run, wanted, "", now_ms)).run.run_id


class HeldObjects(LocalObjects):
    """Reads wait for the test."""

    asked: asyncio.Event
    may_go: asyncio.Event

    async def get(self, key: str) -> bytes:
        self.asked.set()
        await self.may_go.wait()
        return await super().get(key)


async def leave_locks(store: Store, run_id: int, clock: StoreClock) -> None:
    """What a process leaves that is killed in the middle: a chunk and the right to write are held."""
    later = clock.now_ms() + 3_600_000
    await store.write(scoring_chunks.claim, run_id, "dead:1", "dead", 1, later, clock.now_ms())
    await store.write(scoring_runs.take_writing, run_id, "dead", later, clock.now_ms())


async def test_a_sheet_is_looked_at_and_a_run_goes_on_after_a_process_died(
    tmp_path: Path, sqlite_template: SqliteTemplate
) -> None:
    url = sqlite_template.fresh()
    store = await open_store(url)
    clock = StoreClock()
    async with ScoringLlm() as llm:
        settings = set_up(tmp_path, llm.url)
        objects = LocalObjects(settings.objects.dir)
        tenant_id = await store.write(tenants.ensure, "t", clock.now_ms())
        scoped = store.as_(Principal(tenant_id, None, Role.TENANT_ADMIN))
        sheet_uuid = await brought(scoped, objects, clock.now_ms())
        ready = Ready()
        ready.expect("scoring")
        serving = asyncio.create_task(service.run(store, objects, clock, settings, ready))

        async def is_looked_at() -> bool:
            return (await scoped.read(scoring_sheets.get, sheet_uuid)).state is SheetState.LOOKED

        await poll_async(is_looked_at, "the sheet is looked at")
        assert ready.is_ready
        serving.cancel()
        await asyncio.wait([serving])
        run_id = await begun(scoped, sheet_uuid, clock.now_ms())
        await leave_locks(store, run_id, clock)
        serving = asyncio.create_task(service.run(store, objects, clock, settings, ready))

        async def is_filled() -> bool:
            run = await store.read(scoring_runs.get, run_id)
            return run.status is RunStatus.COMPLETED and run.filled_at == run.updated_at

        await poll_async(is_filled, "the run is completed and its file made")
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
    run = await store.read(scoring_runs.get, run_id)
    assert run.busy_ms > 0
    _, pieces = await scoped.read(scoring_sheets.result, run.run_uuid)
    filled = b"".join([await objects.get(one.object_key) for one in pieces]).decode()
    rows = [line.rstrip("\r\n").split(",") for line in io.StringIO(filled)][4:]
    assert [row[2:] for row in rows] == [
        [f"n {n}", *(f"{truth(f'n {n}', name):.2f}" for name in ("red", "green"))] for n in range(9)
    ]
    assert list((settings.server.data_dir / "scoring").iterdir()) == []
    assert await store.read(scoring_desk.unfilled) == ()
    await store.close()
    sqlite_template.discard(url)


async def test_a_sheet_whose_look_crashes_is_not_looked_at_for_ever(
    tmp_path: Path, sqlite_template: SqliteTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite_template.fresh()
    store = await open_store(url)
    clock = StoreClock()
    settings = set_up(tmp_path, "http://127.0.0.1:9")
    objects = LocalObjects(settings.objects.dir)
    scoped = store.as_(Principal(await store.write(tenants.ensure, "t", clock.now_ms()), None, Role.TENANT_ADMIN))
    sheet_uuid = await brought(scoped, objects, clock.now_ms())

    async def crashes(*_: object) -> Any:
        raise ValueError("something odd")

    monkeypatch.setattr(Places, "open", crashes)
    places = Places(store, objects, clock, settings)
    assert await look_at_next(store, clock, settings, places)
    sheet = await scoped.read(scoring_sheets.get, sheet_uuid)
    assert sheet.state is SheetState.REFUSED
    assert "log says where" in (sheet.message or "")
    assert not await look_at_next(store, clock, settings, places)
    await store.close()
    sqlite_template.discard(url)


async def test_making_a_file_that_is_broken_off_leaves_nothing_and_lets_others_write(
    tmp_path: Path, sqlite_template: SqliteTemplate
) -> None:
    url = sqlite_template.fresh()
    store = await open_store(url)
    clock = StoreClock()
    settings = set_up(tmp_path, "http://127.0.0.1:9")
    objects = HeldObjects(settings.objects.dir)
    objects.asked, objects.may_go = asyncio.Event(), asyncio.Event()
    scoped = store.as_(Principal(await store.write(tenants.ensure, "t", clock.now_ms()), None, Role.TENANT_ADMIN))
    sheet_uuid = await brought(scoped, objects, clock.now_ms())
    objects.may_go.set()
    assert await look_at_next(store, clock, settings, Places(store, objects, clock, settings))
    objects.asked.clear()
    objects.may_go.clear()
    run_id = await begun(scoped, sheet_uuid, clock.now_ms())

    filling = asyncio.create_task(fill(store, objects, clock, settings, run_id))
    await objects.asked.wait()
    assert len(list((tmp_path / "data" / "scoring").iterdir())) == 1
    # A second cancellation meets it while it gives back what it holds.
    for _ in range(2):
        filling.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([filling], timeout=60)
    assert filling.cancelled()
    assert list((tmp_path / "data" / "scoring").iterdir()) == []
    assert await store.write(scoring_runs.take_writing, run_id, "next", clock.now_ms() + 1, clock.now_ms())
    await store.close()
    sqlite_template.discard(url)
