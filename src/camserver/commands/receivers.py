"""`camserver receiver`: the places that messages and copies go to."""

import json
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput, CheckFailed, NotFound
from camserver.commands.asking import with_running_server, with_server
from camserver.commands.delivery_words import head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.deliveries import ReceiverKind

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

LOOK_EVERY_SEC = 0.5
# A receiver that has not answered by then is slow, away or refused; its delivery goes on.
PATIENCE_SEC = 30.0
WHY_MAX_CHARS = 60


@click.group()
def receiver() -> None:
    """Manage where messages and copies go."""


@receiver.command("add")
@click.argument("name")
@click.argument("kind", type=click.Choice([kind.value for kind in ReceiverKind]))
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of its kind; see the guide.")
@click.option("--secrets-stdin", is_flag=True, help="Read its secrets from standard input, a line NAME=VALUE each.")
@click.option("--language", type=click.Choice(["ja", "en"]), default="ja", help="Language of its messages.")
@click.option("--hourly-cap", type=click.IntRange(1, 100_000), help="Most messages an hour.", show_default="no cap")
@json_option
@pass_chosen
def receiver_add(
    chosen: Chosen,
    name: str,
    kind: str,
    settings: tuple[str, ...],
    secrets_stdin: bool,
    language: str,
    hourly_cap: int | None,
    as_json: bool,
) -> None:
    """Add a receiver.

    Secrets, such as a webhook's address, are read from standard input or asked for, never from the command line.

    \b
    Examples:
      camserver receiver add office webhook --secrets-stdin < hook.env
      camserver receiver add ops email --set host=mail.example.org --set sender=cams@example.org \\
        --set to='["ops@example.org"]'
      camserver receiver add disk folder --set path=/mnt/archive
    """
    asked = {
        "name": name,
        "kind": kind,
        "config": dict(_setting(one) for one in settings),
        "secrets": _secrets(kind, secrets_stdin),
        "language": language,
        "hourly_cap": hourly_cap,
    }
    made = with_server(chosen, lambda server: server.post("/api/receivers", asked))
    click.echo(json.dumps(made, ensure_ascii=False) if as_json else say("added", name=name))


def _setting(given: str) -> tuple[str, Any]:
    """JSON where it is some, such as true, 25 or a list; else the text itself."""
    name, sign, value = given.partition("=")
    if not sign or not name.strip():
        raise BadInput(f"{given!r} is not NAME=VALUE")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def _secrets(kind: str, from_stdin: bool) -> dict[str, str]:
    from camserver.wire.api.receivers import SECRETS, secret_names

    if from_stdin:
        return _stdin_secrets()
    if ReceiverKind(kind) not in SECRETS or not sys.stdin.isatty():
        return {}
    asked: dict[str, str] = {}
    for name, required in secret_names(ReceiverKind(kind)).items():
        value = click.prompt(
            name, hide_input=True, default="" if not required else None, show_default=False, err=True
        )
        if value:
            asked[name] = value
    return asked


