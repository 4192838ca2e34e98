"""A run of ours in a process of its own, so that its memory is its own: a CSV file, SQLite, a model at an address."""

import csv
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uuid_utils
import uvloop

from bench._cpu import cpu_seconds
from camserver.base.clock import StoreClock
from camserver.clients.llm.opening import open_client
from camserver.clients.sheets.opening import open_file
from camserver.domain.scoring import RunSpec, ScoringPolicy, plan_chunks
from camserver.domain.sheet_layout import SheetLayout
from camserver.services.scoring.pipeline import Models, ScoringPipeline
from camserver.store import open_store, scoring_runs, tenants
from camserver.store.scoring_runs import NewRun
from tests.rig.memory import quick_folder

NAMES = [f"category {number}" for number in range(10)]
FIRST = 5


def write_sheet(path: Path, rows: int, different: int) -> None:
    with path.open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerows([["title"], ["", "", "", *NAMES], [], []])
        sheet.writerows([["", "", text_of(row, different)] for row in range(rows)])


def text_of(row: int, different: int) -> str:
    return f"somebody says something that has the number {row % different} and means it"


async def measure(url: str, rows: int, different: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        path = Path(folder) / "sheet.csv"
        write_sheet(path, rows, different)
        clock = StoreClock()
        store = await open_store(f"sqlite:///{folder}/bench.db")
        sheet = await open_file(path, SheetLayout(), clock, work_folder=Path(folder), settle_sec=0)
        try:
            tenant_id = await store.write(tenants.ensure, "bench", clock.now_ms())
            policy = ScoringPolicy()
            spec = RunSpec("openai", url, "m", (), "numeric", 0.0, 200, "", sheet.layout, await sheet.categories())
            chunks = tuple(plan_chunks(FIRST, FIRST + rows - 1, policy.chunk_rows))
            new = NewRun(str(uuid_utils.uuid7()), tenant_id, sheet.address, spec, FIRST + rows - 1, None, chunks)
            run = await store.read(scoring_runs.get, await store.write(scoring_runs.begin, new, clock.now_ms()))
            client = open_client("openai", model="m", base_url=url, key=None, timeout_sec=60, lean=True)
            pipeline = ScoringPipeline(store, clock, sheet, run, policy, Models([client], [None], url, None))
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
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        finally:
            await sheet.close()
            await store.close()


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    print(json.dumps(uvloop.run(measure(asked["url"], asked["rows"], asked["different"]))), flush=True)


if __name__ == "__main__":
    main()
