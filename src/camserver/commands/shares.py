"""`camserver share`: addresses that open an event or a frame without signing in."""

import json
import time
from typing import Any
from urllib.parse import quote

import click

from camserver.commands.asking import with_server
from camserver.commands.page_reading import read_newest
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.phrases import Phrase
from camserver.domain.shares import SHARES_MAX

DAY_SEC = 86_400
DAYS_MAX = 366
_WORDS = {
    "none": Phrase("共有中のものはありません。", "Nothing is shared."),
    "head": Phrase(
        "ID|種類|対象|カメラ|作成者|残り|開かれた回数|最後に開かれた|メモ",
        "ID|KIND|WHAT|CAMERA|BY|LEFT|OPENED|LAST OPENED|NOTE",
    ),
    "days": Phrase("{days} 日", "{days} d"),
    "endless": Phrase("無期限", "no end"),
    "url": Phrase(
        "このアドレスは一度だけ表示されます。知っている人は誰でも開けます:\n{url}",
        "This address is shown only once; whoever has it can open it:\n{url}",
    ),
    "revoked": Phrase("共有を終了しました。", "The share was revoked."),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def share() -> None:
    """Share events and frames with people who don't sign in."""


@share.command("list")
@json_option
@pass_chosen
def share_list(chosen: Chosen, as_json: bool) -> None:
    """List what is shared, and how often it was opened.

    \b
    Example:
      camserver share list
    """
    found = with_server(chosen, lambda server: read_newest(server, "/api/shares", "shares", [], SHARES_MAX))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found["shares"]:
        click.echo(say("none"), err=True)
    else:
        now_ms = time.time_ns() // 1_000_000
        click.echo(table(say("head").split("|"), [_row(one, now_ms) for one in found["shares"]]))


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    ends = one["expires_at"]
    return (
        one["share_uuid"],
        one["kind"],
        one["uuid"],
        one["camera_id"],
        one["by"],
        say("endless") if ends is None else say("days", days=max(ends - now_ms, 0) // (DAY_SEC * 1000)),
        str(one["opened_count"]),
        age(one["last_opened_at"], now_ms),
        one["note"] or "-",
    )


@share.command("add")
@click.argument("kind", type=click.Choice(("event", "frame")))
@click.argument("uuid")
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=7, help="How long it can be opened.")
@click.option("--endless", is_flag=True, help="Until it is revoked, instead of some days.")
@click.option("--note", default="", help="What it is for; whoever opens it does not see this.")
@json_option
@pass_chosen
def share_add(chosen: Chosen, kind: str, uuid: str, days: int, endless: bool, note: str, as_json: bool) -> None:
    """Share an event with its pictures and clip, or one frame.

    What belongs to a case can't be shared.

    \b
    Examples:
      camserver share add event 0190c1f2-5f0e-7c1a-9a55-1f2d3c4b5a69 --note "for the neighbour"
      camserver share add frame 0190c1f2-5f0e-7c1a-9a55-1f2d3c4b5a69 --days 1
    """
    body = {"kind": kind, "uuid": uuid, "note": note, "ttl_sec": None if endless else days * DAY_SEC}
    added = with_server(chosen, lambda server: server.post("/api/shares", body))
    click.echo(json.dumps(added, ensure_ascii=False) if as_json else say("url", url=added["url"]))


@share.command("revoke")
@click.argument("share_uuid")
@pass_chosen
def share_revoke(chosen: Chosen, share_uuid: str) -> None:
    """End a share at once.

    \b
    Example:
      camserver share revoke 0190c1f2-5f0e-7c1a-9a55-1f2d3c4b5a69
    """
    with_server(chosen, lambda server: server.delete(f"/api/shares/{quote(share_uuid, safe='')}"))
    click.echo(say("revoked"))
