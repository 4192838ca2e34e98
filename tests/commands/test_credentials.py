"""`camserver credentials rotate` asks for step after step and sums up."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from camserver import cli
from camserver.clients.local_server import LocalServer
from camserver.commands import credentials


@pytest.mark.parametrize("made", [True, False])
def test_it_goes_on_to_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: bool) -> None:
    asked: list[Any] = []
    cursors = ["cameras:9", "receivers:0", None]

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        asked.append(body)
        cursor = cursors[len(asked) - 1]
        return {
            "made_key": made and len(asked) == 1, "key_id": "abc", "moved": 2, "unreadable": 1, "left": 3,
            "next_cursor": cursor,
        }  # fmt: skip

    async def is_there(self: LocalServer) -> bool:
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    done = CliRunner().invoke(cli.main, ["credentials", "rotate"])
    assert done.exit_code == 0, done.output
    assert asked == [{"cursor": None}, {"cursor": "cameras:9"}, {"cursor": "receivers:0"}]
    assert "6 stored passwords" in done.stdout
    assert ("Made a new key, abc" if made else "Going on with key abc") in done.stderr
    assert "3 can't be read" in done.stderr
    asked.clear()
    told = json.loads(CliRunner().invoke(cli.main, ["credentials", "rotate", "--json"]).stdout)
    assert told == {"key_id": "abc", "made_key": made, "moved": 6, "unreadable": 3, "left": 3}


def test_what_is_said_is_said_with_the_same_values_in_both_languages() -> None:
    for phrase in credentials._WORDS.values():
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (phrase.ja, phrase.en)
        ]
        assert fields[0] == fields[1]
