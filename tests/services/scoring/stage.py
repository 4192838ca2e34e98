"""A run on a stage: a store, a sheet in memory and the fake model."""

from collections.abc import Sequence
from dataclasses import replace

import uuid_utils

from camserver.base.clock import StoreClock
from camserver.base.secrets import Secret
from camserver.clients.llm.opening import open_client
from camserver.clients.llm.prices import Price
from camserver.clients.llm.rest_client import RestClient
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import RunSpec, RunStatus, ScoringPolicy, plan_chunks
from camserver.services.scoring.pipeline import Models, ScoringPipeline
from camserver.store import ScopedStore, Store, scoring_runs, tenants
from camserver.store.scoring_runs import NewRun, Run
from tests.fakes.scoring_llm import truth
from tests.services.scoring.list_sheet import FIRST, ListSheet

POLICY = ScoringPolicy(chunk_rows=10, flush_interval_sec=0.01, network_retries=3, concurrency_max=16)
PRICE = Price(1.0, 2.0)


def right_cells(sheet: ListSheet) -> list[list[float | str | None]]:
    return [[truth(line.text, name) for name in sheet.names] for line in sheet.lines]


class Stage:
    """Opens and works on runs as `camserver score` does."""

    def __init__(self, store: Store, url: str, policy: ScoringPolicy = POLICY) -> None:
        self.store = store
        self.policy = policy
        self.clock = StoreClock()
        self.url = url
        self._tenant_id = 0

    def spec(self, sheet: ListSheet, names: Sequence[str] = (), **changes: object) -> RunSpec:
        from camserver.domain.sheet_layout import Category

        base = RunSpec(
            "openai", self.url, "small", ("large",), "numeric", 0.0, 200, "", sheet.layout,
            tuple(Category(index, name) for index, name in enumerate(sheet.names)),
        )  # fmt: skip
        return replace(base, **changes)  # type: ignore[arg-type]  # the names are its own

    async def begin(self, sheet: ListSheet, budget_micro: int | None = None, **changes: object) -> Run:
        now_ms = self.clock.now_ms()
        self._tenant_id = self._tenant_id or await self.store.write(tenants.ensure, "scoring", now_ms)
        last_row = FIRST + len(sheet.lines) - 1
        chunks = plan_chunks(FIRST, last_row, self.policy.chunk_rows)
        new = NewRun(
            str(uuid_utils.uuid7()), self._tenant_id, sheet.address, self.spec(sheet, **changes), last_row,
            budget_micro, tuple(chunks),
        )  # fmt: skip
        return await self.run(await self.store.write(scoring_runs.begin, new, now_ms))

    async def run(self, run_id: int) -> Run:
        return await self.store.read(scoring_runs.get, run_id)

    def pages(self, run: Run) -> ScopedStore:
        return self.store.as_(Principal(run.tenant_id, None, Role.VIEWER))

    def pipeline(self, run: Run, sheet: ListSheet, policy: ScoringPolicy | None = None) -> ScoringPipeline:
        clients = [self.client(model) for model in (run.spec.model, *run.spec.fallback_models)]
        self._clients = clients
        models = Models(clients, [PRICE] * len(clients), self.url, Secret("a-key-of-the-test"))
        return ScoringPipeline(self.store, self.clock, sheet, run, policy or self.policy, models)

    def client(self, model: str) -> RestClient:
        return open_client("openai", model=model, base_url=self.url, key=None, timeout_sec=30, lean=True)

    async def work(self, run: Run, sheet: ListSheet, policy: ScoringPolicy | None = None) -> RunStatus:
        run = await self.run(run.run_id)
        await self.store.write(scoring_runs.want, run.run_id, "run", self.clock.now_ms())
        pipeline = self.pipeline(run, sheet, policy)
        try:
            return await pipeline.work()
        finally:
            await self.close()

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
