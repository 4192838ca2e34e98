"""`camserver llm test` against a model that answers and one that does not."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.commands.llm import budget_lines, described
from tests.fakes.llm import KEY, FakeLlm, Trick
from tests.rig.ports import free_port


@pytest.fixture
def llm() -> Iterator[FakeLlm]:
    """On a loop of its own: the command has its own, too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(60)  # type: ignore[arg-type]

    made: list[FakeLlm] = []

    async def start() -> None:
        made.append(await FakeLlm().__aenter__())

    do(start())
    yield made[0]
    do(made[0].__aexit__(None, None, None))
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def run(tmp_path: Path, llm: FakeLlm, *arguments: str, **settings: object) -> Result:
    lines = {"provider": "gemini", "model": "gemini-2.5-flash", "base_url": llm.url("gemini"), "key": KEY, **settings}
    config = tmp_path / "c.toml"
    config.write_text("[llm]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    config.chmod(0o600)
    return CliRunner(env={"LC_ALL": "C.UTF-8"}).invoke(cli.main, ["--config", str(config), "llm", "test", *arguments])


def test_a_picture_is_asked_about(tmp_path: Path, llm: FakeLlm) -> None:
    picture = tmp_path / "unclear.jpg"
    picture.write_bytes(b"\xff\xd8\xff picture")
    result = run(tmp_path, llm, str(picture), "--json", price_in=1.0, price_out=2.0)
    assert result.exit_code == 0, result.output
    said = json.loads(result.output)
    assert (said["label"], said["memo"]) == ("animal", "A cat walks along the wall.")
    assert (said["tokens_in"], said["tokens_out"], said["cost_usd"]) == (900, 60, 0.00102)
    assert llm.asked[0].pictures == (b"\xff\xd8\xff picture",)


def test_without_a_picture_a_drawn_one_is_sent(tmp_path: Path, llm: FakeLlm) -> None:
    result = run(tmp_path, llm)
    assert result.exit_code == 0, result.output
    assert "Label: Animal" in result.output
    assert llm.asked[0].pictures[0].startswith(b"\xff\xd8")


def test_a_wrong_key_is_told_with_the_next_step_and_without_the_key(tmp_path: Path, llm: FakeLlm) -> None:
    result = run(tmp_path, llm, key="wrong-key-9876543210")
    assert result.exit_code == Exit.CHECK_FAILED.value
    assert "bad_key" in result.output
    assert "llm.key" in result.output
    assert "9876543210" not in result.output


def test_what_is_no_picture_is_not_sent(tmp_path: Path, llm: FakeLlm) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("private")
    result = run(tmp_path, llm, str(file))
    assert result.exit_code != 0
    assert "is no JPEG, PNG or WebP picture" in result.output
    assert llm.asked == []


def test_prose_is_no_answer(tmp_path: Path, llm: FakeLlm) -> None:
    llm.always = Trick("prose")
    assert run(tmp_path, llm).exit_code == Exit.CHECK_FAILED.value


def test_without_a_model_it_says_what_to_set(tmp_path: Path, llm: FakeLlm) -> None:
    result = run(tmp_path, llm, provider="none")
    assert "[llm]" in result.output
    assert result.exit_code != 0


def test_both_languages() -> None:
    result = {
        "provider": "gemini", "model": "m", "label": "animal", "memo": "猫がいます。", "tokens_in": 900,
        "tokens_out": 60, "cost_usd": 0.00102, "seconds": 1.25,
    }  # fmt: skip
    assert "ラベル: 動物" in described(result, "ja")
    assert "0.001020" in described(result, "en")
    assert "price_in" in described({**result, "cost_usd": None}, "ja")


@pytest.mark.parametrize("command", [("config", "check"), ("dispatcher",), ("up",)])
def test_a_budget_that_can_not_be_kept_is_refused_before_anything_starts(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[llm]\nprovider = "openai"\nmodel = "gpt-99"\ndaily_cost_usd = 2.0\n')
    result = CliRunner().invoke(cli.main, ["--config", str(config), "--data-dir", str(tmp_path / "d"), *command])
    assert result.exit_code == Exit.BAD_SETTINGS.value, result.output
    assert "llm.price_in and llm.price_out" in result.output
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(("language", "words"), [("en_US.UTF-8", "No model"), ("ja_JP.UTF-8", "設定されていません")])
def test_the_status_says_when_no_model_is_configured(tmp_path: Path, language: str, words: str) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"[web]\nport = {free_port()}\n")
    given = ["--config", str(config), "--data-dir", str(tmp_path / "data"), "llm", "status"]
    shown = CliRunner(env={"LC_ALL": language}).invoke(cli.main, given)
    assert (shown.exit_code, words in shown.stdout) == (0, True), shown.output


def test_the_status_shows_calls_and_money() -> None:
    found = {
        "is_configured": True,
        "provider": "gemini",
        "model": "m",
        "day": "2026-11-16",
        "calls": 3,
        "calls_max": 200,
        "tokens_in": 2700,
        "tokens_out": 180,
        "cost_micro": 3600,
        "cost_micro_max": 1_500_000,
    }
    lines = budget_lines(found, "en").splitlines()
    assert lines == [
        "Questions to m of gemini on 2026-11-16 (UTC): 3 of 200",
        "Tokens: 2700 sent, 180 answered",
        "Cost: 0.003600 of 1.50 US dollars",
    ]
    assert "3 / 200" in budget_lines({**found, "cost_micro_max": None}, "ja")
