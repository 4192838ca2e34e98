"""`camserver search`: find events by time, place, what was seen, case and text."""

import json
import re
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase, primary_event_phrase

_WORDS = {
    "none": Phrase("該当するイベントはありません。", "No such events."),
    "more": Phrase("ほかにもあります。--before {cursor} で続きを表示します。", "There are more: --before {cursor}"),
    "cut": Phrase(
        "該当するメモが多すぎるため、すべての案件は調べていません。言葉を増やしてください。",
        "So many notes match that not all cases were followed; give more words.",
    ),
    "counted": Phrase("新しい順に {count} 件を集計", "Counted: the newest {count}"),
    "counted_all": Phrase("全 {count} 件を集計", "Counted: all {count}"),
}
_HEADS = {
    "ja": ("開始", "カメラ", "サイト", "種別", "重大度", "タグ", "イベント"),
    "en": ("BEGAN", "CAMERA", "SITE", "WHAT", "SEVERITY", "TAGS", "EVENT"),
}
_FACETS = {
    "sites": Phrase("サイト", "Sites"),
    "cameras": Phrase("カメラ", "Cameras"),
    "primary_events": Phrase("種別", "What"),
    "tags": Phrase("タグ", "Tags"),
    "severities": Phrase("重大度", "Severity"),
    "unknown": Phrase("不明", "Unknown"),
    "days": Phrase("日", "Days"),
}
_UNITS_SEC = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# One request looks at a bounded number of events; a page that stays empty is asked on for so often.
ROUNDS_MAX = 20
FACET_SHOWN_MAX = 10


class Moment(click.ParamType[int]):
    """A time as people write it: 2h (ago), 2026-03-01, 2026-03-01T18:30, in the machine's own time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if found := re.fullmatch(r"([0-9]{1,6})([smhd])", value):
            return int(time.time() * 1000) - int(found[1]) * _UNITS_SEC[found[2]] * 1000
        try:
            moment = datetime.fromisoformat(value)
            return int((moment if moment.tzinfo else moment.astimezone()).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no time; write 2h (ago), 2026-03-01 or 2026-03-01T18:30", param, ctx)


MOMENT = Moment()


def say(name: str, **values: object) -> str:
    return _chosen(_WORDS[name]).format(**values)


def _chosen(phrase: Phrase) -> str:
    return phrase.ja if reader_language() == "ja" else phrase.en


@click.command()
@click.argument("text", required=False)
@click.option("--from", "from_ms", type=MOMENT, help="Events that began then or later: 2h, 2026-03-01T18:30.")
@click.option("--to", "to_ms", type=MOMENT, help="Events that began earlier.")
@click.option("--site", "sites", multiple=True, help="Only of this site; may be given several times.")
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@click.option("--event", "events", multiple=True, help="Only this primary event; may be given several times.")
@click.option("--tag", "tags", multiple=True, help="Only with this tag; all that are given.")
@click.option("--severity", type=click.IntRange(0, 3), default=0, help="At least this severe.")
@click.option("--unknown/--known", default=None, help="Only with, or without, something unknown.")
@click.option("--case", help="Only what is in this case.")
@click.option("--facets", is_flag=True, help="Count sites, cameras, tags and so on instead.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="Most events shown.")
@click.option("--before", help="Go on where a list ended.")
@json_option
@pass_chosen
def search(
    chosen: Chosen,
    text: str | None,
    from_ms: int | None,
    to_ms: int | None,
    sites: tuple[str, ...],
    cameras: tuple[str, ...],
    events: tuple[str, ...],
    tags: tuple[str, ...],
    severity: int,
    unknown: bool | None,
    case: str | None,
    facets: bool,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """Search events, newest first.

    TEXT is looked for in memos of the language model and in notes of cases. All options must fit.

    \b
    Examples:
      camserver search --from 2d --severity 2
      camserver search "赤い服" --camera entrance
      camserver search --tag carry.bag --tag top_color.red --json
      camserver search --from 2026-03-01 --to 2026-03-02 --facets
    """
    query = [
        *(("site", one) for one in sites),
        *(("camera_id", one) for one in cameras),
        *(("primary_event", one) for one in events),
        *(("tag", one) for one in tags),
    ]
    single = {"from": from_ms, "to": to_ms, "severity_min": severity or None, "case": case, "text": text}
    query += [(name, str(value)) for name, value in single.items() if value is not None]
    if unknown is not None:
        query.append(("unknown", "true" if unknown else "false"))
    if facets:
        found = with_server(chosen, lambda server: server.get(f"/api/search/facets?{urlencode(query)}"))
        click.echo(json.dumps(found, ensure_ascii=False) if as_json else _facets(found))
        return
    page = _page(chosen, query, limit, before)
    if as_json:
        click.echo(json.dumps(page, ensure_ascii=False))
        return
    if not page["events"]:
        click.echo(say("none"), err=True)
    else:
        click.echo(table(_HEADS[reader_language()], [_row(one) for one in page["events"]]))
    if page["is_cut"]:
        click.echo(say("cut"), err=True)
    if page["next_before"]:
        click.echo(say("more", cursor=page["next_before"]), err=True)


def _page(chosen: Chosen, query: list[tuple[str, str]], limit: int, before: str | None) -> dict[str, Any]:
    """A page as full as it can be: the server may answer with part of one, and where to go on."""
    page: dict[str, Any] = {"events": [], "next_before": before, "is_cut": False}
    for _ in range(ROUNDS_MAX):
        left = str(limit - len(page["events"]))
        place = [] if page["next_before"] is None else [("before", page["next_before"])]
        more = _ask(chosen, urlencode([*query, ("limit", left), *place]))
        page = {**more, "events": [*page["events"], *more["events"]]}
        if page["next_before"] is None or len(page["events"]) >= limit:
            break
    return page


def _ask(chosen: Chosen, query: str) -> dict[str, Any]:
    return with_server(chosen, lambda server: server.get(f"/api/search?{query}"))


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    began = datetime.fromtimestamp(one["start_at"] / 1000, UTC).astimezone()
    label = "label_ja" if reader_language() == "ja" else "label_en"
    what = one["issue"][label] if one["issue"] else _chosen(primary_event_phrase(one["primary_event"]))
    return (
        began.strftime("%Y-%m-%d %H:%M:%S"),
        str(one["camera_id"]),
        str(one["site"]),
        str(what),
        str(one["severity_max"]),
        " ".join(tag["id"] for tag in one["tags"]) or "-",
        str(one["event_uuid"]),
    )


def _facets(found: dict[str, Any]) -> str:
    lines = [say("counted_all" if found["is_complete"] else "counted", count=found["counted"])]
    for name, phrase in _FACETS.items():
        values = [f"{one['value']} {one['count']}" for one in found[name][:FACET_SHOWN_MAX]]
        more = "" if len(found[name]) <= FACET_SHOWN_MAX else ", …"
        lines.append(f"{_chosen(phrase)}: {', '.join(values) or '-'}{more}")
    return "\n".join(lines)
