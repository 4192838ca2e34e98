"""The scoring service: works on runs that wait, one after the other, until it is cancelled.

Several may run on several machines: each claims chunks of the same run. A run that can't be worked on here (a file
that is on another machine, say) is left to others and looked at again later.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.base.secrets import Secret
from camserver.clients.sheets.opening import open_sheet
from camserver.domain.scoring import RunStatus
from camserver.domain.sheet_layout import changed_headers
from camserver.services.scoring.opening import open_models
from camserver.services.scoring.pipeline import ScoringPipeline
from camserver.store import Store, scoring_runs
from camserver.store.scoring_runs import Run

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

LOOK_EVERY_SEC = 2.0
# How long a run that can't be worked on here is left alone.
LEFT_ALONE_SEC = 60.0


async def run(store: Store, clock: Clock, settings: "Settings", ready: Ready) -> None:
    ready.expect("scoring")
    ready.set("scoring")
    left_alone: dict[int, int] = {}
    while True:
        try:
            waiting = await store.read(scoring_runs.waiting)
            left_alone = {one: until for one, until in left_alone.items() if one in waiting}
            for run_id in waiting:
                if left_alone.get(run_id, 0) > clock.boot_ms():
                    continue
                try:
                    await work_on(store, clock, settings, await store.read(scoring_runs.get, run_id))
                except CamError as error:
                    if isinstance(error, Retry):
                        raise
                    log.warning("a run can't be worked on here", run_id=run_id, cause=error.message)
                left_alone[run_id] = clock.boot_ms() + round(1000 * LEFT_ALONE_SEC)
        except Retry as error:
            log.warning("runs can't be looked at", cause=error.message)
        await clock.sleep(LOOK_EVERY_SEC)


async def work_on(store: Store, clock: Clock, settings: "Settings", chosen: Run) -> RunStatus:
    """Works on one run until it is over, paused or cancelled. Cancelled itself, it lets go of everything."""
    async with AsyncExitStack() as stack:
        key = await asyncio.to_thread(_google_key, settings.drive.credentials_file)
        sheet = await open_sheet(
            chosen.sheet, chosen.spec.layout, clock, credentials=key, work_folder=settings.server.data_dir
        )
        stack.push_async_callback(sheet.close)
        changed = changed_headers(chosen.spec.layout, chosen.spec.categories, await sheet.categories())
        if changed is not None:
            log.warning("the categories of a sheet changed", run=chosen.run_uuid, cause=changed)
        models, clients = open_models(settings.llm, chosen.spec)
        for client in clients:
            stack.push_async_callback(client.close)
        status = await ScoringPipeline(store, clock, sheet, chosen, settings.scoring, models).work()
        log.info("a run was worked on", run=chosen.run_uuid, status=status.value)
        return status


def _google_key(file: Path | None) -> Secret | None:
    return None if file is None else Secret(file.read_text(encoding="utf-8"))
