"""`camserver event`: what was seen."""

import json
from typing import TYPE_CHECKING, Any

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.page_reading import LIMIT_MAX, check_cameras, read_newest
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import lasted, moment, reader_language, table
from camserver.commands.spans import span_options, span_query
from camserver.domain.phrases import Phrase, primary_event_phrase
from camserver.domain.vocabulary import UNKNOWN_EVENT

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_WORDS = {
    "none": Phrase("該当するイベントはありません。", "No such events."),
    "more": Phrase("ほかにもあります。--limit を大きくしてください。", "There are more; raise --limit."),
    "open": Phrase("継続中", "open"),
    "closed": Phrase("終了", "closed"),
}
_HEAD = {
    "ja": ("イベント", "カメラ", "サイト", "内容", "深刻度", "開始", "長さ", "状態", "タグ"),
    "en": ("EVENT", "CAMERA", "SITE", "WHAT", "SEVERITY", "BEGAN", "LASTED", "STATE", "TAGS"),
}
TAGS_SHOWN_MAX = 4


def say(name: str) -> str:
    phrase = _WORDS[name]
    return phrase.ja if reader_language() == "ja" else phrase.en


@click.group()
def event() -> None:
    """See what was seen."""


@event.command("list")
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@click.option("--site", help="Only of this site.", show_default="all sites")
@click.option("--severity", type=click.IntRange(0, 3), default=0, help="Only of this severity or above.")
@click.option("--kind", "kinds", multiple=True,
              help="Only of this primary event, such as human; may be given several times.")  # fmt: skip
@click.option("--unknown", is_flag=True, help="Only those of which nobody could tell what it was.")
@span_options("all times")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=50, help="Most events shown.")
@json_option
@pass_chosen
def event_list(
    chosen: Chosen,
    cameras: tuple[str, ...],
    site: str | None,
    severity: int,
    kinds: tuple[str, ...],
    unknown: bool,
    since: int | None,
    until: int | None,
    hours: float | None,
    limit: int,
    as_json: bool,
) -> None:
    """List events by the time they began, newest first.

    \b
    Examples:
      camserver event list --hours 12
      camserver event list --camera entrance --severity 2
      camserver event list --unknown --since 2026-11-16 --json
    """
    if unknown and kinds:
        raise BadInput(f"--unknown means --kind {UNKNOWN_EVENT}: give one of the two")
    wanted = (UNKNOWN_EVENT,) if unknown else kinds
    query = [*(("camera_id", one) for one in cameras), *(("primary_event", one) for one in wanted)]
    query += [("site", site)] if site is not None else []
    query += [("severity_min", str(severity))] if severity else []
    query += span_query(since, until, hours)

    async def call(server: "LocalServer") -> dict[str, Any]:
        page = await read_newest(server, "/api/events", "events", query, limit)
        if not page["events"]:
            await check_cameras(server, cameras)
        return page

    page = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(page, ensure_ascii=False))
        return
    if not page["events"]:
        click.echo(say("none"), err=True)
        return
    click.echo(table(_HEAD[reader_language()], [_row(one) for one in page["events"]]))
    if page["next_before"] is not None:
        click.echo(say("more"), err=True)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(one["event_uuid"]),
        str(one["camera_id"]),
        str(one["site"]),
        _what(one),
        str(one["severity_max"]),
        moment(one["start_at"]),
        lasted(one["last_seen_at"] - one["start_at"]),
        say(str(one["state"])),
        _tags(one["tags"]),
    )


def _what(one: dict[str, Any]) -> str:
    """The camera's own issue where it is about one, else what was seen."""
    if one["issue"] is not None:
        return str(one["issue"][f"label_{reader_language()}"])
    phrase = primary_event_phrase(str(one["primary_event"]))
    return phrase.ja if reader_language() == "ja" else phrase.en


def _tags(tags: list[dict[str, Any]]) -> str:
    names = [str(tag[f"label_{reader_language()}"]) for tag in tags]
    more = [f"+{len(names) - TAGS_SHOWN_MAX}"] if len(names) > TAGS_SHOWN_MAX else []
    return ", ".join([*names[:TAGS_SHOWN_MAX], *more]) or "-"
