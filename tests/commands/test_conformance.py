"""`camserver conformance` as a person at a terminal, or a script, meets it."""

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.clients.conformance.running import NAMES
from tests.fakes.analyzer import FakeAnalyzer, Fault, Seen
from tests.rig.pictures import jpeg
from tests.rig.ports import LOOPBACK, free_port

RIGHT = ("--only", "health", "--only", "analyze.jpeg")


def run(url: str, *arguments: str, language: str = "C.UTF-8") -> Result:
    return CliRunner(env={"LC_ALL": language}).invoke(cli.main, ["conformance", url, *arguments])


async def test_a_line_for_each_check_and_their_sum(analyzer: FakeAnalyzer) -> None:
    result = await asyncio.to_thread(run, analyzer.url, *RIGHT)
    assert result.exit_code == 0, result.output
    health, answer, total = result.stdout.splitlines()
    assert health.split() == ["health", "ok", "GET", "/healthz", "answers"]
    assert answer.split()[:2] == ["analyze.jpeg", "ok"]
    assert total == "2 ok, 0 failed, 0 skipped"


async def test_what_failed_says_why_and_the_exit_code_tells(analyzer: FakeAnalyzer) -> None:
    analyzer.add_fault(Fault.break_contract("severity:high"))
    result = await asyncio.to_thread(run, analyzer.url, *RIGHT)
    assert result.exit_code == Exit.CHECK_FAILED.value
    _, answer, total = result.stdout.splitlines()
    assert ("failed" in answer, "severity" in answer) == (True, True)
    assert total == "1 ok, 1 failed, 0 skipped"


async def test_in_japanese(analyzer: FakeAnalyzer) -> None:
    result = await asyncio.to_thread(run, analyzer.url, *RIGHT, language="ja_JP.UTF-8")
    assert result.stdout.splitlines()[-1] == "合格 2、不合格 0、省略 0"
    assert "GET /healthz に応答する" in result.stdout


async def test_for_a_script(analyzer: FakeAnalyzer, tmp_path: Path) -> None:
    picture = tmp_path / "somebody.jpg"
    picture.write_bytes(jpeg(Seen("human", ("count.single",), count_hint=1).hint()))
    result = await asyncio.to_thread(run, analyzer.url, "--gentle", "--json", "--person", str(picture))
    assert result.exit_code == Exit.CHECK_FAILED.value
    told = json.loads(result.stdout)
    assert told["conforms"] is False
    assert tuple(check["name"] for check in told["checks"]) == NAMES
    by_name = {check["name"]: check for check in told["checks"]}
    assert (by_name["health"]["standing"], by_name["health"]["why"]) == ("ok", None)
    assert by_name["person.night"]["standing"] == "ok"
    assert by_name["overload"]["standing"] == "skipped"
    assert "--gentle" in by_name["overload"]["why"]


def test_nobody_there() -> None:
    result = run(f"http://{LOOPBACK}:{free_port()}")
    assert (result.exit_code, "is it running?" in result.output) == (Exit.SERVER_AWAY.value, True)


def test_a_check_that_is_none_is_named() -> None:
    result = run("http://127.0.0.1:9", "--only", "nonsense")
    assert (result.exit_code, "analyze.jpeg" in result.output) == (Exit.REFUSED.value, True)
