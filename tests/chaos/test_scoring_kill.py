"""`camserver score` killed (-9) at random moments: the same command goes on, no cell is lost or wrong, and nothing is
paid twice but what was in flight. For sheets of every kind, and on every database."""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.clients.sheets.tables import Cells, load, save, table
from tests.fakes.scoring_llm import Behaviour, ByConcurrency, ScoringLlm, truth
from tests.fakes.sheets import FakeSheets
from tests.rig.effort import THOROUGH, times
from tests.rig.polling import until
from tests.rig.templates import Template

KILLS = times(3, 20)
ROWS = 120 * KILLS
PLACES = 10
CATEGORIES = 12
FIRST = 5
# Few at once: where several machines may share a run, those of one that was killed are free only after half a minute.
CHUNKS = {"CAMSERVER_SCORING_CHUNK_ROWS": "50", "CAMSERVER_SCORING_CHUNKS_AT_ONCE": "2"}
FILES = ["csv", "xlsx", "parquet"]
# The sheets on SQLite, and the other databases with one kind of them.
SCENES = [("sqlite", "csv")]
if THOROUGH:
    SCENES += [
        ("sqlite", "xlsx"),
        ("sqlite", "parquet"),
        ("sqlite", "google"),
        ("postgres", "csv"),
        ("mariadb", "csv"),
    ]


def text_of(row: int) -> str:
    # Every tenth text is there twice.
    return f"what number {row - 1 if row % 10 == 0 else row} says"


CELLS = table([text_of(row) for row in range(FIRST, FIRST + ROWS)], CATEGORIES)
NAMES = CELLS[1][3:]


class Sheet(Protocol):
    options: list[str]

    def cells(self) -> Cells: ...


@dataclass
class FileSheet:
    path: Path

    @property
    def options(self) -> list[str]:
        return [self.path.name]

    def cells(self) -> Cells:
        return load(self.path)


@dataclass
class GoogleSheet:
    google: FakeSheets
    key: Path

    @property
    def options(self) -> list[str]:
        return [self.google.address, "--google-url", self.google.url, "--credentials", str(self.key)]

    def cells(self) -> Cells:
        assert self.google.overwritten == []
        return [[str(cell) for cell in row] for row in self.google.cells]


@asynccontextmanager
async def sheet_of(kind: str, folder: Path) -> AsyncIterator[Sheet]:
    if kind in FILES:
        yield FileSheet(save(folder / f"a.{kind}", CELLS))
        return
    async with FakeSheets([list(row) for row in CELLS]) as google:
        key = folder / "key.json"
        key.write_text(google.key_file)
        yield GoogleSheet(google, key)


async def start(folder: Path, sheet: Sheet, url: str | None) -> asyncio.subprocess.Process:
    store = {} if url is None else {"CAMSERVER_STORE_URL": url}
    log = (folder / "score.log").open("ab")
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "camserver", "--config", "camserver.toml", "--data-dir", "data", "score",
            *sheet.options, "--json", cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=log, env={**os.environ, **CHUNKS, **store},
        )  # fmt: skip
    finally:
        log.close()


@pytest.mark.parametrize(("database", "kind"), SCENES)
async def test_kill_nine_at_any_moment(
    database: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url: str | None = None
    if database != "sqlite":
        template: Template = request.getfixturevalue(f"{database}_template")
        url = template.fresh()
    behaviour = Behaviour(
        0.01,
        0.005,
        {"500": 0.01, "fenced": 0.02, "short": 0.01, "reset": 0.005},
        capacity=ByConcurrency(PLACES, 0.02),
    )
    chance = random.Random(int.from_bytes(os.urandom(4)))
    async with ScoringLlm(behaviour) as llm, sheet_of(kind, tmp_path) as sheet:
        (tmp_path / "camserver.toml").write_text(
            f'[llm]\nprovider = "openai"\nmodel = "small"\nbase_url = "{llm.url}"\n'
        )
        in_flight = 0
        for _ in range(KILLS):
            wanted = llm.calls + chance.randrange(1, ROWS // KILLS)
            # On a busy machine it must not be through before it is killed.
            llm.hold_after = wanted + 4 * PLACES
            process = await start(tmp_path, sheet, url)
            await until(
                lambda wanted=wanted, process=process: llm.calls >= wanted or process.returncode is not None,  # type: ignore[misc]
                "questions before the kill",
                120,
            )
            assert process.returncode is None, "it ended before it could be killed"
            process.kill()
            in_flight += PLACES
            await process.communicate()
            llm.release()
        process = await start(tmp_path, sheet, url)
        said, _ = await process.communicate()
        assert process.returncode == 0, (tmp_path / "score.log").read_text()[-2000:]
        assert json.loads(said)["status"] == "completed"
        rows = sheet.cells()[FIRST - 1 :]
    assert [[row[2], *map(float, row[3:])] for row in rows] == [
        [text_of(row), *(truth(text_of(row), name) for name in NAMES)] for row in range(FIRST, FIRST + ROWS)
    ]
    twice = sum(count - 1 for count in llm.billed.values())
    print(f"paid twice: {twice}, in flight at {KILLS} kills: {in_flight} at most")
    assert twice <= in_flight
    if url is not None:
        template.discard(url)
