"""`camserver site`: where cameras and workers are."""

import json
from typing import Any
from urllib.parse import quote

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase

_WORDS = {
    "none": Phrase("サイトはありません。", "There is no site."),
    "head": Phrase("サイト|タイムゾーン|カメラ|ワーカー", "SITE|TIME ZONE|CAMERAS|WORKERS"),
    "added": Phrase("サイト {site} を追加しました。", "The site {site} was added."),
    "changed": Phrase("サイト {site} を変更しました。", "The site {site} was changed."),
    "removed": Phrase("サイト {site} を削除しました。", "The site {site} was removed."),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def _address(name: str) -> str:
    return f"/api/sites/{quote(name, safe='')}"


@click.group()
def site() -> None:
    """See and change the sites."""


@site.command("list")
@json_option
@pass_chosen
def site_list(chosen: Chosen, as_json: bool) -> None:
    """List the sites.

    \b
    Example:
      camserver site list
    """
    found: dict[str, Any] = with_server(chosen, lambda server: server.get("/api/sites"))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found["sites"]:
        click.echo(say("none"), err=True)
    else:
        rows = [(one["name"], one["timezone"], str(one["cameras"]), str(one["workers"])) for one in found["sites"]]
        click.echo(table(say("head").split("|"), rows))


@site.command("add")
@click.argument("name")
@click.option("--timezone", default="UTC", help="For local times, such as Asia/Tokyo.")
@json_option
@pass_chosen
def site_add(chosen: Chosen, name: str, timezone: str, as_json: bool) -> None:
    """Add a site.

    \b
    Example:
      camserver site add depot --timezone Asia/Tokyo
    """
    added = with_server(chosen, lambda server: server.post("/api/sites", {"name": name, "timezone": timezone}))
    click.echo(json.dumps(added, ensure_ascii=False) if as_json else say("added", site=added["name"]))


@site.command("change")
@click.argument("name")
@click.option("--rename", help="A new name.")
@click.option("--timezone", help="For local times, such as Asia/Tokyo.")
@json_option
@pass_chosen
def site_change(chosen: Chosen, name: str, rename: str | None, timezone: str | None, as_json: bool) -> None:
    """Rename a site or set its time zone.

    \b
    Examples:
      camserver site change main --timezone Asia/Tokyo
      camserver site change main --rename headquarters
    """
    body = {key: value for key, value in (("name", rename), ("timezone", timezone)) if value is not None}
    if not body:
        raise click.UsageError("nothing to change; see camserver site change --help")
    changed = with_server(chosen, lambda server: server.patch(_address(name), body))
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", site=changed["name"]))


@site.command("remove")
@click.argument("name")
@pass_chosen
def site_remove(chosen: Chosen, name: str) -> None:
    """Remove a site that has neither cameras nor workers that run.

    Evidence from there stays as long as it is kept.

    \b
    Example:
      camserver site remove depot
    """
    with_server(chosen, lambda server: server.delete(_address(name)))
    click.echo(say("removed", site=name))
