"""`camserver rule`: the rules of who is told of what, and what they would do with an event."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import click

from camserver.base.errors import BadInput, NotFound
from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

F = TypeVar("F", bound=Callable[..., Any])
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NOTHING = "none"  # --quiet-through none: nothing gets through
_WORDS = {
    "no_receivers": Phrase(
        "通知先がありません。`camserver receiver add` で追加してください。",
        "There is no receiver; add one with: camserver receiver add",
    ),
    "no_rules": Phrase(
        "ルールはありません。通知すべきことはすべての通知先に送られます。",
        "There are no rules: everything notable goes to every receiver.",
    ),
    "everything": Phrase("すべて", "everything"),
    "all": Phrase("すべて", "all"),
    "nobody": Phrase("誰にも送らない", "nobody"),
    "added": Phrase("ルール「{name}」を追加しました。", "Added the rule {name}."),
    "changed": Phrase("ルール「{name}」を変更しました。", "Changed the rule {name}."),
    "removed": Phrase("ルール「{name}」を削除しました。", "Removed the rule {name}."),
    "first": Phrase(
        "これが最初のルールです。どのルールにも当てはまらないものは、今後は誰にも送られません。",
        "This is the first rule: what fits no rule is told to nobody from now on.",
    ),
}
_HEADS: dict[str, dict[str, tuple[str, ...]]] = {
    "preview": {"ja": ("通知先", "種類", "判定", "ルール"), "en": ("RECEIVER", "KIND", "VERDICT", "RULE")},
    "rules": {
        "ja": ("順", "名前", "状態", "対象", "最低重要度", "静かな時間帯", "通知先"),
        "en": ("NO", "NAME", "STATE", "ABOUT", "SEVERITY", "QUIET", "RECEIVERS"),
    },
}


def say(word: str, /, **values: object) -> str:
    phrase = _WORDS[word]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def rule() -> None:
    """Say who is told of what, and try it out."""


@rule.command("list")
@json_option
@pass_chosen
def rule_list(chosen: Chosen, as_json: bool) -> None:
    """List the rules of who is told of what, in their order.

    \b
    Examples:
      camserver rule list
      camserver rule list --json
    """
    show_rules(chosen, as_json)


def _about_options(command: F) -> F:
    """What a rule can say, for adding and changing alike."""
    for option in reversed(
        (
            click.option("--site", "sites", multiple=True, metavar="NAME",
                         help="Only this site; may be given several times."),
            click.option("--camera", "cameras", multiple=True, metavar="ID",
                         help="Only this camera; may be given several times."),
            click.option("--event", "events", multiple=True, metavar="NAME",
                         help="Only this primary event, such as human; may be given several times."),
            click.option("--min-severity", type=click.IntRange(0, 3), help="The least severity it is about.",
                         show_default="0"),
            click.option("--receiver", "receivers", multiple=True, metavar="NAME",
                         help="Whom it names; may be given several times.", show_default="all"),
            click.option("--nobody", is_flag=True, help="It names nobody: what fits is told to no one."),
            click.option("--quiet", metavar="FROM-TO", help="Quiet hours by the site's clock, e.g. 22:00-07:00."),
            click.option("--quiet-days", metavar="DAYS", help="On which they begin, e.g. mon,tue.",
                         show_default="every day"),
            click.option("--quiet-through", type=click.Choice(["0", "1", "2", "3", NOTHING]),
                         help="The severity that gets through all the same.", show_default="3"),
            click.option("--on/--off", "enabled", default=None, help="Whether it counts.", show_default="on"),
            click.option("--position", type=click.IntRange(1), help="Its place among the rules.",
                         show_default="last"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@rule.command("add")
@click.argument("name")
@_about_options
@json_option
@pass_chosen
def rule_add(chosen: Chosen, /, name: str, as_json: bool, position: int | None, **given: Any) -> None:
    """Add a rule.

    For each receiver the first rule that fits and names the receiver decides; what fits none is told to nobody.
    Most messages an hour are a receiver's, see camserver receiver change; cooldowns are settings, see [notify].

    \b
    Examples:
      camserver rule add office --receiver office --quiet 22:00-07:00 --quiet-days mon,tue,wed,thu,fri
      camserver rule add "car park, hazards" --camera car_park --event hazard
      camserver rule add "car park, rest" --camera car_park --nobody
    """
    body = {"name": name, **_values(given, None)}

    async def call(server: "LocalServer") -> tuple[dict[str, Any], bool]:
        made = await server.post("/api/notify/rules", body)
        if position is not None:
            await _place(server, made["rule_uuid"], position)
        return made, len((await server.get("/api/notify/rules"))["rules"]) == 1

    made, is_first = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
        return
    click.echo(say("added", name=name))
    if is_first:
        click.echo(say("first"), err=True)


@rule.command("change")
@click.argument("which")
@click.option("--name", help="Another name.")
@_about_options
@click.option("--all-sites", is_flag=True, help="About every site again.")
@click.option("--all-cameras", is_flag=True, help="About every camera again.")
@click.option("--all-events", is_flag=True, help="About every event again.")
@click.option("--all-receivers", is_flag=True, help="It names all receivers again.")
@click.option("--no-quiet", is_flag=True, help="Without quiet hours.")
@json_option
@pass_chosen
def rule_change(
    chosen: Chosen, /, which: str, name: str | None, as_json: bool, position: int | None, **given: Any
) -> None:
    """Change a rule; what is not given stays as it is.

    WHICH is its number, name or id as camserver rule list shows it.

    \b
    Examples:
      camserver rule change office --quiet 20:00-07:00
      camserver rule change 2 --min-severity 2
      camserver rule change office --all-cameras --position 1
    """

    async def call(server: "LocalServer") -> dict[str, Any]:
        found = await _found(server, which)
        body = {**({"name": name} if name else {}), **_values(given, found["quiet"])}
        changed = await server.patch(f"/api/notify/rules/{quote(found['rule_uuid'], safe='')}", body)
        if position is not None:
            await _place(server, found["rule_uuid"], position)
        return changed

    changed = with_server(chosen, call)
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", name=changed["name"]))


@rule.command("remove")
@click.argument("which")
@pass_chosen
def rule_remove(chosen: Chosen, which: str) -> None:
    """Remove a rule, by its number, name or id.

    \b
    Example:
      camserver rule remove office
    """

    async def call(server: "LocalServer") -> str:
        found = await _found(server, which)
        await server.delete(f"/api/notify/rules/{quote(found['rule_uuid'], safe='')}")
        return str(found["name"])

    click.echo(say("removed", name=with_server(chosen, call)))


@rule.command("test")
@click.argument("event")
@json_option
@pass_chosen
def rule_test(chosen: Chosen, event: str, as_json: bool) -> None:
    """Show whom an event would reach, and why not the others.

    Nothing is sent. It is taken as if the event began now. EVENT is the id in the address of the event's page.

    \b
    Example:
      camserver rule test 0198c0de-0000-7000-8000-000000000001
    """
    show_preview(chosen, event, as_json)


# ---------------------------------------------------------------------------------------------------------------
# What is said of a rule on the command line
# ---------------------------------------------------------------------------------------------------------------


_NAMING = (
    ("sites", "sites", "--site"),
    ("cameras", "camera_ids", "--camera"),
    ("events", "primary_events", "--event"),
    ("receivers", "receivers", "--receiver"),
)


def _values(given: Mapping[str, Any], quiet: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is given of a rule, as the API takes it; the server knows the rest. `quiet` are its hours until now."""
    found: dict[str, Any] = {name: given[name] for name in ("enabled", "min_severity") if given[name] is not None}
    for option, field, shown in _NAMING:
        if given[option] and given.get(f"all_{option}"):
            raise BadInput(f"{shown} and --all-{option} exclude each other")
        if given[option] or given.get(f"all_{option}"):
            found[field] = list(given[option]) or None
    if given["nobody"]:
        if "receivers" in found:
            raise BadInput("--nobody and receivers exclude each other")
        found["receivers"] = []
    return found | _quiet(given, quiet)


