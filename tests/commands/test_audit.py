"""`camserver audit` as a person at a terminal meets it, on answers that a server would give and on files."""

import json
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.commands import audit_words
from camserver.commands.audit import moment
from camserver.domain import audit as rules
from camserver.domain import audit_files
from camserver.domain.audit import LoggedEntry, Seal, SealKey

NOW_MS = 1_767_225_600_000
KEY = SealKey(b"k" * 32)
ENTRY = {
    "entry_id": 5, "at": NOW_MS, "who": "田中", "actor_kind": "user", "action": "picture_opened",
    "object_kind": "frame", "object_id": "f1", "object_name": None, "details": {"kind": "full"},
    "address": "192.0.2.1", "batch_no": 1,
}  # fmt: skip
CHAIN = {
    "tenant": "default", "batches": 3, "entries": 9, "unsealed": 0, "last_hash": "a" * 64, "last_sealed_at": NOW_MS,
    "oldest_unsealed_at": None,
}  # fmt: skip
WHOLE = {"batches": 3, "entries": 9, "findings": [], "next_after": None, "key_id": "0123456789abcdef"}
FINDING = {
    "wrong": "entry_changed", "batch_no": 2, "entry_ids": [7], "message": "Batch 2: entries were changed: 7",
    "what_to_do": "Compare with a backup.",
}  # fmt: skip


class Api:
    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, Any]] = []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.asked.append((f"{method} {path}", body))
        answers = made.answers[f"{method} {path.partition('?')[0]}"]
        answer: dict[str, Any] = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer

    async def is_there(self: LocalServer) -> bool:
        return True

    async def download(self: LocalServer, path: str, file: BinaryIO, *_: object) -> int:
        made.asked.append((f"GET {path}", None))
        return file.write(exported())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    monkeypatch.setattr(LocalServer, "download", download)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["audit", *arguments])


def query_of(api: Api, number: int = 0) -> dict[str, list[str]]:
    return parse_qs(urlsplit(api.asked[number][0].partition(" ")[2]).query)


# Listing


def test_entries_are_listed_with_names(api: Api) -> None:
    api.answers["GET /api/audit"] = [{"entries": [ENTRY], "next_before": "5.5"}]
    result = run("list", "--limit", "1")
    assert result.exit_code == 0
    assert "2026-01-01 00:00:00" in result.output
    for word in ("田中", "picture_opened", "frame f1", '{"kind": "full"}', "192.0.2.1", "raise --limit"):
        assert word in result.output


def test_filters_are_handed_on(api: Api) -> None:
    api.answers["GET /api/audit"] = [{"entries": [], "next_before": None}]
    result = run(
        "list", "--who", "田中", "--action", "x", "--object", "camera:entrance", "--since", "12h", "--until",
        "2026-01-01", "--installation",
    )  # fmt: skip
    assert "No such entries" in result.output
    assert query_of(api) == {
        "who": ["田中"],
        "action": ["x"],
        "object_kind": ["camera"],
        "object_id": ["entrance"],
        "from": [str(NOW_MS - 12 * 3_600_000)],
        "to": [str(NOW_MS)],
        "installation": ["true"],
        "limit": ["50"],
    }


def test_many_entries_are_asked_for_page_by_page(api: Api) -> None:
    page = {"entries": [ENTRY] * 500, "next_before": "1.1"}
    api.answers["GET /api/audit"] = [page, {"entries": [ENTRY] * 100, "next_before": "1.0"}]
    shown = json.loads(run("list", "--limit", "600", "--json").output)
    assert (len(shown["entries"]), shown["more"]) == (600, True)
    assert [query_of(api, number)["limit"] for number in (0, 1)] == [["500"], ["100"]]
    assert query_of(api, 1)["before"] == ["1.1"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90m", NOW_MS - 90 * 60_000),
        ("7d", NOW_MS - 7 * 86_400_000),
        ("2026-01-01", NOW_MS),
        ("2026-01-01T08:00", NOW_MS + 8 * 3_600_000),
        ("2026-01-01T09:00+09:00", NOW_MS),
        ("1969-01-01", 0),
    ],
)
def test_times_as_people_write_them(written: str, meant: int) -> None:
    assert moment(written, NOW_MS) == meant


@pytest.mark.parametrize("written", ["", "yesterday", "h", "-1h", "99999999999d", "٣h"])
def test_what_is_no_time_is_said(api: Api, written: str) -> None:
    result = run("list", "--since", written)
    assert (result.exit_code, "is no time" in result.output) == (Exit.REFUSED, True)


# Checking


def test_a_log_that_is_whole(api: Api) -> None:
    api.answers["GET /api/audit/chains"] = [{"chains": [{**CHAIN, "tenant": None}, CHAIN], "key_id": "x"}]
    api.answers["POST /api/audit/verify"] = [{**WHOLE, "next_after": 20}, WHOLE]
    result = run("verify")
    assert result.exit_code == 0, result.output
    assert "installation: whole (6 batches, 18 entries)" in result.output
    assert "default: whole (3 batches, 9 entries)" in result.output
    assert "key 0123456789abcdef" in result.output
    assert "a" * 64 in result.output
    assert [body for path, body in api.asked if path.startswith("POST")] == [
        {"installation": True, "after_batch": 0, "with_key": True},
        {"installation": True, "after_batch": 20, "with_key": True},
        {"tenant": "default", "after_batch": 0, "with_key": True},
    ]


