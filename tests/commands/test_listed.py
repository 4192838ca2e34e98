"""`camserver event`, `incident`, `statistics` and `case show|remove` on answers that a server would give."""

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.clients.local_server import LocalServer
from camserver.commands import case_words, events, incidents, statistics
from camserver.domain.phrases import Phrase

AT = 1_700_000_000_000
TAG = {"id": "x", "label_ja": "人物", "label_en": "Person", "group": "notify_safe", "severity_default": 0}
EVENT = {
    "event_uuid": "e-1", "camera_id": "entrance", "site": "本社", "state": "open", "primary_event": "human",
    "start_at": AT, "last_seen_at": AT + 600_000, "severity_max": 2, "issue": None, "tags": [TAG] * 6,
}  # fmt: skip
INCIDENT = {
    "incident_uuid": "i-1", "camera_id": "entrance", "site": "本社", "start_at": AT, "last_seen_at": AT,
    "severity_max": 1, "event_count": 3, "primary_event": None, "reviewers": 2,
}  # fmt: skip
BUCKET: dict[str, Any] = {
    "start_at": AT, "day": None, "looks": 60, "looks_failed": 0, "analyzed": 1, "detected": 0, "unknown": 0,
    "events": 0, "severity_max": 0, "bytes": 0, "by_event": {},
}  # fmt: skip
CASE = {
    "title": "自転車", "state": "closed", "hold": True, "created_at": AT, "created_by": "owner", "updated_at": AT,
    "closed_at": AT, "note_list": [{"at": AT, "by": "owner", "body": "a"}], "items": 2,
}  # fmt: skip
ITEM: dict[str, Any] = {
    "kind": "event", "uuid": "e-1", "camera_id": "entrance", "site": "本社", "happened_at": AT, "added_at": AT,
    "added_by": "owner", "held": False, "gone": True,
}  # fmt: skip


class Api:
    """Answers by path, several answers to one path in turn."""

    def __init__(self) -> None:
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []

    def queries(self) -> list[dict[str, list[str]]]:
        return [parse_qs(urlsplit(one.partition(" ")[2]).query) for one in self.asked]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    made = Api()

    async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
        made.asked.append(f"{method} {path}")
        answers = made.answers[f"{method} {path.partition('?')[0]}"]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def is_there(self: LocalServer) -> bool:
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setattr(LocalServer, "_call", call)
    monkeypatch.setattr(LocalServer, "is_there", is_there)
    return made


def run(*arguments: str, expected: Exit = Exit.OK) -> Result:
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == expected.value, result.output
    return result


def test_all_of_it_is_said_in_japanese(api: Api) -> None:
    api.answers = {
        "GET /api/events": [{"events": [EVENT], "next_before": "x"}],
        "GET /api/incidents": [{"incidents": [INCIDENT], "next_before": "x"}],
        "GET /api/statistics": [{"buckets": [BUCKET, BUCKET]}],
        "GET /api/cases/c": [CASE],
        "GET /api/cases/c/items": [{"items": [ITEM], "next_after": None}],
    }
    event = run("event", "list", "--limit", "1")
    assert all(word in event.output for word in ("人を検知", "継続中", "10 min", "人物, +2", "--limit を大きく"))
    incident = run("incident", "list", "--limit", "1")
    assert all(word in incident.output for word in ("2 人", "確認した人", "--limit を大きく"))
    assert "合計" in run("statistics").output
    case = run("case", "show", "c").output
    assert all(word in case for word in ("自転車", "終了 (保全中)", "開始: ", "証拠 1 件:", "イベント", "削除済み"))


def test_lists_are_read_page_by_page(api: Api) -> None:
    page = {"events": [EVENT] * 200, "next_before": "5.7"}
    api.answers["GET /api/events"] = [page, {"events": [EVENT] * 50, "next_before": "9.9"}]
    found = json.loads(run("event", "list", "--limit", "250", "--json").output)
    assert (len(found["events"]), found["next_before"]) == (250, "9.9")
    assert [(one["limit"], one.get("before")) for one in api.queries()] == [(["200"], None), (["50"], ["5.7"])]


