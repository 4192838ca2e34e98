"""`camserver worker`, `camera move`, `why` and `flag` as a person meets them, on answers that a server would give."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.clients.local_server import LocalServer
from camserver.commands import flags, leases, workers

NOW_MS = 1_700_000_000_000
WORKER = {
    "worker_id": "shop-1", "site": "main", "status": "RUNNING", "version": "1", "slots": 10, "used": 3, "cpu": 0,
    "gpu": 0, "mem": 0, "labels": {"gpu": "yes"}, "is_connected": True, "is_draining": True,
    "last_seen_at": NOW_MS - 4_000, "metrics": {"spool_bytes": 1024.5, "cameras": 3.0}, "metrics_at": NOW_MS - 30_000,
}  # fmt: skip
LEASE = {
    "camera_id": "gate", "site": "main", "worker_id": "shop-1", "generation": 7, "state": "ACTIVE", "reason": "",
    "granted_at": NOW_MS - 1, "expires_at": NOW_MS + 42_000, "left_ms": 42_000, "is_holder_connected": False,
    "is_orphaned_soon": True, "is_stopping": False, "failures": 0, "auth_failures": 0, "next_attempt_at": None,
}  # fmt: skip
PLACED = {"camera_id": "gate", "worker_id": "shop-1", "wanted_worker_id": "shop-2", "pinned_worker_id": None}


class Api:
    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.asked.append((f"{method} {path}", body))
        answer: dict[str, Any] = made.answers[f"{method} {path}"]
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
    return CliRunner().invoke(cli.main, list(arguments))


def test_workers_are_listed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers["GET /api/workers"] = {"workers": [WORKER], "next_after": None}
    result = run("worker", "list")
    assert result.exit_code == 0, result.output
    for words in ("shop-1", "3/10", "gpu=yes", "connected (draining)", "4 s"):
        assert words in result.output
    assert json.loads(run("worker", "list", "--json").output) == {"workers": [WORKER]}
    assert "shop-1 (30 s): cameras=3, spool_bytes=1024.5" in run("worker", "list", "-v").output
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "退避中" in run("worker", "list").output
    api.answers["GET /api/workers"] = {"workers": [], "next_after": None}
    assert "ワーカーはまだ" in run("worker", "list").output


def test_a_worker_is_emptied_and_a_camera_moved_and_pinned(api: Api) -> None:
    for what in ("drain", "undrain"):
        api.answers[f"POST /api/workers/shop-1/{what}"] = WORKER
    api.answers["POST /api/cameras/gate/reassign"] = PLACED
    api.answers["POST /api/cameras/gate/pin"] = PLACED
    api.answers["DELETE /api/cameras/gate/pin"] = PLACED
    assert "its 3 cameras" in run("worker", "drain", "shop-1").output
    assert "takes cameras again" in run("worker", "undrain", "shop-1").output
    assert "gate goes to shop-2" in run("camera", "move", "gate", "shop-2").output
    assert "is at shop-1 already" in run("camera", "move", "gate", "shop-1").output
    assert "pinned to shop-2" in run("camera", "pin", "gate", "shop-2").output
    assert "not pinned" in run("camera", "unpin", "gate").output
    assert ("POST /api/cameras/gate/pin", {"worker_id": "shop-2"}) in api.asked
    assert ("DELETE /api/cameras/gate/pin", None) in api.asked


def test_why_is_told_in_the_readers_language(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"code": "disabled", "text_ja": "無効です。", "text_en": "It is off."}]
    api.answers["GET /api/cameras/gate/why"] = {"camera_id": "gate", "is_running": False, "lines": lines}
    assert run("why", "gate").output == "It is off.\n"
    assert json.loads(run("why", "gate", "--json").output)["is_running"] is False
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert run("why", "gate").output == "無効です。\n"


def test_the_quota_is_shown_and_set(api: Api) -> None:
    api.answers["GET /api/quota"] = {"cameras_running_max": None, "running": 4}
    api.answers["POST /api/quota"] = {"cameras_running_max": 9, "running": 4}
    assert "no quota" in run("worker", "quota").output
    assert "at most 9" in run("worker", "quota", "9").output
    run("worker", "quota", "--none")
    assert [body for asked, body in api.asked if asked.startswith("POST")] == [
        {"cameras_running_max": 9},
        {"cameras_running_max": None},
    ]
    asked = len(api.asked)
    assert run("worker", "quota", "9", "--none").exit_code != 0
    assert len(api.asked) == asked


def test_leases_are_listed_page_by_page(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {**LEASE, "camera_id": "yard", "worker_id": None, "left_ms": None, "state": "PAUSED", "reason": "quota"}
    over = {**LEASE, "camera_id": "zoo", "left_ms": 0, "is_stopping": True, "is_holder_connected": True}
    api.answers["GET /api/leases"] = {"leases": [LEASE], "next_after": "gate", "ttl_ms": 90_000}
    api.answers["GET /api/leases?after=gate"] = {"leases": [free, over], "next_after": None, "ttl_ms": 90_000}
    lines = run("lease", "list").output.splitlines()
    assert [line.split()[0] for line in lines] == ["CAMERA", "gate", "yard", "zoo"]
    for words in ("shop-1 (away)", "7", "ACTIVE", "42 s"):
        assert words in lines[1]
    assert "quota" in lines[2]
    assert "ran out" in lines[3]
    assert "(stopping)" in lines[3]
    assert json.loads(run("lease", "list", "--json").output) == {"leases": [LEASE, free, over]}
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "切断中" in run("lease", "list").output
    api.answers["GET /api/leases"] = {"leases": [], "next_after": None, "ttl_ms": 90_000}
    assert "カメラはまだ" in run("lease", "list").output


@pytest.mark.parametrize(
    ("outcome", "said"), [("free", "Nobody holds"), ("stopping", "asked to stop"), ("reclaimed", "taken back")]
)
def test_a_camera_is_taken_back(api: Api, outcome: str, said: str) -> None:
    api.answers["POST /api/leases/reclaim"] = {"outcome": outcome, "lease": LEASE}
    assert said in run("lease", "reclaim", "gate").output
    assert json.loads(run("lease", "reclaim", "gate", "--force", "--json").output)["outcome"] == outcome
    assert [body["force"] for _, body in api.asked] == [False, True]


def test_flags_are_set_and_cleared(api: Api) -> None:
    one = {"name": "assignment.style", "site": None, "value": "pack", "updated_at": 0}
    api.answers["GET /api/flags"] = {"flags": []}
    api.answers["POST /api/flags"] = {"flags": [one]}
    assert "No flag" in run("flag", "list").output
    assert "all sites" in run("flag", "set", "assignment.style", "pack").output
    run("flag", "clear", "assignment.style", "--site", "main")
    assert run("flag", "set", "assignment.style", "odd").exit_code != 0
    assert [body for asked, body in api.asked if asked.startswith("POST")] == [
        {"name": "assignment.style", "site": None, "value": "pack"},
        {"name": "assignment.style", "site": "main", "value": None},
    ]


@pytest.mark.parametrize("words", [workers._WORDS, flags._WORDS, leases._WORDS])
def test_what_is_said_is_said_with_the_same_values_in_both_languages(words: dict[str, Any]) -> None:
    for phrase in words.values():
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (phrase.ja, phrase.en)
        ]
        assert fields[0] == fields[1]