def test_a_log_that_is_not_whole_says_where_and_what_to_do(api: Api) -> None:
    api.answers["GET /api/audit/chains"] = [{"chains": [{**CHAIN, "unsealed": 2, "oldest_unsealed_at": 5}]}]
    api.answers["POST /api/audit/verify"] = [{**WHOLE, "findings": [FINDING, FINDING], "key_id": None}]
    result = run("verify", "--tenant", "default", "--without-key")
    assert result.exit_code == Exit.CHECK_FAILED
    assert "NOT whole" in result.output
    assert "first: Batch 2: entries were changed: 7" in result.output
    assert result.output.count("Compare with a backup.") == 1
    assert "only hashes" in result.output
    assert "does a dispatcher run?" in result.output
    assert api.asked[-1][1]["with_key"] is False
    shown = json.loads(run("verify", "--json").output.splitlines()[0])
    assert (shown["whole"], shown["logs"][0]["findings"]) == (False, [FINDING, FINDING])


def test_entries_that_nobody_seals_are_no_good_end(api: Api) -> None:
    api.answers["POST /api/audit/verify"] = [WHOLE]
    for minutes, code in ((9, Exit.OK), (11, Exit.CHECK_FAILED)):
        waiting = {**CHAIN, "unsealed": 2, "oldest_unsealed_at": NOW_MS - minutes * 60_000}
        api.answers["GET /api/audit/chains"] = [{"chains": [waiting]}]
        result = run("verify")
        assert result.exit_code == code, result.output
        assert "default: whole" in result.output
        assert ("not sealed after more than ten minutes (2 not sealed)" in result.output) == (minutes > 10)
        shown = json.loads(run("verify", "--json").output.splitlines()[0])
        assert (shown["whole"], shown["logs"][0]["late"]) == (True, minutes > 10)


def test_a_tenant_that_is_not_there_is_said(api: Api) -> None:
    api.answers["GET /api/audit/chains"] = [{"chains": [CHAIN]}]
    result = run("verify", "--tenant", "other")
    assert (result.exit_code, "'other'" in result.output) == (Exit.REFUSED, True)


# Files


def chain() -> list[tuple[Seal, list[LoggedEntry]]]:
    made: list[tuple[Seal, list[LoggedEntry]]] = []
    for number in range(3):
        entries = [LoggedEntry(number * 10 + one, NOW_MS, "user", "1", "did", "", "", None, "") for one in range(3)]
        made.append((rules.seal(made[-1][0] if made else None, 1, entries, KEY, NOW_MS), entries))
    return made


def exported() -> bytes:
    lines = [audit_files.file_head("default", 1, NOW_MS)]
    for seal, entries in chain():
        lines += [audit_files.seal_line(seal), *(audit_files.entry_line(one, "owner") for one in entries)]
    return "".join([*lines, audit_files.file_end(3, 9)]).encode()


def test_an_export_is_checked_without_a_server(api: Api, tmp_path: Path) -> None:
    result = run("export", "audit.jsonl")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    again = run("export", "audit.jsonl")
    assert (again.exit_code, "--force" in again.output) == (Exit.REFUSED, True)
    assert run("export", "audit.jsonl", "--force", "--installation").exit_code == 0
    assert api.asked[-1][0].endswith("?installation=true")
    checked = run("verify", "--file", "audit.jsonl")
    assert checked.exit_code == 0, checked.output
    assert "default: whole (3 batches, 9 entries)" in checked.output
    assert "only hashes" in checked.output, "there is no key here"
    (tmp_path / "audit.jsonl").write_bytes(exported().replace(b'"did"', b'"saw"', 1))
    broken = run("verify", "--file", "audit.jsonl")
    assert (broken.exit_code, "Batch 1: entries were changed: 0" in broken.output) == (Exit.CHECK_FAILED, True)
    (tmp_path / "audit.jsonl").write_bytes(b"".join(exported().splitlines(keepends=True)[:-1]))
    assert run("verify", "--file", "audit.jsonl").exit_code == Exit.CHECK_FAILED
    (tmp_path / "audit.jsonl").write_bytes(exported() + audit_files.entry_line(chain()[0][1][0], "boss").encode())
    longer = run("verify", "--file", "audit.jsonl")
    assert (longer.exit_code, "line 15: the export ends before" in longer.output) == (Exit.REFUSED, True)
    (tmp_path / "audit.jsonl").write_bytes(b"\xff\n")
    odd = run("verify", "--file", "audit.jsonl")
    assert (odd.exit_code, "line 1" in odd.output) == (Exit.REFUSED, True)
    assert run("verify", "--file", "audit.jsonl", "--tenant", "x").exit_code == Exit.REFUSED


def test_an_export_is_checked_with_the_key_that_is_here(api: Api, tmp_path: Path) -> None:
    run("export", "audit.jsonl")
    folder = tmp_path / "data" / "secrets"
    folder.mkdir(parents=True)
    (folder / "audit_key").write_text("b2" * 21 + "o")
    (folder / "audit_key").chmod(0o600)
    result = run("verify", "--file", "audit.jsonl")
    assert (result.exit_code, "key that is not here" in result.output) == (Exit.CHECK_FAILED, True)
    assert "--without-key" in result.output
    assert run("verify", "--file", "audit.jsonl", "--without-key").exit_code == 0


def test_everything_is_said_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, phrase in audit_words._WORDS.items():
        fields = [{part.split("}")[0] for part in text.split("{")[1:]} for text in (phrase.ja, phrase.en)]
        assert fields[0] == fields[1], name
