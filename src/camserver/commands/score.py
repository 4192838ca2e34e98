"""`camserver score` and `camserver scoring`: rows of a sheet against categories, by a language model."""

import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camserver.base.errors import BadInput
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.score_run import Asked, opened_store, score, show_report
from camserver.commands.score_words import HEADS, say, spent
from camserver.commands.shown import age, reader_language, table

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from camserver.base.clock import StoreClock
    from camserver.config import Settings
    from camserver.store import Store
    from camserver.store.scoring_runs import Run

INSTRUCTIONS_MAX_CHARS = 20_000
_LAYOUT = ("text_column", "first_category_column", "id_column", "first_data_row", "name_row", "definition_row",
           "detail_row", "block_size", "tab")  # fmt: skip


def _layout_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option for each part of the layout; what is not given is as [sheet] says."""
    kinds = {name: int if name.endswith(("_row", "_size")) else str for name in _LAYOUT}
    for name in reversed(_LAYOUT):
        option = "--" + name.replace("_", "-")
        text = f"As {name} of [sheet], for this sheet."
        command = click.option(option, name, type=kinds[name], show_default=f"sheet.{name}", help=text)(command)
    return command


@click.command("score")
@click.argument("sheet")
@click.option("--model", help="The model that scores.", show_default="scoring.model, else llm.model")
@click.option("--form", type=click.Choice(["numeric", "anchors"]), help="How the model says a score.",
              show_default="scoring.form")  # fmt: skip
@click.option("--instructions", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A text file with more that the model is told.")  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), help="Most that the run may cost, in US dollars."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the scores into this file and leave SHEET as it is.")  # fmt: skip
@click.option("--export", type=click.Path(file_okay=False, path_type=Path),
              help="Write chunk_meta.json, checkpoint.json and run_report.json into this folder.")  # fmt: skip
@click.option("--credentials", type=click.Path(dir_okay=False, path_type=Path), show_default="drive.credentials_file",
              help="The key file of the service account that a Google sheet is shared with.")  # fmt: skip
@click.option("--google-url", hidden=True, help="Address of Google's API; another one is of use only for tests.")
@click.option("--check", is_flag=True, help="Only look whether the sheet can be scored.")
@click.option("--dry-run", is_flag=True, help="Only say how many questions, tokens, dollars and hours it would take.")
@click.option("--retry-failed", is_flag=True, help="Ask again what failed in the run that is gone on with.")
@click.option("--new", is_flag=True, help="Begin anew; answers that are kept are used all the same.")
@_layout_options
@json_option
@pass_chosen
def score_command(chosen: Chosen, /, sheet: str, as_json: bool, **given: Any) -> None:
    """Score the rows of a sheet by a language model.

    Each row is scored against the sheet's categories by the model of [llm]. SHEET is a CSV, Excel or Parquet file, or
    a Google sheet. Stopped or killed at any moment, the same command goes on where it was: nothing that was answered
    is asked again. Ctrl-C pauses. No server need run.

    \b
    Examples:
      camserver score answers.csv --check
      camserver score answers.xlsx --dry-run
      camserver score answers.csv --budget 5 --output scored.csv
    """
    import uvloop

    from camserver.services.scoring.opening import Wishes

    instructions = given["instructions"].read_text(encoding="utf-8") if given["instructions"] else ""
    if len(instructions) > INSTRUCTIONS_MAX_CHARS:
        raise BadInput(f"the instructions have {len(instructions)} characters; the most are {INSTRUCTIONS_MAX_CHARS}")
    budget = None if given["budget"] is None else round(given["budget"] * 1_000_000)
    asked = Asked(
        sheet,
        {name: given[name] for name in _LAYOUT if given[name] is not None},
        Wishes(given["model"], given["form"], instructions, budget, given["new"], given["retry_failed"]),
        given["output"],
        given["export"],
        given["credentials"],
        given["google_url"],
        given["check"],
        given["dry_run"],
        as_json,
    )
    uvloop.run(score(chosen.settings(), asked))


@click.group("scoring")
def scoring() -> None:
    """See to runs of scoring, or run the service for the web."""


@scoring.command("run")
@pass_chosen
def scoring_run(chosen: Chosen) -> None:
    """Run the service that scores what is asked for on the web.

    It runs until SIGTERM or Ctrl-C and stops within 10 seconds. On SQLite the server does it by itself; on PostgreSQL
    and MariaDB `camserver up` runs it, and any number of machines may.

    \b
    Example:
      CAMSERVER_STORE_URL=postgresql://cam@db/cam camserver scoring run
    """
    from camserver import parts
    from camserver.base.errors import BadSettings

    settings = chosen.settings()
    if not settings.llm.is_configured:
        raise BadSettings("no language model is configured; set provider and key in [llm], see docs/guide/scoring.md")
    parts.serve("scoring", ("scoring",), settings)


# On SQLite one process at a time has the store.
_WHEN_OWNED = (
    "If it is `camserver score`, Ctrl-C there pauses its run, and this command works then; if it is the server, its "
    "page Scoring shows, pauses and cancels runs. On PostgreSQL and MariaDB this works at any time"
)


def _with_store(chosen: Chosen, call: "Callable[[Store, int, StoreClock], Awaitable[Any]]") -> Any:
    import asyncio

    from camserver.base.clock import StoreClock

    async def work(settings: "Settings") -> Any:
        clock = StoreClock()
        async with AsyncExitStack() as stack:
            store, tenant_id = await opened_store(settings, clock, stack, _WHEN_OWNED)
            return await call(store, tenant_id, clock)

    return asyncio.run(work(chosen.settings()))


@scoring.command("list")
@click.option("--limit", type=click.IntRange(1, 200), default=20, help="Most runs shown.")
@json_option
@pass_chosen
def scoring_list(chosen: Chosen, limit: int, as_json: bool) -> None:
    """List runs, newest first.

    \b
    Example:
      camserver scoring list
    """
    from camserver.store import scoring_runs

    async def call(store: "Store", tenant_id: int, clock: "StoreClock") -> list[tuple["Run", Any]]:
        runs = await store.read(scoring_runs.newest, tenant_id, limit)
        return [(run, await store.read(scoring_runs.totals, run.run_id)) for run in runs]

    found = _with_store(chosen, call)
    if as_json:
        shown = [
            {"run_uuid": run.run_uuid, "sheet": run.sheet, "status": run.status.value, "reason": run.reason,
             "done": totals.done, "failed": totals.failed, "written": totals.written, "cost_micro": run.cost_micro,
             "updated_at": run.updated_at}
            for run, totals in found
        ]  # fmt: skip
        click.echo(json.dumps(shown, ensure_ascii=False))
    elif not found:
        click.echo(say("none"), err=True)
    else:
        now_ms = int(time.time() * 1000)
        rows = [
            (run.run_uuid, run.sheet, run.status.value, str(totals.done), str(totals.failed),
             spent(run.cost_micro, run.calls), age(run.updated_at, now_ms))
            for run, totals in found
        ]  # fmt: skip
        click.echo(table(HEADS[reader_language()], rows))


@scoring.command("show")
@click.argument("run_uuid")
@click.option("--export", type=click.Path(file_okay=False, path_type=Path),
              help="Write chunk_meta.json, checkpoint.json and run_report.json into this folder.")  # fmt: skip
@json_option
@pass_chosen
def scoring_show(chosen: Chosen, run_uuid: str, export: Path | None, as_json: bool) -> None:
    """Show what became of a run.

    Figures, and a note for each row that is not in the sheet.

    \b
    Examples:
      camserver scoring show RUN
      camserver scoring show RUN --export run/
    """
    from camserver.services.scoring import exporting
    from camserver.store import scoring_runs

    async def call(store: "Store", tenant_id: int, clock: "StoreClock") -> tuple[dict[str, Any], list[Path]]:
        run = await store.read(scoring_runs.by_uuid, tenant_id, run_uuid)
        files = await exporting.export(store, run, export) if export is not None else []
        return await exporting.report(store, run), files

    found, files = _with_store(chosen, call)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    show_report(found)
    for path in files:
        click.echo(say("written", path=path), err=True)


def _wanting(name: str, wanted: str, purpose: str) -> click.Command:
    @click.argument("run_uuid")
    @json_option
    @pass_chosen
    def command(chosen: Chosen, run_uuid: str, as_json: bool) -> None:
        from camserver.domain.people import Principal, Role
        from camserver.store import scoring_pages

        async def call(store: "Store", tenant_id: int, clock: "StoreClock") -> dict[str, Any]:
            scoped = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
            after = await scoped.write(scoring_pages.control, run_uuid, wanted, "", clock.now_ms())
            return {"run_uuid": run_uuid, "status": after.run.status.value}

        found = _with_store(chosen, call)
        click.echo(json.dumps(found) if as_json else found["status"])

    text = f"{purpose}\n\n\b\nExample:\n  camserver scoring {name} RUN"
    return click.command(name, help=text, short_help=purpose)(command)


for _name, _wanted, _purpose in (
    ("pause", "pause", "Pause a run; what is in flight is waited for."),
    ("resume", "run", "Let a run that is paused or failed go on."),
    ("cancel", "cancel", "Cancel a run; what it wrote stays."),
    ("retry", "retry", "Make what failed in a run due again."),
):
    scoring.add_command(_wanting(_name, _wanted, _purpose))
