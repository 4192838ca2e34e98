"""`camserver vocabulary` on a data folder without a running server."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from tests.rig.ports import free_port

SHIPPED, CHANGED = "2025-12-28.1", "2026-11-16.1"


def run(folder: Path, *arguments: str, language: str = "C.UTF-8") -> Result:
    # Nobody listens there, so the command opens the store itself: each is a start of its own.
    config = folder / "c.toml"
    config.write_text(f"[web]\nport = {free_port()}\n")
    given = ["--config", str(config), "--data-dir", str(folder / "data"), "vocabulary", *arguments]
    return CliRunner(env={"LC_ALL": language}).invoke(cli.main, given)


def used(folder: Path) -> list[str]:
    found = json.loads(run(folder, "list", "--json").stdout)["versions"]
    return [one["schema_version"] for one in found if one["is_active"]]


def test_a_changed_vocabulary_is_added_and_used_and_stays(tmp_path: Path) -> None:
    assert used(tmp_path) == [SHIPPED]
    document = json.loads(run(tmp_path, "show", SHIPPED).stdout)
    file = tmp_path / "words.json"
    file.write_text(json.dumps({**document, "schema_version": CHANGED}))
    added = run(tmp_path, "add", str(file))
    assert (added.exit_code, CHANGED in added.stdout) == (0, True)
    assert used(tmp_path) == [SHIPPED]
    assert run(tmp_path, "use", CHANGED).exit_code == 0
    assert used(tmp_path) == [CHANGED]
    assert "使用中" in run(tmp_path, "list", language="ja_JP.UTF-8").stdout


@pytest.mark.parametrize(("text", "words"), [("[]", "JSON object"), ("{", "no JSON"), ("{}", "schema_version")])
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "words.json"
    file.write_text(text)
    refused = run(tmp_path, "add", str(file))
    assert refused.exit_code != 0
    assert words in refused.output


def test_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "use", "9.9")
    assert refused.exit_code != 0
    assert "9.9" in refused.output
