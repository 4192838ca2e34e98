"""`camserver statistics`: figures by hour or day."""

import json
from typing import Any
from urllib.parse import urlencode

import click

from camserver.commands.asking import with_server
from camserver.commands.retention import size
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import moment, reader_language, table
from camserver.commands.spans import span_options, span_query
from camserver.domain.phrases import Phrase, primary_event_phrase
from camserver.domain.statistics import hour_of

_WORDS = {
    "none": Phrase("この期間に集計されたものはありません。", "Nothing was counted in this time."),
    "total": Phrase("合計", "total"),
}
_HEAD = {
    "ja": ("期間", "撮影", "失敗", "解析", "検知", "不明", "イベント", "最大深刻度", "容量", "内訳"),
    "en": ("WHEN", "LOOKS", "FAILED", "ANALYZED", "DETECTED", "UNKNOWN", "EVENTS", "SEVERITY", "SIZE", "KINDS"),
}
_SUMMED = ("looks", "looks_failed", "analyzed", "detected", "unknown", "events")


def say(name: str) -> str:
    phrase = _WORDS[name]
    return phrase.ja if reader_language() == "ja" else phrase.en


@click.command("statistics")
@click.option("--by", type=click.Choice(["hour", "day"]), default="hour", help="What one line is.")
@span_options("24 hours; by day, 30 days")
@click.option("--site", help="Only of this site.", show_default="all sites")
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@json_option
@pass_chosen
def statistics(
    chosen: Chosen,
    by: str,
    since: int | None,
    until: int | None,
    hours: float | None,
    site: str | None,
    cameras: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show looks, detections and events by hour or day.

    Of all cameras that are asked for together. Days are those of the sites' own time; hours and days in which nothing
    was counted are left out. At most 32 days by hour or 367 by day.

    \b
    Examples:
      camserver statistics
      camserver statistics --by day --site main
      camserver statistics --hours 6 --camera entrance --json
    """
    span = dict(span_query(since, until, hours))
    if hours is not None:
        # Whole hours are counted: the one that has begun then belongs to it.
        span["from"] = str(hour_of(int(span["from"])))
    query = [("by", by), *span.items(), *(("camera_id", one) for one in cameras)]
    query += [("site", site)] if site is not None else []
    found = with_server(chosen, lambda server: server.get(f"/api/statistics?{urlencode(query)}"))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    buckets = found["buckets"]
    if not buckets:
        click.echo(say("none"), err=True)
        return
    rows = [_row(one["day"] or moment(one["start_at"])[:-3], one) for one in buckets]
    if len(buckets) > 1:
        rows.append(_row(say("total"), _total(buckets)))
    click.echo(table(_HEAD[reader_language()], rows))


def _row(when: str, one: dict[str, Any]) -> tuple[str, ...]:
    kinds = [f"{_kind(name)} {count}" for name, count in sorted(one["by_event"].items(), key=lambda pair: -pair[1])]
    return (
        when,
        *(str(one[name]) for name in _SUMMED),
        str(one["severity_max"]) if one["events"] else "-",
        size(one["bytes"]),
        ", ".join(kinds) or "-",
    )


def _kind(primary_event: str) -> str:
    phrase = primary_event_phrase(primary_event)
    return phrase.ja if reader_language() == "ja" else phrase.en


def _total(buckets: list[dict[str, Any]]) -> dict[str, Any]:
    by_event: dict[str, int] = {}
    for one in buckets:
        for name, count in one["by_event"].items():
            by_event[name] = by_event.get(name, 0) + count
    sums: dict[str, Any] = {name: sum(one[name] for one in buckets) for name in (*_SUMMED, "bytes")}
    return {**sums, "severity_max": max(one["severity_max"] for one in buckets), "by_event": by_event}