def test_every_share_is_listed(api: Api) -> None:
    share = {
        **{"share_uuid": "s-1", "kind": "event", "uuid": "e-1", "camera_id": "entrance", "by": "owner", "note": ""},
        **{"expires_at": None, "opened_count": 2, "last_opened_at": None},
    }
    pages: list[dict[str, Any]] = [
        {"shares": [share] * 200, "next_before": "h0.7"},
        {"shares": [share], "next_before": None},
    ]
    api.answers["GET /api/shares"] = list(pages)
    found = json.loads(run("share", "list", "--json").output)
    assert (len(found["shares"]), found["next_before"]) == (201, None)
    assert [(one["limit"], one.get("before")) for one in api.queries()] == [(["200"], None), (["200"], ["h0.7"])]
    api.answers["GET /api/shares"] = list(pages)
    assert run("share", "list").output.count("無期限") == 201
    api.answers["GET /api/shares"] = [{"shares": [], "next_before": None}]
    assert "共有中のものはありません" in run("share", "list").output


def test_the_lists_are_narrowed(api: Api) -> None:
    api.answers["GET /api/events"] = [{"events": [], "next_before": None}]
    api.answers["GET /api/incidents"] = [{"incidents": [], "next_before": None}]
    api.answers["GET /api/cameras/a"] = api.answers["GET /api/cameras/b"] = [{}]
    two = ("--camera", "a", "--camera", "b", "--site", "本社", "--severity", "1", "--until", "2026-01-01T00:00Z")
    assert "該当するイベントはありません" in run("event", "list", *two, "--unknown").output
    assert "該当するインシデントはありません" in run("incident", "list", *two, "--unreviewed").output
    narrowed = {"camera_id": ["a", "b"], "site": ["本社"], "severity_min": ["1"], "to": ["1767225600000"]}
    assert [one for one in api.queries() if one] == [
        {"limit": ["50"], "primary_event": ["unknown"], **narrowed},
        {"limit": ["50"], "reviewed": ["false"], **narrowed},
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("event", "list", "--unknown", "--kind", "human"), "give one of the two"),
        (("event", "list", "--hours", "1", "--since", "2026-01-01"), "--hours"),
        (("incident", "list", "--since", "2026-01-02", "--until", "2026-01-01"), "exchange"),
    ],
)
def test_what_makes_no_sense_is_not_asked(api: Api, arguments: tuple[str, ...], why: str) -> None:
    assert why in run(*arguments, expected=Exit.REFUSED).output
    assert api.asked == []


def test_hours_are_whole_ones_in_figures(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: AT / 1000)
    api.answers["GET /api/statistics"] = [{"buckets": []}]
    assert "集計されたものはありません" in run("statistics", "--hours", "2").output
    assert api.queries() == [{"by": ["hour"], "from": [str((AT - 7_200_000) // 3_600_000 * 3_600_000)]}]


def test_an_item_of_two_kinds_is_asked_about(api: Api) -> None:
    more = {"items": [ITEM | {"kind": "clip"}, ITEM | {"kind": "frame", "uuid": "f/1"}], "next_after": None}
    pages: list[dict[str, Any]] = [{"items": [ITEM], "next_after": "7"}, more]
    api.answers["GET /api/cases/c/items"] = pages * 2
    twice = run("case", "remove", "c", "e-1", expected=Exit.REFUSED)
    assert "as event and clip; say which with --kind" in twice.output
    assert not [one for one in api.asked if one.startswith("DELETE")]
    api.answers["DELETE /api/cases/c/items/clip/e-1"] = [{}]
    assert "1 件を取り出しました" in run("case", "remove", "c", "e-1", "--kind", "clip").output


@pytest.mark.parametrize("words", [case_words._WORDS, events._WORDS, incidents._WORDS, statistics._WORDS])
def test_what_is_said_is_said_with_the_same_values_in_both_languages(words: Mapping[str, Phrase]) -> None:
    for phrase in words.values():
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (phrase.ja, phrase.en)
        ]
        assert fields[0] == fields[1]
