"""The service works on what waits, and a CSV file gets its scores."""

import asyncio
import csv
from pathlib import Path

from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.clients.sheets.opening import open_sheet
from camserver.config import load
from camserver.domain.scoring import RunStatus
from camserver.services.scoring import service
from camserver.services.scoring.opening import Wishes, find_or_begin, spec_of
from camserver.store import open_store, scoring_runs, tenants
from tests.fakes.scoring_llm import ScoringLlm, truth
from tests.rig.polling import poll_async
from tests.rig.templates import SqliteTemplate


async def test_a_run_that_waits_is_worked_on(tmp_path: Path, sqlite_template: SqliteTemplate) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["t"], ["", "", "", "red", "green"], [], [], *(["", "", f"n {n}"] for n in range(9))]
        )
    url = sqlite_template.fresh()
    store = await open_store(url)
    clock = StoreClock()
    async with ScoringLlm() as llm:
        config = tmp_path / "camserver.toml"
        config.write_text(f'[llm]\nprovider = "openai"\nmodel = "m"\nbase_url = "{llm.url}"\n')
        settings = load(config, {}, tmp_path / "data")
        settings.server.data_dir.mkdir()
        sheet = await open_sheet(str(path), settings.sheet, clock)
        check = await sheet.check()
        tenant_id = await store.write(tenants.ensure, "t", clock.now_ms())
        spec = spec_of(settings.llm, settings.scoring, Wishes(), sheet, check)
        made, _ = await find_or_begin(
            store, clock, tenant_id, sheet, spec, settings.scoring, Wishes(), check.last_row
        )
        await sheet.close()
        ready = Ready()
        serving = asyncio.create_task(service.run(store, clock, settings, ready))

        async def is_over() -> bool:
            return (await store.read(scoring_runs.get, made.run_id)).status is RunStatus.COMPLETED

        await poll_async(is_over, "the run is completed")
        assert ready.is_ready
        serving.cancel()
        await asyncio.wait([serving])
    await store.close()
    sqlite_template.discard(url)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[4:]
    assert [row[2:] for row in rows] == [
        [f"n {n}", *(f"{truth(f'n {n}', name):.2f}" for name in ("red", "green"))] for n in range(9)
    ]
