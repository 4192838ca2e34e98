"""`camserver notify` as a person at a terminal meets it, on answers that a server would give."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.errors import BadInput
from camserver.base.exits import Exit, exit_of
from camserver.commands import notify
from tests.commands.test_cameras import Api, api

__all__ = ["api"]

SLACK = {"receiver_uuid": "r-1", "name": "Slack", "kind": "slack", "enabled": True}
OFF = {"receiver_uuid": "r-2", "name": "Mail", "kind": "email", "enabled": False}
FOLDER = {"receiver_uuid": "r-3", "name": "Disk", "kind": "folder", "enabled": True}
RECEIVERS = {"receivers": [SLACK, OFF, FOLDER]}
REFUSED = exit_of(BadInput("")).value


def run(*args: str) -> Result:
    return CliRunner(env={"LC_ALL": "en_US.UTF-8"}).invoke(cli.main, ["notify", *args])


def delivery(status: str, error: str | None = None) -> dict[str, Any]:
    return {"status": status, "last_error": error}


def test_every_text_is_in_both_languages() -> None:
    for name, phrase in notify._WORDS.items():
        assert any("\u3040" <= one <= "\u9fff" for one in phrase.ja), name
        assert phrase.en.isascii(), name


def test_a_test_message_is_waited_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LOOK_EVERY_SEC", 0.001)
    api.answers["GET /api/receivers"] = RECEIVERS
    api.answers["POST /api/receivers/r-1/test"] = {"delivery_uuid": "d-1"}
    api.answers["GET /api/deliveries/d-1"] = [delivery("queued"), delivery("running"), delivery("done")]
    result = run("test")
    assert result.exit_code == 0, result.output
    assert "Slack     slack  arrived" in result.output
    assert [asked for asked, _ in api.asked if asked.startswith("POST")] == ["POST /api/receivers/r-1/test"], (
        "neither one that is off nor an archive"
    )


def test_one_that_fails_is_an_exit_code(api: Api) -> None:
    api.answers["GET /api/receivers"] = RECEIVERS
    api.answers["POST /api/receivers/r-2/test"] = {"delivery_uuid": "d-2"}
    api.answers["GET /api/deliveries/d-2"] = delivery("delayed", "the mail server x refuses the login: 535")
    result = run("test", "--receiver", "Mail")
    assert result.exit_code == Exit.CHECK_FAILED.value
    assert "refuses the login" in result.output


def test_a_receiver_that_there_is_not(api: Api) -> None:
    api.answers["GET /api/receivers"] = RECEIVERS
    result = run("test", "--receiver", "Disk")
    assert result.exit_code != 0
    assert "camserver receiver list" in result.output


def test_a_preview(api: Api) -> None:
    def one(name: str, verdict: str, language: str) -> dict[str, Any]:
        why = {"id": verdict, "label_ja": "理由", "label_en": f"why {verdict}"}
        told: dict[str, Any] = {"title": f"title {language}", "lines": ["line"]}
        told |= {"name": name, "kind": "slack", "rule": None, "language": language}
        return {"verdict": verdict, "why": why, **told}

    receivers = [one("A", "send", "ja"), one("B", "send", "en"), one("C", "snoozed", "en")]
    api.answers["GET /api/notify/preview"] = {"event_uuid": "e", "receivers": receivers}
    result = run("preview", "e")
    assert result.exit_code == 0, result.output
    assert "C         slack  why snoozed  -" in result.output
    assert result.output.endswith("\ntitle en\nline\n")
    assert json.loads(run("preview", "e", "--json").output)["event_uuid"] == "e"


def test_rules(api: Api) -> None:
    api.answers["GET /api/receivers"] = RECEIVERS
    rule = {
        "rule_uuid": "u", "name": "night", "enabled": True, "sites": ["main"], "camera_ids": None, "gone": 0,
        "primary_events": ["human"], "min_severity": 2, "receivers": ["r-1"],
        "quiet": {"from": "22:00", "to": "07:00", "days": [0], "through_severity": 3},
    }  # fmt: skip
    everything = {"sites": None, "primary_events": None, "quiet": None}
    mute = {**rule, **everything, "name": "mute", "enabled": False, "receivers": []}
    api.answers["GET /api/notify/rules"] = {"rules": [rule, mute]}
    lines = run("rules").output.splitlines()
    assert lines[1].split() == ["1", "night", "on", "main,", "human", ">=", "2", "22:00-07:00", "mon", "Slack"]
    assert lines[2].split() == ["2", "mute", "off", "everything", ">=", "2", "-", "nobody"]
    api.answers["GET /api/notify/rules"] = {"rules": []}
    assert "everything notable goes to every receiver" in run("rules").output


def test_snoozing(api: Api) -> None:
    api.answers["GET /api/receivers"] = RECEIVERS
    api.answers["POST /api/snoozes"] = {"snooze_uuid": "z-1", "until": 1_800_000_000_000}
    result = run("snooze", "--for", "2h", "--camera", "gate", "--receiver", "Slack", "--reason", "works")
    assert result.exit_code == 0, result.output
    assert api.asked[-1][1] == {
        "duration_sec": 7200,
        "camera_id": "gate",
        "site": None,
        "reason": "works",
        "receiver_uuid": "r-1",
    }
    assert "Snoozed until 2027-01-15" in result.output
    for wrong in ("2", "0h", "h", "1w", "-1h"):
        assert run("snooze", "--for", wrong).exit_code == REFUSED, wrong


def test_unsnoozing(api: Api) -> None:
    about = {"site": "main", "camera_id": None, "receiver_name": "Slack"}
    snoozes = [{"snooze_uuid": f"z-{number}", "until": 0, "reason": "", **about} for number in range(2)]
    api.answers["GET /api/snoozes"] = {"snoozes": snoozes}
    api.answers |= {"DELETE /api/snoozes/z-0": {}, "DELETE /api/snoozes/z-1": {}}
    assert "main → Slack" in run("snoozes").output
    assert "Snoozes ended: 2." in run("unsnooze", "--all").output
    assert "Snoozes ended: 1." in run("unsnooze", "z-1").output
    assert run("unsnooze").exit_code == REFUSED
    assert run("unsnooze", "z-1", "--all").exit_code == REFUSED
