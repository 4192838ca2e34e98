"""`camserver rule` against a real store: written, changed, ordered, tried and removed."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.errors import BadInput
from camserver.base.exits import Exit
from camserver.commands import rules

KEY = "signing_key=0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("CAMSERVER_WEB_PORT", "1")  # nobody answers there: each command has a server of its own


def run(*arguments: str, expected: Exit = Exit.OK, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli.main, ["--data-dir", "data", *arguments], input=stdin)
    assert result.exit_code == expected.value, result.output
    return result


def listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("rule", "list", "--json").output)["rules"]
    return found


def given(**options: Any) -> dict[str, Any]:
    """Options as click hands them over."""
    none = ("min_severity", "quiet", "quiet_days", "quiet_through", "enabled")
    lists = ("sites", "cameras", "events", "receivers")
    return dict.fromkeys(none) | dict.fromkeys(lists, ()) | {"nobody": False} | options


NIGHT: dict[str, Any] = {
    "name": "night", "enabled": True, "sites": None, "camera_ids": ["car_park"], "primary_events": ["human"],
    "min_severity": 1, "receivers": ["r-1"], "gone": 0,
    "quiet": {"from": "22:00", "to": "07:00", "days": [0, 4], "through_severity": None},
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {}),
        ({"enabled": False}, {"enabled": False}),
        ({"min_severity": 0}, {"min_severity": 0}),
        ({"cameras": ("a", "b"), "all_events": True}, {"camera_ids": ["a", "b"], "primary_events": None}),
        ({"all_cameras": True, "sites": ("main",)}, {"camera_ids": None, "sites": ["main"]}),
        ({"all_receivers": True}, {"receivers": None}),
        ({"nobody": True}, {"receivers": []}),
        ({"no_quiet": True}, {"quiet": None}),
        ({"quiet_days": "Sunday"}, {"quiet": NIGHT["quiet"] | {"days": [6]}}),
        ({"quiet_through": "2"}, {"quiet": NIGHT["quiet"] | {"through_severity": 2}}),
        ({"quiet": "20:00 - 06:30"}, {"quiet": NIGHT["quiet"] | {"from": "20:00", "to": "06:30"}}),
    ],
)
def test_what_is_not_given_stays(options: dict[str, Any], changed: dict[str, Any]) -> None:
    assert rules._values(given(**options), NIGHT["quiet"]) == changed


def test_rules_from_the_first_to_the_last() -> None:
    first = run("rule", "add", "night", "--event", "human", "--quiet", "22:00-07:00", "--quiet-days", "fri,mon")
    assert "what fits no rule is told to nobody" in first.output
    run("rule", "add", "mute", "--nobody", "--off", "--position", "1")
    run("rule", "change", "2", "--name", "dusk", "--min-severity", "1")
    mute, dusk = run("rule", "list").output.splitlines()[1:]
    assert mute.split() == ["1", "mute", "off", "everything", ">=", "0", "-", "nobody"]
    assert dusk.split() == ["2", "dusk", "on", "human", ">=", "1", "22:00-07:00", "mon,fri", "all"]
    run("rule", "remove", "dusk")
    assert [one["name"] for one in listed()] == ["mute"]


def test_an_event_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run("rule", "test", "0198c0de-0000-7000-8000-000000000001", expected=Exit.REFUSED)
    assert "past its retention" in missing.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "r", "--event", "humna"), "human, animal, vehicle"),
        (("add", "r", "--receiver", "a", "--nobody"), "exclude each other"),
        (("add", "r", "--quiet", "22:00"), "FROM-TO"),
        (("add", "r", "--quiet-days", "mon"), "--quiet FROM-TO"),
        (("add", "r", "--quiet", "22:00-07:00", "--quiet-days", "someday"), "mon, tue"),
        (("change", "nothing", "--off"), "camserver rule list"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(arguments: tuple[str, ...], said: str) -> None:
    assert said in run("rule", *arguments, expected=Exit.REFUSED).output


@pytest.mark.parametrize("option", ["receivers", "cameras", "events", "sites"])
def test_all_of_them_and_some_of_them_exclude_each_other(option: str) -> None:
    with pytest.raises(BadInput, match=f"--all-{option}"):
        rules._values(given(**{option: ("other",), f"all_{option}": True}), None)


def test_what_a_rule_named_and_is_gone_never_makes_it_one_for_others() -> None:
    for name in ("office", "guard"):
        run("receiver", "add", name, "webhook", "--secrets-stdin", stdin="url=https://hook.example/x\n")
    run("rule", "add", "night", "--receiver", "office")
    run("receiver", "remove", "office")
    run("rule", "change", "night", "--min-severity", "2")
    [night] = listed()
    assert (night["min_severity"], night["receivers"], night["gone"]) == (2, [], 1)
    run("rule", "change", "night", "--receiver", "guard")
    assert [(len(one["receivers"]), one["gone"]) for one in listed()] == [(1, 0)]
    run("rule", "change", "night", "--all-receivers")
    assert [one["receivers"] for one in listed()] == [None]


def test_a_receiver_is_changed_in_part() -> None:
    run("receiver", "add", "office", "webhook", "--secrets-stdin", stdin="url=https://hook.example/x\n")
    run("receiver", "change", "office", "--name", "guard", "--hourly-cap", "20", "--set", "signed_link=true")
    run("receiver", "change", "guard", "--no-cap", "--set", "summaries=true", "--secrets-stdin", stdin=f"{KEY}\n")
    [guard] = json.loads(run("receiver", "list", "--json").output)
    assert (guard["hourly_cap"], guard["config"]["signed_link"], guard["config"]["summaries"]) == (None, True, True)
    assert guard["secrets"] == {"url": {"is_set": True}, "signing_key": {"is_set": True}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("office",), "say what is to change"), (("office", "--no-cap", "--hourly-cap", "3"), "exclude")],
)
def test_a_change_of_a_receiver_that_makes_no_sense_is_refused(arguments: tuple[str, ...], said: str) -> None:
    assert said in run("receiver", "change", *arguments, expected=Exit.REFUSED).output


def test_every_text_is_in_both_languages_with_the_same_values() -> None:
    for name, phrase in rules._WORDS.items():
        fields = [{one for _, one, _, _ in string.Formatter().parse(text) if one} for text in (phrase.ja, phrase.en)]
        assert fields[0] == fields[1], name
        assert any("\u3040" <= one <= "\u9fff" for one in phrase.ja), name
