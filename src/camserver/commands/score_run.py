"""What `camserver score` does: opens the sheet and the store, works on the run and shows how far it is."""

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camserver.base.errors import CheckFailed, DataOwned
from camserver.commands.score_words import duration, money, say, spent
from camserver.commands.shown import reader_language

if TYPE_CHECKING:
    from camserver.base.clock import StoreClock
    from camserver.base.secrets import Secret
    from camserver.clients.sheets.sheet import Sheet
    from camserver.config import Settings
    from camserver.domain.sheet_layout import SheetCheck
    from camserver.services.scoring.opening import Wishes
    from camserver.services.scoring.pipeline import ScoringPipeline
    from camserver.store import Store
    from camserver.store.scoring_runs import Run

SHOWN_EVERY_SEC = 1.0
# Into a file or a log, not a line a second.
LOGGED_EVERY_SEC = 10.0
NOTES_SHOWN_MAX = 10
# A run goes through its rows once, and looks for answers in no order: pages that were read are hardly read again, and
# keeping more of them only makes a long run larger than a short one.
SQLITE_READERS_MAX = 2
SQLITE_CACHE_KIB = 4_096


@dataclass(frozen=True, slots=True)
class Asked:
    """The command's arguments."""

    address: str
    layout: Mapping[str, object]
    wishes: "Wishes"
    output: Path | None
    export: Path | None
    credentials: Path | None
    google_url: str | None
    check_only: bool
    dry_run: bool
    as_json: bool


async def score(settings: "Settings", asked: Asked) -> None:
    from camserver.base import folders
    from camserver.base import log as logs
    from camserver.base.clock import StoreClock
    from camserver.services.scoring.opening import layout_of

    logs.configure("score", settings.log.format, "warning")
    folders.make_usable(settings.server.data_dir, "server.data_dir")
    clock = StoreClock()
    async with AsyncExitStack() as stack:
        sheet = await open_sheet(settings, asked, layout_of(settings.sheet, asked.layout), clock)
        stack.push_async_callback(sheet.close)
        check = await sheet.check()
        _show_check(asked, sheet, check)
        if asked.check_only:
            return
        await sheet.categories()
        store, tenant_id = await opened_store(settings, clock, stack)
        await _go(settings, asked, sheet, check, store, clock, tenant_id, stack)


async def open_sheet(settings: "Settings", asked: Asked, layout: Any, clock: "StoreClock") -> "Sheet":
    from camserver.clients.sheets.google_api import SHEETS_URL
    from camserver.clients.sheets.opening import open_sheet as opened

    return await opened(
        asked.address,
        layout,
        clock,
        credentials=await asyncio.to_thread(_credentials, asked.credentials or settings.drive.credentials_file),
        output=asked.output,
        work_folder=settings.server.data_dir,
        google_url=asked.google_url or SHEETS_URL,
    )


