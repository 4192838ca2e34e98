"""`camserver summary`: the daily summaries."""

import json
from datetime import date
from urllib.parse import urlencode

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language


@click.group()
def summary() -> None:
    """Read the daily summaries."""


def _checked_day(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise click.BadParameter("write a day like 2026-11-16") from None


@summary.command("show")
@click.option("--day", callback=_checked_day, help="The day, YYYY-MM-DD.", show_default="the newest")
@click.option("--site", help="Only this site.", show_default="all sites")
@json_option
@pass_chosen
def summary_show(chosen: Chosen, day: str | None, site: str | None, as_json: bool) -> None:
    """Show the summary of a day, of each site.

    \b
    Examples:
      camserver summary show
      camserver summary show --day 2026-11-16 --site main --json
    """
    query = {name: value for name, value in (("day", day), ("site", site)) if value is not None}
    page = with_server(chosen, lambda server: server.get(f"/api/summaries?{urlencode({**query, 'limit': 100})}"))
    found = page.get("summaries") or []
    newest = [one for one in found if one["day"] == found[0]["day"]]
    if as_json:
        click.echo(json.dumps(newest, ensure_ascii=False))
    elif newest:
        click.echo("\n\n".join("\n".join([one["title"], *one["lines"]]) for one in newest))
    else:
        none = {"ja": "まとめはまだありません。", "en": "There is no summary yet."}
        click.echo(none[reader_language()], err=True)
