"""`camserver worker token`, `enroll` and `revoke` as a person meets them."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.clients.local_server import LocalServer
from camserver.commands import worker_identity
from camserver.domain.certificates import WorkerName
from camserver.services.worker import enrolling, identity_file
from camserver.services.worker.identity_file import Enrolled
from camserver.wire.enrolment import Token
from tests.rig.identities import new_identity

NOW_MS = 1_700_000_000_000
TOKEN = Token.make("ab" * 32)
MADE = {
    "token": TOKEN.text(), "site": "main", "worker_id": None, "expires_at": NOW_MS + 600_000, "ca_sha256": "ab" * 32
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    made: list[Any] = []

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.append((f"{method} {path}", body))
        return MADE if path.endswith("enrolments") else {"worker_id": "shop-1", "certificates": 2}

    async def is_there(self: LocalServer) -> bool:
        return True

    async def enroll(server_url: str, token: Token, worker_id: str) -> tuple[Enrolled, str]:
        made.append((server_url, token, worker_id))
        return new_identity(WorkerName("tenant", "site", worker_id)), "main"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("CAMSERVER_CONTROL_TLS_PORT", "8443")
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    monkeypatch.setattr(enrolling, "enroll", enroll)
    return made


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli.main, list(arguments), input=stdin)


def test_a_token_is_the_only_line_on_standard_output(asked: list[Any]) -> None:
    done = run("worker", "token", "--site", "main", "--name", "shop-1", "--ttl", "600")
    assert done.exit_code == 0, done.output
    assert done.stdout == TOKEN.text() + "\n"
    assert "within 10 minutes" in done.stderr
    assert "8443" in done.stderr
    body = {"site": "main", "worker_id": "shop-1", "ttl_sec": 600}
    assert asked == [("POST /api/workers/enrolments", body)]
    assert json.loads(run("worker", "token", "--json").stdout) == MADE
    assert run("worker", "token", "--ttl", "1").exit_code != 0


def test_a_worker_is_revoked(asked: list[Any]) -> None:
    assert "2 certificates of shop-1" in run("worker", "revoke", "shop-1").output
    assert asked == [("POST /api/workers/shop-1/revoke", {})]
    assert json.loads(run("worker", "revoke", "shop-1", "--json").output)["certificates"] == 2


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_a_machine_is_enrolled_with_the_token_from_anywhere(asked: list[Any], tmp_path: Path, way: str) -> None:
    file = tmp_path / "token.txt"
    file.write_text(TOKEN.text() + "\n")
    options = {"argument": ["--token", TOKEN.text()], "file": ["--token-file", str(file)], "stdin": ["--token-stdin"]}
    start = ("--data-dir", str(tmp_path / "data"), "worker", "enroll", "https://cams.example.com:8443")
    done = run(*start, "--name", "shop-1", *options[way], stdin=TOKEN.text() if way == "stdin" else "")
    assert done.exit_code == 0, done.output
    assert asked == [("https://cams.example.com:8443", TOKEN, "shop-1")]
    assert "CAMSERVER_WORKER_SERVER_URL=https://cams.example.com:8443 camserver worker run" in done.output
    kept = identity_file.read(tmp_path / "data" / "identity")
    assert kept is not None
    assert kept.name.worker_id == "shop-1"
    # It is not lost by doing it twice.
    twice = run(*start, "--token", TOKEN.text())
    assert twice.exit_code != 0
    assert "--replace" in twice.output
    assert identity_file.read(tmp_path / "data" / "identity") == kept
    assert run(*start, "--replace", "--token", TOKEN.text(), "--json").exit_code == 0


def test_what_is_no_token_is_not_sent(asked: list[Any]) -> None:
    for words in (["--token", "nonsense"], ["--token-file", "nowhere"], ["--token", "a", "--token-stdin"]):
        assert run("worker", "enroll", "https://cams.example.com:8443", *words).exit_code != 0
    assert asked == []


def test_what_is_said_is_said_with_the_same_values_in_both_languages() -> None:
    for phrase in worker_identity._WORDS.values():
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (phrase.ja, phrase.en)
        ]
        assert fields[0] == fields[1]
