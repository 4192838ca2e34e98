"""Scoring runs for tests of the web: as `camserver score` leaves them."""

import uuid_utils

from camserver.domain.scoring import RunSpec, plan_chunks
from camserver.domain.sheet_layout import Category, SheetLayout
from camserver.store import Store, scoring_runs
from camserver.store.scoring_runs import NewRun

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


async def add_run(store: Store, tenant_id: int, now_ms: int, last_row: int = 1204) -> str:
    run_uuid = str(uuid_utils.uuid7())
    chunks = tuple(plan_chunks(SPEC.layout.first_data_row, last_row, 500))
    new = NewRun(run_uuid, tenant_id, f"/data/{run_uuid}.csv", SPEC, last_row, 5_000_000, chunks)
    await store.write(scoring_runs.begin, new, now_ms)
    return run_uuid
