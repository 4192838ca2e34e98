"""`camserver score` as a whole, on Excel and Google sheets: people meanwhile, locks, permissions, money, anchors."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner

from camserver import cli
from camserver.base.errors import CheckFailed
from camserver.base.exits import Exit
from camserver.commands.score_run import Asked, score, show_report
from camserver.config.loading import load as load_settings
from camserver.domain.scoring_prompts import ANCHORS
from camserver.services.scoring.opening import Wishes
from camserver.store import open_store
from tests.clients.sheets.tables import load, save, table
from tests.fakes.scoring_llm import Behaviour, ScoringLlm, truth
from tests.fakes.sheets import FakeSheets
from tests.rig.templates import SqliteTemplate

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = [f"a text with the number {number}" for number in range(24)]
NAMES = [f"category {number}" for number in range(3)]
ENVIRON = {
    "CAMSERVER_SCORING_CHUNK_ROWS": "10",
    "CAMSERVER_SCORING_FLUSH_INTERVAL_SEC": "0.1",
    "CAMSERVER_SCORING_WRITE_RETRIES": "0",
    "CAMSERVER_SCORING_CACHE_DAYS": "0",
}


def right(texts: list[str]) -> dict[str, list[float]]:
    return {text: [truth(text, name) for name in NAMES] for text in texts}


def in_file(path: Path) -> dict[str, list[float]]:
    return {row[2]: [float(cell) for cell in row[3:]] for row in load(path)[4:]}


@dataclass
class House:
    """Where the command is called, and the model that it asks."""

    folder: Path
    store_url: str
    llm: ScoringLlm

    async def score(
        self, address: str | Path, wishes: Wishes | None = None, google: FakeSheets | None = None
    ) -> None:
        config = self.folder / "camserver.toml"
        config.write_text(
            f'[llm]\nprovider = "openai"\nmodel = "small"\nbase_url = "{self.llm.url}"\n'
            "price_in = 1.0\nprice_out = 2.0\n"
            f'[store]\nurl = "{self.store_url}"\n'
        )
        key: Path | None = None
        if google is not None:
            key = self.folder / "key.json"
            key.write_text(google.key_file)
        settings = load_settings(config, ENVIRON, self.folder / "data")
        url = google.url if google is not None else None
        asked = Asked(str(address), {}, wishes or Wishes(), None, None, key, url, False, False, True)
        await score(settings, asked)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(sqlite_template: SqliteTemplate, tmp_path_factory: pytest.TempPathFactory):
    url = sqlite_template.fresh()
    async with ScoringLlm() as llm:
        yield House(tmp_path_factory.mktemp("score"), url, llm)
    sqlite_template.discard(url)


@pytest.fixture(autouse=True)
def _well_behaved(house: House) -> None:
    house.llm.behaviour = Behaviour()
    house.llm.billed.clear()


def report(captured: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(captured.readouterr().out.splitlines()[-1])
    return found


def paid_twice(llm: ScoringLlm) -> int:
    return sum(count - 1 for count in llm.billed.values())


async def test_a_workbook_that_is_open_elsewhere(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(house.folder / "open.xlsx", table(TEXTS, categories=3))
    mark = path.with_name("~$open.xlsx")
    mark.touch()
    with pytest.raises(CheckFailed, match="open in Excel"):
        await house.score(path)
    found = report(capsys)
    assert (found["reason"], found["results"]) == ("sheet", {"scored": len(TEXTS)})
    show_report(found, found["sheet_trouble"])
    said = capsys.readouterr().out
    assert "not in the sheet yet: 24. open.xlsx is open in Excel or LibreOffice; close it there" in said
    asked = house.llm.calls
    mark.unlink()
    await house.score(path)
    assert (report(capsys)["status"], house.llm.calls) == ("completed", asked)
    assert in_file(path) == right(TEXTS)


async def test_people_sort_insert_and_type_meanwhile(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeSheets(list(table(TEXTS, categories=3))) as google:

        def insert() -> None:
            google.insert(7, ["", "somebody", "a text that came later"])

        def type_over() -> None:
            row = next(n for n, cells in enumerate(google.cells, 1) if n > 4 and cells[2] and cells[3] == "")
            typed.append(google.cells[row - 1][2])
            google.type(row, 3, "mine")

        typed: list[str] = []
        google.before("update", lambda: google.sort(5), insert)
        google.before("values", lambda: None, lambda: None, type_over)
        await house.score(google.address, google=google)
        told = report(capsys)
        assert told["status"] == "completed"
        assert told["totals"]["written"] == told["totals"]["tasks"] == len(TEXTS) + 1
        found = google.scores()
        expected: dict[str, list[Any]] = dict(right([*TEXTS, "a text that came later"]))
        for text in typed:
            expected[text] = ["mine", *expected[text][1:]]
        assert found == expected
        assert all(before != "mine" for _, _, before, _ in google.overwritten)
        assert paid_twice(house.llm) == 0


async def test_a_permission_that_is_lost_and_given_again(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeSheets(list(table(TEXTS, categories=3))) as google:
        google.before("update", lambda: setattr(google, "can_edit", False))
        with pytest.raises(CheckFailed, match="paused"):
            await house.score(google.address, google=google)
        assert report(capsys)["reason"] == "sheet"
        assert google.writes == []
        google.can_edit = True
        await house.score(google.address, google=google)
        assert report(capsys)["status"] == "completed"
        assert google.scores() == right(TEXTS)
        assert paid_twice(house.llm) == 0


async def test_exhausted_money_pauses_and_a_wrong_answer_does_not(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(house.folder / "money.csv", table(TEXTS, categories=3))
    house.llm.behaviour.script = deque(["fenced", "short", "nan", "outside", "quota"])
    with pytest.raises(CheckFailed, match=r"paused \(quota\): [^.]+(\.[^. ][^.]*)*\. The same command"):
        await house.score(path)
    assert report(capsys)["reason"] == "quota"
    await house.score(path)
    assert report(capsys)["status"] == "completed"
    assert in_file(path) == right(TEXTS)
    assert paid_twice(house.llm) == 0


async def test_a_budget_is_never_passed(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(house.folder / "budget.csv", table(TEXTS, categories=3))
    with pytest.raises(CheckFailed, match=r"paused \(budget\)"):
        await house.score(path, Wishes(budget_micro=5_000))
    assert report(capsys)["cost_usd"] <= 0.005
    await house.score(path, Wishes(budget_micro=1_000_000))
    assert report(capsys)["status"] == "completed"
    assert in_file(path) == right(TEXTS)
    assert paid_twice(house.llm) == 0


async def test_what_failed_is_tried_again_alone_although_the_run_is_over(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(house.folder / "failed.csv", table(["a rather odd text", *TEXTS], categories=3))
    house.llm.behaviour.always = {"a rather odd text": "short"}
    try:
        await house.score(path, Wishes(is_new=True))
    finally:
        house.llm.behaviour.always = {}
    first = report(capsys)
    assert (first["status"], first["results"]["failed"]) == ("completed", 1)
    asked = house.llm.calls
    await house.score(path, Wishes(retries_failed=True))
    again = report(capsys)
    assert (again["run_uuid"], again["status"]) == (first["run_uuid"], "completed")
    assert house.llm.calls == asked + 1
    assert in_file(path) == right(["a rather odd text", *TEXTS])


async def test_anchors_are_written_as_the_scores_they_stand_for(house: House) -> None:
    path = save(house.folder / "anchors.xlsx", table(TEXTS, categories=3))
    await house.score(path, Wishes(form="anchors"))
    found = in_file(path)
    assert {score for scores in found.values() for score in scores} <= set(ANCHORS.values())
    for text, scores in found.items():
        assert scores == [min(ANCHORS.values(), key=lambda one: abs(one - truth(text, name))) for name in NAMES]


async def test_runs_can_be_seen_to_while_nobody_else_has_the_store(
    sqlite_template: SqliteTemplate, tmp_path: Path
) -> None:
    url = sqlite_template.fresh()
    config = tmp_path / "camserver.toml"
    config.write_text(f'[store]\nurl = "{url}"\n[server]\ndata_dir = "{tmp_path / "data"}"\n')
    command = ["--config", str(config), "scoring", "pause", "a-run"]
    store = await open_store(url)
    try:
        owned = await asyncio.to_thread(CliRunner().invoke, cli.main, command)
    finally:
        await store.close()
    assert owned.exit_code == int(Exit.DATA_OWNED)
    assert "Ctrl-C there pauses its run" in owned.output
    free = await asyncio.to_thread(CliRunner().invoke, cli.main, command)
    assert "there is no scoring run a-run" in free.output
    sqlite_template.discard(url)