def _credentials(file: Path | None) -> "Secret | None":
    from camserver.base.errors import BadInput
    from camserver.base.secrets import Secret

    if file is None:
        return None
    try:
        return Secret(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the key file {file} can't be read: {error}") from None


_BESIDE = (
    "Scoring beside a running camserver needs PostgreSQL or MariaDB; on SQLite choose another folder for the runs by "
    "--data-dir"
)


async def opened_store(
    settings: "Settings", clock: "StoreClock", stack: AsyncExitStack, when_owned: str = _BESIDE
) -> "tuple[Store, int]":
    """The store and the tenant, for a command that needs no server. `when_owned` is said when one has the store."""
    from camserver.base import clock as clocks
    from camserver.base import folders
    from camserver.care.ownership import handed_over
    from camserver.parts import backup_folder
    from camserver.store import open_store
    from camserver.store.first_start import prepare_store

    folders.make_usable(settings.server.data_dir, "server.data_dir")
    # When the store is closed.
    stack.enter_context(handed_over(settings, with_objects=False))
    chosen = settings.store
    try:
        store = await open_store(
            chosen.url.reveal(),
            pool_size=chosen.pool_size,
            acquire_timeout_sec=chosen.acquire_timeout_sec,
            # Each has a cache of its own, and a run reads one thing after the other.
            sqlite_readers=min(chosen.sqlite_readers, SQLITE_READERS_MAX),
            sqlite_cache_kib=SQLITE_CACHE_KIB,
            backup_dir=backup_folder(settings),
        )
    except DataOwned as error:
        raise DataOwned(f"{error.message}. {when_owned}") from None
    stack.push_async_callback(store.close)
    if await clocks.sync(clock, store.database_time_ms):
        following = asyncio.create_task(clocks.follow(clock, store.database_time_ms))
        stack.callback(following.cancel)
    home = await prepare_store(store, settings.vocabulary.schema_version, clock.now_ms())
    return store, home.tenant_id


async def _go(
    settings: "Settings",
    asked: Asked,
    sheet: "Sheet",
    check: "SheetCheck",
    store: "Store",
    clock: "StoreClock",
    tenant_id: int,
    stack: AsyncExitStack,
) -> None:
    from camserver.base.collecting import collect_seldom
    from camserver.services.scoring.estimating import estimate
    from camserver.services.scoring.opening import find_or_begin, open_models, price_for, refuse_unpriced, spec_of
    from camserver.services.scoring.pipeline import ScoringPipeline
    from camserver.services.scoring.spool import aside_in
    from camserver.services.scoring.telling import tell

    policy = settings.scoring
    spec = spec_of(settings.llm, policy, asked.wishes, sheet, check)
    if asked.dry_run:
        price = price_for(settings.llm, spec.model)
        _show_estimate(asked, asdict(await estimate(store, clock, tenant_id, sheet, spec, policy, price)))
        return
    models, clients = open_models(settings.llm, spec)
    for client in clients:
        stack.push_async_callback(client.close)
    refuse_unpriced(models, asked.wishes.budget_micro)
    found = await find_or_begin(store, clock, tenant_id, sheet, spec, policy, asked.wishes, check.last_row)
    run = found.run
    if asked.wishes.retries_failed:
        _tell(asked, say("retried", count=found.retried))
    _tell(asked, say("resumed" if found.is_resumed else "begun", run_uuid=run.run_uuid))
    pipeline = ScoringPipeline(store, clock, sheet, run, policy, models, aside=aside_in(settings.server.data_dir))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, pipeline.stop)
    beside = [
        asyncio.create_task(work)
        for work in (_show(asked, store, run, pipeline, check), tell(store, clock, run.run_id, pipeline))
    ]
    collect_seldom()
    try:
        await pipeline.work()
    finally:
        for one in beside:
            one.cancel()
        await asyncio.wait(beside)
    await _report(asked, store, run.run_id, pipeline.standing.sheet_trouble)


# ---------------------------------------------------------------------------------------------------------------
# Showing
# ---------------------------------------------------------------------------------------------------------------


def _tell(asked: Asked, text: str) -> None:
    if not asked.as_json:
        click.echo(text, err=True)


def _show_check(asked: Asked, sheet: "Sheet", check: "SheetCheck") -> None:
    from camserver.domain.scoring_phrases import finding_text
    from camserver.domain.sheet_layout import Severity

    findings = [asdict(one) for one in check.findings]
    if asked.check_only and asked.as_json:
        shown = {
            "sheet": sheet.address,
            "ok": check.ok,
            "rows": check.texts,
            "empty_rows": check.empty_rows,
            "filled_cells": check.filled_cells,
            "last_row": check.last_row,
            "categories": [one.name for one in check.categories],
            "findings": findings,
        }
        click.echo(json.dumps(shown, ensure_ascii=False))
    else:
        _tell(asked, say("sheet", address=sheet.address, texts=check.texts, categories=len(check.categories)))
        for one in check.findings:
            kind = say("error" if one.severity is Severity.ERROR else "warning")
            _tell(asked, f"  {kind}: {finding_text(one, reader_language())}")
        if asked.check_only and not findings:
            _tell(asked, say("fine"))
    if not check.ok:
        wrong = next(one for one in check.findings if one.severity is Severity.ERROR)
        raise CheckFailed(say("unfit", address=sheet.address, wrong=finding_text(wrong, reader_language())))


def _show_estimate(asked: Asked, found: dict[str, Any]) -> None:
    if asked.as_json:
        click.echo(json.dumps(found))
        return
    cost = None if found["cost_usd"] is None else found["cost_usd"] * 1_000_000
    basis = "" if found["is_time_measured"] else say("guessed")
    click.echo(say("estimate", **found, cost=money(cost), time=duration(found["seconds"]), basis=basis))


