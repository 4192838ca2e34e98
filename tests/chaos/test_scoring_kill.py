"""`camserver score` killed (-9) at random moments: the same command goes on, no cell is lost or wrong, and nothing is
paid twice but what was in flight."""

import asyncio
import csv
import json
import os
import random
import sys
from pathlib import Path

from tests.fakes.scoring_llm import Behaviour, ByConcurrency, ScoringLlm, truth
from tests.rig.effort import times
from tests.rig.polling import until

KILLS = times(3, 20)
ROWS = 120 * KILLS
PLACES = 10
NAMES = [f"category {number}" for number in range(12)]
FIRST = 5


def text_of(row: int) -> str:
    # Every tenth text is there twice.
    return f"what number {row - 1 if row % 10 == 0 else row} says"


def write_sheet(path: Path) -> None:
    with path.open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerows([["title"], ["", "", "", *NAMES], ["", "", "", *NAMES], []])
        sheet.writerows([[row, "", text_of(row)] for row in range(FIRST, FIRST + ROWS)])


async def start(folder: Path) -> asyncio.subprocess.Process:
    log = (folder / "score.log").open("ab")
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "camserver", "--config", "camserver.toml", "--data-dir", "data", "score", "a.csv",
            "--json", cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log,
            env={**os.environ, "CAMSERVER_SCORING_CHUNK_ROWS": "50"},
        )  # fmt: skip
    finally:
        log.close()


async def test_kill_nine_at_any_moment(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a.csv")
    behaviour = Behaviour(
        0.01,
        0.005,
        {"500": 0.01, "fenced": 0.02, "short": 0.01, "reset": 0.005},
        capacity=ByConcurrency(PLACES, 0.02),
    )
    chance = random.Random(int.from_bytes(os.urandom(4)))
    async with ScoringLlm(behaviour) as llm:
        (tmp_path / "camserver.toml").write_text(
            f'[llm]\nprovider = "openai"\nmodel = "small"\nbase_url = "{llm.url}"\n'
        )
        in_flight = 0
        for _ in range(KILLS):
            asked = llm.calls
            wanted = asked + chance.randrange(1, 2 * ROWS // KILLS)
            process = await start(tmp_path)
            await until(
                lambda wanted=wanted, process=process: llm.calls >= wanted or process.returncode is not None,  # type: ignore[misc]
                "questions before the kill",
                120,
            )
            assert process.returncode is None, "it ended before it could be killed"
            process.kill()
            in_flight += PLACES
            await process.communicate()
        process = await start(tmp_path)
        said, _ = await process.communicate()
        report = json.loads(said)
    assert process.returncode == 0, (tmp_path / "score.log").read_text()[-2000:]
    assert report["status"] == "completed"
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))[FIRST - 1 :]
    assert [[row[2], *map(float, row[3:])] for row in rows] == [
        [text_of(row), *(truth(text_of(row), name) for name in NAMES)] for row in range(FIRST, FIRST + ROWS)
    ]
    assert sum(count - 1 for count in llm.billed.values()) <= in_flight
