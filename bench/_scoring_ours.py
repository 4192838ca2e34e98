"""A run of ours in a process of its own, so that its memory is its own: a CSV file, SQLite, a model at an address.

With `equal` every other row has one of that many texts, and the answers for all others are there already: such a run
asks next to nothing, and goes through everything else for each row.
"""

import csv
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import uuid_utils
import uvloop

from bench._cpu import cpu_seconds
from camserver.base.clock import StoreClock
from camserver.base.collecting import collect_seldom
from camserver.clients.llm.opening import open_client
from camserver.clients.sheets.opening import open_file
from camserver.commands.score_run import SQLITE_CACHE_KIB, SQLITE_READERS_MAX
from camserver.domain.scoring import RunSpec, ScoringPolicy, plan_chunks
from camserver.domain.sheet_layout import SheetLayout
from camserver.services.scoring.pipeline import Models, ScoringPipeline
from camserver.services.scoring.producing import questions_of
from camserver.store import Store, open_store, scoring_journal, scoring_runs, tenants
from camserver.store.scoring_journal import Kept, Spent
from camserver.store.scoring_runs import NewRun, Run
from tests.rig.memory import quick_folder

NAMES = [f"category {number}" for number in range(10)]
FIRST = 5
KEPT_AT_ONCE = 4_000


def write_sheet(path: Path, rows: int, equal: int) -> None:
    with path.open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerows([["title"], ["", "", "", *NAMES], [], []])
        sheet.writerows(["", "", text_of(row, equal)] for row in range(rows))


def text_of(row: int, equal: int) -> str:
    number = f"{row // 2 % equal} again" if equal and row % 2 else str(row)
    return f"somebody says something that has the number {number} and means it"


async def answer_before(store: Store, run: Run, rows: int, now_ms: int) -> None:
    """Keeps answers for the rows whose texts are like no other."""
    (question,) = questions_of(run.spec)
    scores = tuple(number / 10 for number in range(len(NAMES)))
    for begin in range(0, rows, KEPT_AT_ONCE):
        kept = tuple(
            Kept(question.key(text_of(row, 1), run.spec.provider, run.spec.model, run.spec.temperature), scores, "m")
            for row in range(begin, min(begin + KEPT_AT_ONCE, rows), 2)
        )
        await store.write(scoring_journal.record, run.run_id, run.tenant_id, (), kept, Spent(), now_ms)


async def measure(url: str, rows: int, equal: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        path = Path(folder) / "sheet.csv"
        write_sheet(path, rows, equal)
        clock = StoreClock()
        store = await open_store(
            f"sqlite:///{folder}/bench.db", sqlite_readers=SQLITE_READERS_MAX, sqlite_cache_kib=SQLITE_CACHE_KIB
        )
        sheet = await open_file(path, SheetLayout(), clock, work_folder=Path(folder), settle_sec=0)
        try:
            tenant_id = await store.write(tenants.ensure, "bench", clock.now_ms())
            policy = ScoringPolicy()
            spec = RunSpec("openai", url, "m", (), "numeric", 0.0, 200, "", sheet.layout, await sheet.categories())
            chunks = tuple(plan_chunks(FIRST, FIRST + rows - 1, policy.chunk_rows))
            new = NewRun(str(uuid_utils.uuid7()), tenant_id, sheet.address, spec, FIRST + rows - 1, None, chunks)
            run = await store.read(scoring_runs.get, await store.write(scoring_runs.begin, new, clock.now_ms()))
            if equal:
                await answer_before(store, run, rows, clock.now_ms())
            client = open_client("openai", model="m", base_url=url, key=None, timeout_sec=60, lean=True)
            models = Models([client], [None], url, None)
            pipeline = ScoringPipeline(store, clock, sheet, run, policy, models, aside=Path(folder) / "aside")
            collect_seldom()
            cpu, began = cpu_seconds(os.getpid()), time.perf_counter()
            status = await pipeline.work()
            took = time.perf_counter() - began
            await client.close()
            after = await store.read(scoring_runs.get, run.run_id)
            totals = await store.read(scoring_runs.totals, run.run_id)
            return {
                "status": status.value,
                "written": totals.written,
                "seconds": took,
                "calls": after.calls,
                "refused": after.refused,
                "cpu_sec": cpu_seconds(os.getpid()) - cpu,
                "memory_mb": sum(most_mb(pid) for pid in (os.getpid(), *writers())),
            }
        finally:
            await sheet.close()
            await store.close()


def writers() -> list[int]:
    """SQLite's writer, and what else this process has started."""
    return [one.pid for one in psutil.Process().children(recursive=True)]


def most_mb(pid: int) -> float:
    """The most memory that a process had at any moment. Of one that has ended, `getrusage` tells no less than its
    parent had when it was started, whatever it took itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    found = uvloop.run(measure(asked["url"], asked["rows"], asked["equal"]))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