def _stdin_secrets() -> dict[str, str]:
    lines = [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    if any("=" not in line for line in lines):
        raise BadInput("standard input must hold a line NAME=VALUE for each secret")
    return {line.partition("=")[0].strip(): line.partition("=")[2] for line in lines}


@receiver.command("list")
@json_option
@pass_chosen
def receiver_list(chosen: Chosen, as_json: bool) -> None:
    """List the receivers, and how they did lately.

    \b
    Examples:
      camserver receiver list
      camserver receiver list --json
    """
    found = with_server(chosen, lambda server: server.get("/api/receivers"))["receivers"]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    if not found:
        click.echo(say("no_receivers"), err=True)
        return
    now_ms = int(time.time() * 1000)
    click.echo(table(head("receivers"), [_row(one, now_ms) for one in found]))


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    ok_at, error_at = one["last_ok_at"], one["last_error_at"]
    failing = error_at is not None and (ok_at is None or error_at > ok_at)
    return (
        str(one["name"]),
        str(one["kind"]),
        say("on") if one["enabled"] else say("off"),
        age(ok_at, now_ms),
        f"{age(error_at, now_ms)}: {one['last_error'] or ''}"[:WHY_MAX_CHARS] if failing else "-",
    )


@receiver.command("test")
@click.argument("name")
@json_option
@pass_chosen
def receiver_test(chosen: Chosen, name: str, as_json: bool) -> None:
    """Send a trial to a receiver and wait for the outcome.

    \b
    Example:
      camserver receiver test office
    """

    async def call(server: "LocalServer") -> dict[str, Any]:
        found = await find(server, name)
        started = await server.post(f"/api/receivers/{found['receiver_uuid']}/test", {})
        return await over(server, started["delivery_uuid"])

    ended = with_running_server(chosen, call)
    if as_json:
        click.echo(json.dumps(ended, ensure_ascii=False))
    if ended["status"] != "done":
        why = (ended["last_error"] or "no answer yet").rstrip(" ;.")
        # Without --all only what was given up is listed.
        given_up = ended["status"] == "dead"
        raise CheckFailed(
            f"the trial did not arrive at {name}: {why}; {'it was given up' if given_up else 'it is tried again'}, "
            f"see: camserver delivery list{'' if given_up else ' --all'} --receiver {shlex.quote(name)}"
        )
    if not as_json:
        click.echo(say("arrived", name=name))


async def over(server: "LocalServer", delivery_uuid: str) -> dict[str, Any]:
    """A delivery when it is over, was put off, or has taken too long."""
    import asyncio

    deadline = time.monotonic() + PATIENCE_SEC
    while True:
        found = await server.get(f"/api/deliveries/{quote(delivery_uuid, safe='')}")
        if found["status"] not in ("queued", "running") or time.monotonic() > deadline:
            return found
        await asyncio.sleep(LOOK_EVERY_SEC)


@receiver.command("change")
@click.argument("name")
@click.option("--name", "new_name", help="Another name.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of its kind; others stay.")
@click.option("--unset", "unset", multiple=True, metavar="NAME", help="A setting that goes back to its default.")
@click.option("--secrets-stdin", is_flag=True, help="Read secrets to change from standard input, NAME=VALUE a line.")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Language of its messages.")
@click.option("--hourly-cap", type=click.IntRange(1, 100_000), help="Most messages an hour.")
@click.option("--no-cap", is_flag=True, help="As many messages as there are.")
@json_option
@pass_chosen
def receiver_change(
    chosen: Chosen,
    name: str,
    new_name: str | None,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    secrets_stdin: bool,
    language: str | None,
    hourly_cap: int | None,
    no_cap: bool,
    as_json: bool,
) -> None:
    """Change a receiver; what is not given stays as it is.

    \b
    Examples:
      camserver receiver change office --hourly-cap 20
      camserver receiver change ops --set to='["ops@example.org", "night@example.org"]'
      camserver receiver change office --secrets-stdin < hook.env
    """
    if no_cap and hourly_cap is not None:
        raise BadInput("--hourly-cap and --no-cap exclude each other")
    change: dict[str, Any] = {"name": new_name, "language": language, "hourly_cap": hourly_cap}
    change = {key: value for key, value in change.items() if value is not None}
    if no_cap:
        change["hourly_cap"] = None
    if secrets_stdin:
        change["secrets"] = _stdin_secrets()
    if not change and not settings and not unset:
        raise BadInput("say what is to change, see: camserver receiver change --help")

    async def call(server: "LocalServer") -> dict[str, Any]:
        found = await find(server, name)
        if settings or unset:
            kept = {key: value for key, value in (found["config"] or {}).items() if key not in unset}
            change["config"] = kept | dict(_setting(one) for one in settings)
        return await server.patch(f"/api/receivers/{found['receiver_uuid']}", change)

    changed = with_server(chosen, call)
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", name=changed["name"]))


@receiver.command("enable")
@click.argument("name")
@pass_chosen
def receiver_enable(chosen: Chosen, name: str) -> None:
    """Switch a receiver on.

    \b
    Example:
      camserver receiver enable office
    """
    _switch(chosen, name, True)


@receiver.command("disable")
@click.argument("name")
@pass_chosen
def receiver_disable(chosen: Chosen, name: str) -> None:
    """Switch a receiver off.

    Nothing goes to it, and what is on its way is not sent.

    \b
    Example:
      camserver receiver disable office
    """
    _switch(chosen, name, False)


def _switch(chosen: Chosen, name: str, on: bool) -> None:
    async def call(server: "LocalServer") -> None:
        found = await find(server, name)
        await server.patch(f"/api/receivers/{found['receiver_uuid']}", {"enabled": on})

    with_server(chosen, call)
    click.echo(say("switched_on" if on else "switched_off", name=name))


@receiver.command("remove")
@click.argument("name")
@pass_chosen
def receiver_remove(chosen: Chosen, name: str) -> None:
    """Remove a receiver. What was on its way to it is given up.

    \b
    Example:
      camserver receiver remove office
    """

    async def call(server: "LocalServer") -> None:
        found = await find(server, name)
        await server.delete(f"/api/receivers/{found['receiver_uuid']}")

    with_server(chosen, call)
    click.echo(say("removed", name=name))


async def find(server: "LocalServer", name: str) -> dict[str, Any]:
    """A receiver by its name or uuid."""
    found: list[dict[str, Any]] = (await server.get("/api/receivers"))["receivers"]
    for one in found:
        if name in (one["name"], one["receiver_uuid"]):
            return one
    there = ", ".join(str(one["name"]) for one in found) or say("none_there")
    raise NotFound(
        f"「{name}」という送り先はありません。あるもの: {there}"
        if reader_language() == "ja"
        else f"there is no receiver {name}; there are: {there}"
    )
