"""`camserver notify`: try receivers, see who would be told of an event and why not, and be silent for a while."""

import asyncio
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput, CheckFailed, NotFound
from camserver.commands.asking import with_running_server, with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.rules import show_preview, show_rules
from camserver.commands.shown import reader_language, table
from camserver.domain.deliveries import TELLING
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

# How long a trial is waited for, and how often it is asked for.
TRIAL_MAX_SEC = 60
LOOK_EVERY_SEC = 0.5
_LENGTH = re.compile(r"([1-9][0-9]{0,6})(s|m|h|d)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_WORDS = {
    "no_receivers": Phrase(
        "通知先がありません。`camserver receiver add` で追加してください。",
        "There is no receiver; add one with: camserver receiver add",
    ),
    "no_snoozes": Phrase("一時停止はありません。", "Nothing is snoozed."),
    "snoozed": Phrase("{until} まで一時停止します（{uuid}）。", "Snoozed until {until} ({uuid})."),
    "ended": Phrase("{count} 件の一時停止を終えました。", "Snoozes ended: {count}."),
    "ok": Phrase("届きました", "arrived"),
    "waiting": Phrase("まだ届いていません", "still on its way"),
    "everything": Phrase("すべて", "everything"),
}
_HEADS: dict[str, dict[str, tuple[str, ...]]] = {
    "trials": {"ja": ("通知先", "種類", "結果"), "en": ("RECEIVER", "KIND", "RESULT")},
    "snoozes": {"ja": ("ID", "対象", "終わり", "理由"), "en": ("ID", "ABOUT", "UNTIL", "REASON")},
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def notify() -> None:
    """Try receivers, see who is told of what, and be silent."""


@notify.command("test")
@click.option("--receiver", "name", metavar="NAME", help="Only this receiver.", show_default="all that are on")
@json_option
@pass_chosen
def notify_test(chosen: Chosen, name: str | None, as_json: bool) -> None:
    """Send a test message and wait until it has arrived.

    \b
    Examples:
      camserver notify test
      camserver notify test --receiver Slack
    """
    results = with_running_server(chosen, lambda server: _tried(server, name))
    if as_json:
        click.echo(json.dumps(results, ensure_ascii=False))
    else:
        rows = [(one["name"], one["kind"], _outcome(one)) for one in results]
        click.echo(table(_HEADS["trials"][reader_language()], rows) if rows else say("no_receivers"))
    failed = [one["name"] for one in results if one["status"] != "done"]
    if failed:
        raise CheckFailed(f"not every test message arrived: {', '.join(failed)}; see: camserver delivery list")


async def _tried(server: "LocalServer", name: str | None) -> list[dict[str, Any]]:
    found = (await server.get("/api/receivers"))["receivers"]
    kinds = {kind.value for kind in TELLING}
    chosen = [
        one for one in found if one["kind"] in kinds and (one["enabled"] if name is None else one["name"] == name)
    ]
    if name is not None and not chosen:
        raise NotFound(f"there is no receiver named {name!r} that messages go to; see: camserver receiver list")
    started = [
        (one, (await server.post(f"/api/receivers/{one['receiver_uuid']}/test", {}))["delivery_uuid"])
        for one in chosen
    ]
    return [await _ended(server, one, delivery_uuid) for one, delivery_uuid in started]


async def _ended(server: "LocalServer", receiver: dict[str, Any], delivery_uuid: str) -> dict[str, Any]:
    """What became of a trial; one that fails is not waited for until it is given up."""
    delivery: dict[str, Any] = {}
    for _ in range(int(TRIAL_MAX_SEC / LOOK_EVERY_SEC)):
        delivery = await server.get(f"/api/deliveries/{delivery_uuid}")
        if delivery["status"] in ("done", "dead", "suppressed", "delayed"):
            break
        await asyncio.sleep(LOOK_EVERY_SEC)
    return {
        "name": receiver["name"],
        "kind": receiver["kind"],
        "status": delivery.get("status"),
        "error": delivery.get("last_error"),
        "delivery_uuid": delivery_uuid,
    }


def _outcome(one: dict[str, Any]) -> str:
    return say("ok") if one["status"] == "done" else str(one["error"] or say("waiting"))


@notify.command("preview")
@click.argument("event")
@json_option
@pass_chosen
def notify_preview(chosen: Chosen, event: str, as_json: bool) -> None:
    """Show who would be told of an event, and why others not.

    It is taken as if the event began now. EVENT is the id in the address of the event's page.

    \b
    Example:
      camserver notify preview 0198c0de-0000-7000-8000-000000000001
    """
    show_preview(chosen, event, as_json)


@notify.command("rules")
@json_option
@pass_chosen
def notify_list_rules(chosen: Chosen, as_json: bool) -> None:
    """List the rules of who is told of what, in their order.

    \b
    Example:
      camserver notify rules
    """
    show_rules(chosen, as_json)


@notify.command("snooze")
@click.option("--for", "length", default="1h", metavar="LENGTH", help="How long: 30m, 2h, 1d.")
@click.option("--camera", metavar="ID", help="Only about this camera.")
@click.option("--site", metavar="NAME", help="Only about this site.")
@click.option("--receiver", "receiver", metavar="NAME", help="Only to this receiver.")
@click.option("--reason", default="", help="Why, for others to read.")
@json_option
@pass_chosen
def notify_snooze(
    chosen: Chosen,
    length: str,
    camera: str | None,
    site: str | None,
    receiver: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Send no notifications for a while.

    Without options nobody is told of anything. What is held back is counted, and the next message says how many
    there were.

    \b
    Examples:
      camserver notify snooze --for 2h --camera entrance --reason "gate is repaired"
      camserver notify snooze --for 30m
    """
    seconds = _seconds(length)

    async def ask(server: "LocalServer") -> dict[str, Any]:
        body = {"duration_sec": seconds, "camera_id": camera, "site": site, "reason": reason}
        if receiver is not None:
            body["receiver_uuid"] = await _receiver_uuid(server, receiver)
        return await server.post("/api/snoozes", body)

    made = with_server(chosen, ask)
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
    else:
        click.echo(say("snoozed", until=_moment(made["until"]), uuid=made["snooze_uuid"]))


@notify.command("snoozes")
@json_option
@pass_chosen
def notify_snoozes(chosen: Chosen, as_json: bool) -> None:
    """List what is silent now.

    \b
    Example:
      camserver notify snoozes
    """
    found = with_server(chosen, lambda server: server.get("/api/snoozes"))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found["snoozes"]:
        click.echo(say("no_snoozes"))
    else:
        rows = [
            (one["snooze_uuid"], _about(one), _moment(one["until"]), one["reason"] or "-") for one in found["snoozes"]
        ]
        click.echo(table(_HEADS["snoozes"][reader_language()], rows))


@notify.command("unsnooze")
@click.argument("snooze_id", required=False)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@json_option
@pass_chosen
def notify_unsnooze(chosen: Chosen, snooze_id: str | None, everything: bool, as_json: bool) -> None:
    """End a snooze by its id, or all of them.

    \b
    Examples:
      camserver notify unsnooze 0198c0de-0000-7000-8000-000000000001
      camserver notify unsnooze --all
    """
    if (snooze_id is None) == (not everything):
        raise BadInput("name one snooze, or say --all; see: camserver notify snoozes")

    async def end(server: "LocalServer") -> int:
        ids = (
            [snooze_id]
            if snooze_id
            else [one["snooze_uuid"] for one in (await server.get("/api/snoozes"))["snoozes"]]
        )
        for one in ids:
            await server.delete(f"/api/snoozes/{quote(str(one), safe='')}")
        return len(ids)

    count = with_server(chosen, end)
    click.echo(json.dumps({"ended": count}) if as_json else say("ended", count=count))


async def _receiver_uuid(server: "LocalServer", name: str) -> str:
    for one in (await server.get("/api/receivers"))["receivers"]:
        if name in (one["name"], one["receiver_uuid"]):
            return str(one["receiver_uuid"])
    raise NotFound(f"there is no receiver named {name!r}; see: camserver receiver list")


def _about(snooze: dict[str, Any]) -> str:
    parts = [snooze["camera_id"] or snooze["site"], snooze["receiver_name"]]
    return " → ".join(part for part in parts if part) or say("everything")


def _seconds(length: str) -> int:
    found = _LENGTH.fullmatch(length.strip())
    if found is None:
        raise BadInput(f"{length!r} is no length of time; write 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def _moment(at_ms: int) -> str:
    """By this machine's own time zone, as people at its terminal see it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