def _quiet(given: Mapping[str, Any], was: Mapping[str, Any] | None) -> dict[str, Any]:
    details = given["quiet_days"] is not None or given["quiet_through"] is not None
    if given.get("no_quiet"):
        if given["quiet"] or details:
            raise BadInput("--no-quiet and other options of quiet hours exclude each other")
        return {"quiet": None}
    if given["quiet"] is None and not details:
        return {}
    quiet: dict[str, Any] = dict(was or {})
    if given["quiet"] is not None:
        begin, sign, end = given["quiet"].partition("-")
        if not sign:
            raise BadInput(f"{given['quiet']!r} is not FROM-TO; write for example --quiet 22:00-07:00")
        quiet |= {"from": begin.strip(), "to": end.strip()}
    if details and not quiet:
        raise BadInput("say when it is quiet with --quiet FROM-TO")
    if given["quiet_days"] is not None:
        quiet["days"] = _days(given["quiet_days"])
    if given["quiet_through"] is not None:
        quiet["through_severity"] = None if given["quiet_through"] == NOTHING else int(given["quiet_through"])
    return {"quiet": quiet}


def _days(text: str) -> list[int]:
    named = [one.strip().lower()[:3] for one in text.split(",") if one.strip()]
    if not named or any(one not in DAYS for one in named):
        raise BadInput(f"{text!r} are no days; write them as {', '.join(DAYS)}")
    return sorted({DAYS.index(one) for one in named})


