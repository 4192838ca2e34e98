"""`camserver job` as a person at a terminal meets it, on answers that a server would give."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.commands import jobs

NOW_MS = 1_700_000_000_000
JOB = {
    "frame_uuid": "f-1", "camera_id": "入口", "camera_name": "入口", "status": "dead", "attempt": 5,
    "reason": "timeout", "error": "timeout in attempt 5 of 5: " + "x" * 300, "captured_at": NOW_MS - 90_000,
    "created_at": NOW_MS, "available_at": None, "finished_at": NOW_MS,
}  # fmt: skip
ANALYZER = {
    "dispatcher": "d", "url": "http://is21:9000", "state": "ok", "in_flight": 3, "concurrency": 16, "latency_ms": 21,
    "last_error": None, "seen_at": NOW_MS,
}  # fmt: skip


class Api:
    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.asked.append((f"{method} {path}", body))
        answer: dict[str, Any] = made.answers[f"{method} {path.partition('?')[0]}"]
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
    return CliRunner().invoke(cli.main, ["job", *arguments])


def test_those_that_failed_are_listed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers["GET /api/jobs"] = {"jobs": [JOB], "next_before": "0.1"}
    result = run("list")
    assert result.exit_code == 0
    assert api.asked == [("GET /api/jobs?limit=50&status=dead", None)]
    assert "f-1" in result.output
    assert "timeout in attempt 5 of 5" in result.output
    assert "90 s" in result.output
    assert max(map(len, result.output.splitlines())) < 160
    assert "raise --limit" in result.output
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "フレーム" in run("list").output


def test_the_list_is_narrowed(api: Api) -> None:
    api.answers["GET /api/jobs"] = {"jobs": [], "next_before": None}
    result = run(
        "list", "--status", "delayed", "--camera", "a", "--camera", "b", "--reason", "timeout", "--limit", "3"
    )
    assert result.exit_code == 0
    assert "No such jobs" in result.output
    run("list", "--all", "--json")
    assert [asked for asked, _ in api.asked] == [
        "GET /api/jobs?limit=3&status=delayed&camera_id=a&camera_id=b&reason=timeout",
        "GET /api/jobs?limit=50",
    ]


def test_every_state_and_some_states_are_not_asked_for_at_once(api: Api) -> None:
    result = run("list", "--all", "--status", "dead")
    assert result.exit_code == Exit.REFUSED.value
    assert "give one of the two" in result.output
    assert api.asked == []


def test_one_job_or_many_are_queued_again(api: Api) -> None:
    api.answers["POST /api/jobs/f-1/requeue"] = JOB
    api.answers["POST /api/jobs/requeue"] = {"requeued": 7, "more": True}
    assert "Queued again: 1" in run("requeue", "f-1").output
    many = run("requeue", "--reason", "timeout", "--camera", "a", "--limit", "7")
    assert "Queued again: 7" in many.output
    assert "run it again" in many.output
    assert json.loads(run("requeue", "--all", "--json").output) == {"requeued": 7, "more": True}
    assert [body for _, body in api.asked] == [
        {},
        {"statuses": ["dead"], "camera_ids": ["a"], "reason": "timeout", "limit": 7},
        {"statuses": ["dead"], "camera_ids": [], "reason": None, "limit": 1000},
    ]


@pytest.mark.parametrize("arguments", [(), ("f-1", "--all"), ("f-1", "--reason", "timeout")])
def test_what_to_queue_again_must_be_said_once(api: Api, arguments: tuple[str, ...]) -> None:
    result = run("requeue", *arguments)
    assert result.exit_code not in (0, Exit.UNEXPECTED.value)
    assert api.asked == []


def test_the_status_names_each_analyzer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers["GET /api/jobs/status"] = {
        "now": NOW_MS, "standing": "working", "unfinished_jobs": {"queued": 4, "running": 2}, "last_done_at": None,
        "oldest_waiting_at": None, "analyzers": [ANALYZER],
    }  # fmt: skip
    api.answers["GET /api/jobs/counts"] = {"statuses": {"dead": 3, "skipped": 1}, "reasons": {}}
    result = run("status")
    assert result.exit_code == 0
    for words in ("Analysis: working", "Waiting: 6", "3 dead, 1 skipped", "http://is21:9000", "21 ms", "0 s"):
        assert words in result.output
    assert "not heard" not in result.output
    api.answers["GET /api/jobs/status"]["analyzers"] = [ANALYZER | {"seen_at": NOW_MS - 30_000}]
    assert "not heard" in run("status").output
    api.answers["GET /api/jobs/status"]["analyzers"] = [ANALYZER]
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "解析: 進行中" in run("status").output
    api.answers["GET /api/jobs/status"]["analyzers"] = []
    assert "ディスパッチャー" in run("status").output
    assert json.loads(run("status", "--json").output)["counts"]["statuses"]["dead"] == 3


def test_what_is_said_is_said_with_the_same_values_in_both_languages() -> None:
    for phrase in jobs._WORDS.values():
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (phrase.ja, phrase.en)
        ]
        assert fields[0] == fields[1]
