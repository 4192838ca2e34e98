"""`camserver search` as a person at a terminal meets it, on answers that a server would give."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.clients.local_server import LocalServer

NOW_MS = 1_700_000_000_000
EVENT = {
    "event_uuid": "e-1", "camera_id": "cam_1", "site": "本社", "start_at": NOW_MS, "primary_event": "human",
    "severity_max": 2, "issue": None, "tags": [{"id": "carry.bag"}],
}  # fmt: skip
FACETS = {"counted": 1000, "is_complete": False} | {
    name: [{"value": f"{name}-{number}", "count": number} for number in range(12)]
    for name in ("sites", "cameras", "primary_events", "tags", "severities", "unknown", "days")
}


class Api:
    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.asked.append((urlsplit(path).path, parse_qsl(urlsplit(path).query)))
        answer: dict[str, Any] = made.answers.pop(0)
        return answer

    async def is_there(self: LocalServer) -> bool:
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["search", *arguments])


def page(events: list[Any], next_before: str | None = None, is_cut: bool = False) -> dict[str, Any]:
    return {"events": events, "next_before": next_before, "is_cut": is_cut}


def test_every_filter_is_asked_for(api: Api) -> None:
    api.answers = [page([EVENT])]
    result = run(
        "赤い 服", "--from", "2h", "--to", "2023-11-14T22:00+00:00", "--site", "a", "--site", "b", "--camera", "c",
        "--event", "human", "--tag", "x", "--tag", "y", "--severity", "2", "--known", "--case", "k", "--limit", "7",
    )  # fmt: skip
    assert result.exit_code == 0
    assert api.asked == [
        (
            "/api/search",
            [
                ("site", "a"), ("site", "b"), ("camera_id", "c"), ("primary_event", "human"), ("tag", "x"),
                ("tag", "y"), ("from", str(NOW_MS - 7_200_000)), ("to", "1699999200000"), ("severity_min", "2"),
                ("case", "k"), ("text", "赤い 服"), ("unknown", "false"), ("limit", "7"),
            ],
        )
    ]  # fmt: skip
    assert "e-1" in result.output
    assert "carry.bag" in result.output
    assert "本社" in result.output


def test_a_short_page_is_gone_on_with(api: Api) -> None:
    api.answers = [page([EVENT], "5.1"), page([], "4.1"), page([EVENT, EVENT], "3.1", is_cut=True)]
    result = run("--limit", "3", "--before", "9.9")
    assert [dict(query)["before"] for _, query in api.asked] == ["9.9", "5.1", "4.1"]
    assert [dict(query)["limit"] for _, query in api.asked] == ["3", "2", "2"]
    assert "--before 3.1" in result.output
    assert "not all cases" in result.output


def test_nothing_found_and_json(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers = [page([]), page([EVENT]), page([EVENT])]
    assert "No such events" in run().output
    assert json.loads(run("--json").output) == page([EVENT])
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "重大度" in run().output


def test_facets_say_how_many_were_counted(api: Api) -> None:
    api.answers = [FACETS, {**FACETS, "is_complete": True}]
    result = run("--facets", "--unknown")
    assert api.asked == [("/api/search/facets", [("unknown", "true")])]
    assert "the newest 1000" in result.output
    assert "sites-3 3" in result.output
    assert "sites-11" not in result.output
    assert json.loads(run("--facets", "--json").output)["is_complete"] is True


@pytest.mark.parametrize("moment", ["soon", "2026-13-01", "-5h", "1y"])
def test_what_is_no_time_is_refused(api: Api, moment: str) -> None:
    result = run("--from", moment)
    assert result.exit_code == 2
    assert "is no time" in result.output
    assert api.asked == []