async def _found(server: "LocalServer", which: str) -> dict[str, Any]:
    """A rule by its number, name or id."""
    rules: list[dict[str, Any]] = (await server.get("/api/notify/rules"))["rules"]
    named = [one for one in rules if which in (one["name"], one["rule_uuid"])]
    if not named and which.isascii() and which.isdigit() and 1 <= int(which) <= len(rules):
        named = [rules[int(which) - 1]]
    if not named:
        raise NotFound(f"there is no rule {which!r}; see: camserver rule list")
    if len(named) > 1:
        raise BadInput(f"several rules are named {which!r}; name one by its number, see: camserver rule list")
    return named[0]


async def _place(server: "LocalServer", rule_uuid: str, position: int) -> None:
    rules = (await server.get("/api/notify/rules"))["rules"]
    order = [one["rule_uuid"] for one in rules if one["rule_uuid"] != rule_uuid]
    order.insert(position - 1, rule_uuid)
    await server.post("/api/notify/rules/order", {"rule_uuids": order})


# ---------------------------------------------------------------------------------------------------------------
# Shown
# ---------------------------------------------------------------------------------------------------------------


def show_rules(chosen: Chosen, as_json: bool) -> None:
    async def ask(server: "LocalServer") -> tuple[dict[str, Any], dict[str, str]]:
        rules = await server.get("/api/notify/rules")
        receivers = await server.get("/api/receivers")
        return rules, {one["receiver_uuid"]: one["name"] for one in receivers["receivers"]}

    found, names = with_server(chosen, ask)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found["rules"]:
        click.echo(say("no_rules"))
    else:
        rows = [_row(number, one, names) for number, one in enumerate(found["rules"], 1)]
        click.echo(table(_HEADS["rules"][reader_language()], rows))


def _row(number: int, rule: dict[str, Any], names: dict[str, str]) -> tuple[str, ...]:
    about = [one for part in ("sites", "camera_ids", "primary_events") for one in rule[part] or ()]
    receivers = rule["receivers"]
    return (
        str(number),
        rule["name"],
        "on" if rule["enabled"] else "off",
        ", ".join(about) or say("everything"),
        f">= {rule['min_severity']}",
        _quiet_words(rule["quiet"]),
        say("all")
        if receivers is None
        else ", ".join(names.get(one, one) for one in receivers) or (say("nobody") if not rule["gone"] else "-"),
    )


def _quiet_words(quiet: dict[str, Any] | None) -> str:
    if quiet is None:
        return "-"
    days = "" if len(quiet["days"]) == len(DAYS) else " " + ",".join(DAYS[day] for day in quiet["days"])
    return f"{quiet['from']}-{quiet['to']}{days}"


def show_preview(chosen: Chosen, event: str, as_json: bool) -> None:
    found = with_server(chosen, lambda server: server.get(f"/api/notify/preview?{urlencode({'event': event})}"))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    language = reader_language()
    receivers = found["receivers"]
    if not receivers:
        click.echo(say("no_receivers"))
        return
    rows = [(one["name"], one["kind"], one["why"][f"label_{language}"], one["rule"] or "-") for one in receivers]
    click.echo(table(_HEADS["preview"][language], rows))
    told = [one for one in receivers if one["verdict"] == "send"]
    shown = next((one for one in told if one["language"] == language), (told or receivers)[0])
    click.echo("\n" + "\n".join((shown["title"], *shown["lines"])))
