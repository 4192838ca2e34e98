"""From settings and a sheet to a run: what is asked of which model, and whether an earlier run goes on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import uuid_utils

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, BadSettings
from camserver.clients.llm.opening import open_client
from camserver.clients.llm.prices import Price, price_of
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import RunSpec, RunStatus, ScoreForm, ScoringPolicy, plan_chunks
from camserver.domain.sheet_layout import SheetCheck, SheetLayout
from camserver.services.scoring.pipeline import Models
from camserver.store import Store, scoring_runs
from camserver.store.scoring_runs import NewRun, Run

if TYPE_CHECKING:
    from camserver.clients.llm.rest_client import RestClient
    from camserver.config.sections import LlmSettings


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks for beside the settings; None or empty: as they say."""

    model: str | None = None
    form: ScoreForm | None = None
    instructions: str = ""
    budget_micro: int | None = None
    is_new: bool = False  # what an earlier run left is cancelled
    retries_failed: bool = False  # of the last run too that is over


class Found(NamedTuple):
    run: Run
    is_resumed: bool  # it goes on with an earlier one
    retried: int = 0  # tasks of it that had failed and are due again


def layout_of(base: SheetLayout, changes: Mapping[str, object]) -> SheetLayout:
    layout = replace(base, **dict(changes))  # type: ignore[arg-type]  # the names are its own
    layout.check()
    return layout


def spec_of(llm: "LlmSettings", policy: ScoringPolicy, wishes: Wishes, sheet: Sheet, check: SheetCheck) -> RunSpec:
    if not llm.is_configured:
        raise BadSettings("no language model is configured; set provider and key in [llm], see docs/guide/scoring.md")
    return RunSpec(
        llm.provider,
        llm.base_url,
        wishes.model or policy.model or llm.model,
        policy.fallback_models,
        wishes.form or policy.form,
        policy.temperature,
        policy.answer_max_tokens,
        wishes.instructions,
        sheet.layout,
        check.categories,
    )


def price_for(llm: "LlmSettings", model: str) -> Price | None:
    """What the operator says for the configured model, else the table; a server of one's own has no known price."""
    if (llm.price_in or llm.price_out) and (model == llm.model or llm.base_url is not None):
        return Price(llm.price_in, llm.price_out)
    return price_of(llm.provider, model) if llm.base_url is None else None


def open_models(llm: "LlmSettings", spec: RunSpec) -> "tuple[Models, list[RestClient]]":
    """The clients are closed by whoever asked for them."""
    names = (spec.model, *spec.fallback_models)
    clients = [
        open_client(
            spec.provider, model=name, base_url=spec.base_url, key=llm.key, timeout_sec=llm.timeout_sec, lean=True
        )
        for name in names
    ]
    return Models(clients, [price_for(llm, name) for name in names], spec.base_url, llm.key), clients


def refuse_unpriced(models: Models, budget_micro: int | None) -> None:
    if budget_micro is not None and any(price is None for price in models.prices):
        raise BadInput(
            "a budget can't be kept for a model whose price nobody knows; set [llm] price_in and price_out, or leave "
            "the budget out"
        )


async def find_or_begin(
    store: Store,
    clock: Clock,
    tenant_id: int,
    sheet: Sheet,
    spec: RunSpec,
    policy: ScoringPolicy,
    wishes: Wishes,
    last_row: int,
) -> Found:
    """The run for a sheet."""
    now_ms = clock.now_ms()
    earlier = await store.read(scoring_runs.unfinished, tenant_id, sheet.address, wishes.retries_failed)
    if earlier is not None and (wishes.is_new or earlier.spec != spec):
        # Another question than before: what is in the sheet stays, what is not asked yet is asked anew.
        await store.write(scoring_runs.want, earlier.run_id, "cancel", now_ms)
        earlier = None
    if earlier is not None:
        if wishes.budget_micro is not None:
            await store.write(scoring_runs.set_budget, earlier.run_id, wishes.budget_micro)
        retried = 0
        if earlier.status is RunStatus.FAILED or wishes.retries_failed:
            retried = await store.write(scoring_runs.retry_failed, tenant_id, earlier.run_id, now_ms)
        await store.write(scoring_runs.want, earlier.run_id, "run", now_ms)
        return Found(await store.read(scoring_runs.get, earlier.run_id), True, retried)
    chunks = tuple(plan_chunks(sheet.layout.first_data_row, last_row, policy.chunk_rows))
    new = NewRun(str(uuid_utils.uuid7()), tenant_id, sheet.address, spec, last_row, wishes.budget_micro, chunks)
    run_id = await store.write(scoring_runs.begin, new, now_ms)
    return Found(await store.read(scoring_runs.get, run_id), False)