async def _show(asked: Asked, store: "Store", run: "Run", pipeline: "ScoringPipeline", check: "SheetCheck") -> None:
    """A line that is written over on a terminal; elsewhere a line now and then. With --json each is an object."""
    is_terminal = sys.stderr.isatty() and not asked.as_json
    blocks = -(-len(run.spec.categories) // run.spec.layout.block_size)
    last = (asyncio.get_running_loop().time(), -1)
    while True:
        await asyncio.sleep(SHOWN_EVERY_SEC if is_terminal or asked.as_json else LOGGED_EVERY_SEC)
        now = await progress(store, run.run_id, pipeline, check.texts * blocks)
        at = asyncio.get_running_loop().time()
        settled = now["done"] + now["failed"]
        rate = (settled - last[1]) / (at - last[0]) if last[1] >= 0 else 0.0
        last = (at, settled)
        left = max(now["tasks"] - settled, 0)
        now |= {"rate": round(rate, 2), "eta_sec": round(left / rate, 1) if rate else None}
        if asked.as_json:
            click.echo(json.dumps({"progress": now}), err=True)
            continue
        line = say("progress", **now, cost=spent(now["cost_micro"], now["calls"]), eta=duration(now["eta_sec"]))
        line += "".join(f"  ! {now[name]}" for name in ("trouble", "sheet_trouble") if now[name])
        click.echo(f"\r\x1b[2K{line}" if is_terminal else line, nl=not is_terminal, err=True)


async def progress(store: "Store", run_id: int, pipeline: "ScoringPipeline", tasks: int) -> dict[str, Any]:
    from camserver.store import scoring_runs

    run = await store.read(scoring_runs.get, run_id)
    totals = await store.read(scoring_runs.totals, run_id)
    standing = pipeline.standing
    return {
        "rows_read": totals.rows_read,
        "chunks": totals.chunks,
        "chunks_over": totals.chunks_over,
        "tasks": max(tasks, totals.tasks),
        "done": totals.done,
        "failed": totals.failed,
        "written": totals.written,
        "calls": run.calls,
        "refused": run.refused,
        "hits": run.cache_hits + run.same_hits,
        "cost_micro": run.cost_micro,
        "limit": round(standing.limit, 1),
        "in_flight": standing.in_flight,
        "pace": standing.pace,
        "workers": standing.workers,
        "write_delay_sec": round(standing.write_delay_sec, 3),
        "trouble": standing.trouble,
        "sheet_trouble": standing.sheet_trouble,
    }


async def _report(asked: Asked, store: "Store", run_id: int, sheet_trouble: str | None) -> None:
    from camserver.domain.scoring import RunStatus
    from camserver.domain.scoring_phrases import pause_text
    from camserver.services.scoring.exporting import export, report
    from camserver.store import scoring_runs

    run = await store.read(scoring_runs.get, run_id)
    found = await report(store, run)
    files = await export(store, run, asked.export) if asked.export is not None else []
    if asked.as_json:
        click.echo(json.dumps({**found, "sheet_trouble": sheet_trouble}, ensure_ascii=False))
    else:
        _tell(asked, "")
        for path in files:
            _tell(asked, say("written", path=path))
        show_report(found, sheet_trouble)
    if run.status is RunStatus.FAILED:
        raise CheckFailed(run.message or "the run failed")
    if run.status is RunStatus.PAUSED and run.reason != "asked":
        why = pause_text(run.reason, run.message, reader_language())
        raise CheckFailed(say("stopped", reason=run.reason, why=why))


def show_report(found: Mapping[str, Any], sheet_trouble: str | None = None) -> None:
    """`sheet_trouble` is why the sheet does not take what waits for it, where that is known."""
    from camserver.domain.scoring_phrases import pause_text

    values = {**found, "hits": found["cache_hits"] + found["same_hits"], "refused": found["refused_429"]}
    click.echo(say("asked_only", **values, cost=spent(found["cost_usd"] * 1_000_000, found["calls"])))
    results = found["results"]
    left = sum(results.get(name, 0) for name in ("failed", "refused", "moved"))
    if found["status"] == "completed":
        click.echo(say("completed", written=results.get("written", 0), failed=left))
    elif found["status"] == "paused":
        click.echo(say("paused", reason=pause_text(found["reason"], found["message"], reader_language())))
    elif found["status"] == "cancelled":
        click.echo(say("cancelled"))
    if waiting := results.get("scored", 0):
        click.echo(say("waiting", count=waiting, why=sheet_trouble or "").rstrip())
    if found["notes"]:
        click.echo(say("notes"))
        for one in found["notes"][:NOTES_SHOWN_MAX]:
            click.echo(say("note", row=one["row"], note=one["note"]))
        if left > NOTES_SHOWN_MAX:
            click.echo(say("more", count=left - NOTES_SHOWN_MAX))
