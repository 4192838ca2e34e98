"""`camserver receiver` and `camserver delivery` as a person at a terminal meets them, on a server's answers."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.errors import BadInput, NotFound
from camserver.base.exits import Exit, exit_of
from camserver.commands import delivery_words, receivers
from tests.commands.test_cameras import NOW_MS, Api, api

__all__ = ["api"]

OFFICE = {
    "receiver_uuid": "r-1", "name": "事務所", "kind": "webhook", "enabled": True,
    "last_ok_at": NOW_MS - 90_000, "last_error": None, "last_error_at": None,
}  # fmt: skip
MAIL = OFFICE | {
    "receiver_uuid": "r-2", "name": "mail", "kind": "email", "enabled": False,
    "last_error": "535 wrong password", "last_error_at": NOW_MS - 5_000,
}  # fmt: skip
LETTER = {
    "delivery_uuid": "d-1", "kind": "message", "receiver_name": "事務所", "status": "dead", "attempt": 12,
    "created_at": NOW_MS - 7_200_000, "last_error": "refused: 400",
}  # fmt: skip


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.main, [*arguments], input=stdin)


@pytest.fixture(autouse=True)
def _known(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers["GET /api/receivers"] = {"receivers": [OFFICE, MAIL]}
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    monkeypatch.setattr(receivers, "LOOK_EVERY_SEC", 0.0)


def test_every_text_is_in_both_languages() -> None:
    for name, phrase in delivery_words.WORDS.items():
        assert any("\u3040" <= one <= "\u9fff" for one in phrase.ja), name
        assert phrase.en.isascii(), name
    for heads in delivery_words.HEADS.values():
        assert len(heads["ja"]) == len(heads["en"])


def test_a_receiver_is_added_with_settings_and_secrets(api: Api) -> None:
    api.answers["POST /api/receivers"] = OFFICE
    result = run(
        "receiver", "add", "office", "webhook", "--set", "picture=false", "--set", "note=a=b", "--secrets-stdin",
        "--language", "en", "--hourly-cap", "5", stdin="url=https://h/?a=b\n\nsigning_key=0123456789abcdef\n",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "https://h" not in result.output
    assert api.asked == [
        (
            "POST /api/receivers",
            {
                "name": "office",
                "kind": "webhook",
                "config": {"picture": False, "note": "a=b"},
                "secrets": {"url": "https://h/?a=b", "signing_key": "0123456789abcdef"},
                "language": "en",
                "hourly_cap": 5,
            },
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [(["--set", "picture"], None), (["--secrets-stdin"], "only a password\n")],
)
def test_what_is_not_a_pair_is_refused(arguments: list[str], stdin: str | None) -> None:
    result = run("receiver", "add", "office", "webhook", *arguments, stdin=stdin)
    assert result.exit_code == exit_of(BadInput("")).value
    assert "only a password" not in result.output


def test_the_list_shows_how_they_did(api: Api) -> None:
    result = run("receiver", "list")
    assert result.output.splitlines() == [
        "NAME    KIND     STATE  LAST OK  ERROR",
        "事務所  webhook  on     90 s     -",
        "mail    email    off    90 s     5 s: 535 wrong password",
    ]
    assert json.loads(run("receiver", "list", "--json").output) == [OFFICE, MAIL]


def test_a_trial_that_arrives_and_one_that_does_not(api: Api) -> None:
    api.answers["POST /api/receivers/r-1/test"] = {"delivery_uuid": "d-9"}
    api.answers["GET /api/deliveries/d-9"] = [
        LETTER | {"status": "queued"}, LETTER | {"status": "running"}, LETTER | {"status": "done"},
    ]  # fmt: skip
    result = run("receiver", "test", "事務所")
    assert (result.exit_code, "arrived" in result.output) == (0, True)
    api.answers["GET /api/deliveries/d-9"] = LETTER | {"status": "delayed", "last_error": "no route"}
    failed = run("receiver", "test", "r-1")
    assert failed.exit_code == Exit.CHECK_FAILED.value
    assert "no route" in failed.output


def test_switching_and_removing(api: Api) -> None:
    api.answers |= {"PATCH /api/receivers/r-2": MAIL, "DELETE /api/receivers/r-2": {}}
    for verb in ("enable", "disable", "remove"):
        assert run("receiver", verb, "mail").exit_code == 0
    asked = [one for one in api.asked if not one[0].startswith("GET")]
    assert asked == [
        ("PATCH /api/receivers/r-2", {"enabled": True}),
        ("PATCH /api/receivers/r-2", {"enabled": False}),
        ("DELETE /api/receivers/r-2", None),
    ]
    nobody = run("receiver", "remove", "nobody")
    assert nobody.exit_code == exit_of(NotFound("")).value
    assert "事務所, mail" in nobody.output


def test_dead_letters_are_listed_and_queued_again(api: Api) -> None:
    api.answers["GET /api/deliveries"] = {"deliveries": [LETTER], "next_before": "1.1"}
    listed = run("delivery", "list", "--receiver", "mail", "--kind", "message")
    assert "d-1" in listed.output
    assert "refused: 400" in listed.output
    assert "raise --limit" in listed.output
    assert api.asked[-1][0] == "GET /api/deliveries?limit=50&status=dead&kind=message&receiver=r-2"

    api.answers["POST /api/deliveries/d-1/requeue"] = LETTER
    api.answers["POST /api/deliveries/requeue"] = {"count": 3}
    assert "Queued again: 1." in run("delivery", "requeue", "d-1").output
    assert "Queued again: 3." in run("delivery", "requeue", "--receiver", "mail").output
    assert api.asked[-1][1] == {"receiver_uuid": "r-2", "kind": None}
    assert json.loads(run("delivery", "requeue", "--all", "--json").output) == {"count": 3}


@pytest.mark.parametrize("arguments", [[], ["d-1", "--all"]])
def test_requeueing_must_be_said_clearly(arguments: list[str]) -> None:
    assert run("delivery", "requeue", *arguments).exit_code == exit_of(BadInput("")).value


def test_nothing_to_show(api: Api) -> None:
    answers: dict[str, Any] = {"GET /api/receivers": {"receivers": []}, "GET /api/deliveries": {"deliveries": []}}
    api.answers |= answers
    assert "camserver receiver add" in run("receiver", "list").output
    assert "No such deliveries." in run("delivery", "list", "--all").output
