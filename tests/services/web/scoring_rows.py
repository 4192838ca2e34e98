"""Scoring runs for tests of the web: as `camserver score` leaves them."""

import uuid_utils

from camserver.domain.people import Principal, Role
from camserver.domain.scoring import RunSpec, plan_chunks
from camserver.domain.scoring_sheets import SheetKind, SheetWishes
from camserver.domain.sheet_layout import Category, SheetLayout
from camserver.store import Store, scoring_runs, scoring_sheets
from camserver.store.scoring_runs import NewRun
from camserver.store.scoring_sheets import NewSheet

SPEC = RunSpec(
    "openai",
    None,
    "a-model",
    (),
    "numeric",
    0.0,
    1000,
    "",
    SheetLayout(),
    (Category(0, "angry"), Category(1, "glad")),
)


async def add_sheet(store: Store, tenant_id: int, now_ms: int) -> str:
    """One whose last piece is missing."""
    sheet_uuid = str(uuid_utils.uuid7())
    new = NewSheet(sheet_uuid, SheetKind.FILE, "a.csv", SheetWishes(), 5)
    admin = Principal(tenant_id, None, Role.TENANT_ADMIN)
    await store.as_(admin).write(scoring_sheets.add, new, 1_000_000, "", now_ms)
    return sheet_uuid


async def add_run(store: Store, tenant_id: int, now_ms: int, last_row: int = 1204) -> str:
    run_uuid = str(uuid_utils.uuid7())
    chunks = tuple(plan_chunks(SPEC.layout.first_data_row, last_row, 500))
    new = NewRun(run_uuid, tenant_id, f"/data/{run_uuid}.csv", SPEC, last_row, 5_000_000, chunks)
    await store.write(scoring_runs.begin, new, now_ms)
    return run_uuid
