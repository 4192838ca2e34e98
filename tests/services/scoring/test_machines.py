"""Two machines on one run: they share its chunks, journal and sheet, and what the key may have in flight."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from camserver.domain.scoring import RunStatus
from camserver.store import Store, open_store
from tests.fakes.scoring_llm import Behaviour, ByConcurrency, ScoringLlm
from tests.rig.templates import Template
from tests.services.scoring.list_sheet import ListSheet
from tests.services.scoring.stage import POLICY, Stage, right_cells

PLACES = 10


@pytest.fixture(params=["postgres", "mariadb"])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Store]]:
    template: Template = request.getfixturevalue(f"{request.param}_template")
    url = template.fresh()
    first, second = await open_store(url), await open_store(url)
    yield first, second
    await first.close()
    await second.close()
    template.discard(url)


async def test_two_machines_share_a_run_and_ask_nothing_twice(stores: tuple[Store, Store]) -> None:
    sheet = ListSheet.of([f"a text with the number {number}" for number in range(300)])
    policy = replace(POLICY, chunk_rows=20, chunks_at_once=2)
    behaviour = Behaviour(latency_sec=0.05, capacity=ByConcurrency(PLACES, retry_after_sec=0.05))
    async with ScoringLlm(behaviour) as llm:
        stages = [Stage(store, llm.url, policy) for store in stores]
        run = await stages[0].begin(sheet)
        pipelines = [stage.pipeline(run, sheet) for stage in stages]
        assert set(await asyncio.gather(*(one.work() for one in pipelines))) == {RunStatus.COMPLETED}
        for stage in stages:
            await stage.close()
    ended = await stages[0].run(run.run_id)
    asked = [one.standing.spent.calls for one in pipelines]
    assert min(asked) > 0
    assert sum(asked) == ended.calls == llm.calls
    assert max(llm.billed.values()) == 1
    assert sheet.cells() == right_cells(sheet)
    # Each makes room for the other: together they don't go on as if each were alone.
    assert llm.refused <= 0.2 * llm.calls
