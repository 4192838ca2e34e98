"""Whole runs on real sheets: an Excel file, and Google Sheets with a person who sorts meanwhile."""

from pathlib import Path

import pytest
import pytest_asyncio
import uuid_utils

from camserver.base.secrets import Secret
from camserver.clients.sheets.opening import open_sheet
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import RunSpec, RunStatus, plan_chunks
from camserver.domain.sheet_layout import SheetLayout
from camserver.store import Store, open_store, scoring_runs, tenants
from camserver.store.scoring_runs import NewRun
from tests.clients.sheets.tables import load, save, table
from tests.fakes.scoring_llm import ScoringLlm, truth
from tests.fakes.sheets import Answer, FakeSheets, Unheard
from tests.rig.templates import SqliteTemplate
from tests.services.scoring.stage import Stage
from tests.store.conftest import wipe

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = [f"a text with the number {number}" for number in range(30)]
LAYOUT = SheetLayout(block_size=2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(sqlite_template: SqliteTemplate):
    url = sqlite_template.fresh()
    store = await open_store(url)
    yield store
    await store.close()
    sqlite_template.discard(url)


@pytest_asyncio.fixture(loop_scope="module")
async def stage(opened: Store):
    await opened.write(wipe)
    async with ScoringLlm() as llm:
        yield Stage(opened, llm.url)


async def work(stage: Stage, sheet: Sheet) -> RunStatus:
    """As `camserver score` does it."""
    check = await sheet.check()
    assert check.ok, check.findings
    categories = await sheet.categories()
    spec = RunSpec("openai", stage.url, "small", ("large",), "numeric", 0.0, 200, "", sheet.layout, categories)
    now_ms = stage.clock.now_ms()
    tenant_id = await stage.store.write(tenants.ensure, "scoring", now_ms)
    chunks = tuple(plan_chunks(sheet.layout.first_data_row, check.last_row, stage.policy.chunk_rows))
    new = NewRun(str(uuid_utils.uuid7()), tenant_id, sheet.address, spec, check.last_row, None, chunks)
    run = await stage.run(await stage.store.write(scoring_runs.begin, new, now_ms))
    return await stage.work(run, sheet)  # type: ignore[arg-type]  # any sheet does


def right(categories: int = 3) -> dict[str, list[float]]:
    return {text: [round(truth(text, f"category {number}"), 2) for number in range(categories)] for text in TEXTS}


async def test_a_workbook(stage: Stage, tmp_path: Path) -> None:
    path = save(tmp_path / "sheet.xlsx", table(TEXTS, categories=3))
    sheet = await open_sheet(str(path), LAYOUT, stage.clock)
    assert await work(stage, sheet) is RunStatus.COMPLETED
    await sheet.close()
    assert {row[2]: [float(cell) for cell in row[3:]] for row in load(path)[4:]} == right()


async def test_a_google_sheet_that_is_sorted_meanwhile(stage: Stage) -> None:
    async with FakeSheets(list(table(TEXTS, categories=3))) as google:
        google.before("update", lambda: None, lambda: google.sort(5), lambda: None, lambda: google.sort(5, 0))
        google.fail("update", Unheard(), Answer(500))
        sheet = await open_sheet(
            google.address, LAYOUT, stage.clock, credentials=Secret(google.key_file), google_url=google.url
        )
        assert await work(stage, sheet) is RunStatus.COMPLETED
        await sheet.close()
        assert google.scores() == right()
