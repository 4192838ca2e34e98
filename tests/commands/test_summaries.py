"""`camserver summary show` on a data folder without a running server."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from camserver import cli
from tests.rig.ports import free_port


def run(tmp_path: Path, *arguments: str) -> Result:
    # Nobody listens there, so the command opens the store itself.
    config = tmp_path / "c.toml"
    config.write_text(f"[web]\nport = {free_port()}\n")
    given = ["--config", str(config), "--data-dir", str(tmp_path / "data"), "summary", "show", *arguments]
    return CliRunner(env={"LC_ALL": "C.UTF-8"}).invoke(cli.main, given)


def test_where_there_is_none_yet_it_says_so(tmp_path: Path) -> None:
    shown = run(tmp_path)
    assert (shown.exit_code, "no summary yet" in shown.output) == (0, True)
    assert json.loads(run(tmp_path, "--json").output) == []


def test_a_day_and_a_site_that_are_none_are_refused(tmp_path: Path) -> None:
    assert "2026-11-16" in run(tmp_path, "--day", "yesterday").output
    nowhere = run(tmp_path, "--site", "nowhere")
    assert nowhere.exit_code != 0
    assert "nowhere" in nowhere.output
