"""A sheet in the browser: brought, checked, scored by a stand-in for the model, and fetched again."""

import csv
from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import installation
from tests.e2e.ui.browser import play, require_browser
from tests.fakes.scoring_llm import Behaviour, ScoringLlm
from tests.fakes.scoring_llm.truth import truth
from tests.rig.processes import Launcher

CATEGORIES = ("安全", "清掃")
TEXTS = [f"意見その{number}" for number in range(40)]


async def test_a_sheet_is_scored_in_the_browser(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    sheet, result = tmp_path / "アンケート.csv", tmp_path / "result.csv"
    with sheet.open("w", newline="") as file:
        csv.writer(file).writerows([["文", *CATEGORIES], *([text] for text in TEXTS)])
    async with ScoringLlm(Behaviour(chances={"fenced": 0.1, "500": 0.05})) as llm:
        model = {"provider": "openai", "model": "a-small-model", "base_url": llm.url}
        house = installation(
            launcher, tmp_path / "data", llm={**model, "price_in": 0.15, "price_out": 0.6, "daily_calls": 0}
        )
        up = await house.ready()
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
            "CAMSERVER_SHEET": str(sheet),
            "CAMSERVER_RESULT": str(result),
        }
        await play("scoring.spec.ts", address)
        assert await up.stop() == Exit.OK
        assert set(llm.billed.values()) == {1}, "nothing is paid twice"
    with result.open(newline="", encoding="utf-8-sig") as file:
        head, *rows = list(csv.reader(file))
    assert head == ["文", *CATEGORIES]
    assert [row[0] for row in rows] == TEXTS
    for text, *scores in rows:
        assert [float(score) for score in scores] == [truth(text, category) for category in CATEGORIES]
    await launcher.none_left()
