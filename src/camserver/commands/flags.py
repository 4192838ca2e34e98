"""`camserver flag`: feature flags by site, such as the style of assignment."""

import json
from typing import Any

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase

NAMES = ("assignment.style", "assignment.shadow")
VALUES = ("spread", "pack")
_WORDS = {
    "none": Phrase("設定されたフラグはありません。", "No flag is set."),
    "all": Phrase("すべてのサイト", "all sites"),
    "head": Phrase("フラグ|サイト|値", "FLAG|SITE|VALUE"),
}


def say(name: str) -> str:
    phrase = _WORDS[name]
    return phrase.ja if reader_language() == "ja" else phrase.en


@click.group()
def flag() -> None:
    """See and set feature flags by site."""


@flag.command("list")
@json_option
@pass_chosen
def flag_list(chosen: Chosen, as_json: bool) -> None:
    """List the flags that are set.

    \b
    Example:
      camserver flag list
    """
    _show(with_server(chosen, lambda server: server.get("/api/flags")), as_json)


@flag.command("set")
@click.argument("name", type=click.Choice(NAMES))
@click.argument("value", type=click.Choice(VALUES))
@click.option("--site", help="Only for this site.", show_default="all sites")
@json_option
@pass_chosen
def flag_set(chosen: Chosen, name: str, value: str, site: str | None, as_json: bool) -> None:
    """Set a flag.

    assignment.style chooses how cameras are given to workers; assignment.shadow has another style decide as well,
    only to log what it would do otherwise.

    \b
    Examples:
      camserver flag set assignment.shadow pack
      camserver flag set assignment.style pack --site main
    """
    body = {"name": name, "site": site, "value": value}
    _show(with_server(chosen, lambda server: server.post("/api/flags", body)), as_json)


@flag.command("clear")
@click.argument("name", type=click.Choice(NAMES))
@click.option("--site", help="Only for this site.", show_default="all sites")
@json_option
@pass_chosen
def flag_clear(chosen: Chosen, name: str, site: str | None, as_json: bool) -> None:
    """Clear a flag.

    \b
    Example:
      camserver flag clear assignment.shadow
    """
    body = {"name": name, "site": site, "value": None}
    _show(with_server(chosen, lambda server: server.post("/api/flags", body)), as_json)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif found["flags"]:
        rows = [(one["name"], one["site"] or say("all"), one["value"]) for one in found["flags"]]
        click.echo(table(tuple(say("head").split("|")), rows))
    else:
        click.echo(say("none"), err=True)
