"""`camserver retention`: what is kept, and deleting what is past its time."""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from camserver.commands.asking import with_running_server, with_server
from camserver.commands.case_words import say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

WAIT_TURNS = 120
SWEEPS_SHOWN_MAX = 20
_HEADS = {
    "ja": {"kept": ("カメラ", "クラス", "件数", "容量"), "sweeps": ("内容", "理由", "件数", "容量")},
    "en": {"kept": ("CAMERA", "CLASS", "COUNT", "SIZE"), "sweeps": ("WHAT", "WHY", "COUNT", "SIZE")},
}


@click.group()
def retention() -> None:
    """See what is kept, and delete what is past its time."""


@retention.command("show")
@click.option("--now", "count_now", is_flag=True, help="Count now, not as the last round did.")
@json_option
@pass_chosen
def retention_show(chosen: Chosen, count_now: bool, as_json: bool) -> None:
    """Show what is kept, and what was deleted.

    By camera and class, with the last sweeps and how long the disk will do. The figures are those of the last round,
    and the time of it is said; where there was none yet, they are counted now.

    \b
    Examples:
      camserver retention show
      camserver retention show --now
      camserver retention show --json
    """
    found = with_server(chosen, lambda server: _status(server, count_now))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    heads = _HEADS[reader_language()]
    rows = [
        (camera["camera_id"], kept["retention_class"], str(kept["pictures"]), size(kept["bytes"]))
        for camera in found["cameras"]
        for kept in camera["kept"]
    ]
    if rows:
        click.echo(table(heads["kept"], rows))
    _show_sweeps(found["sweeps"][:SWEEPS_SHOWN_MAX])
    kept_bytes = size(sum(kept["bytes"] for kept in found["kept"]))
    click.echo("\n" + _counted(kept_bytes, found["counted_at"]))
    free = say("unknown") if found["free_bytes"] is None else size(found["free_bytes"])
    click.echo(say("free", free=free, floor=size(found["free_min_bytes"])))
    days = found["days_until_floor"]
    if found["free_bytes"] is not None and found["free_bytes"] < found["free_min_bytes"]:
        click.echo(say("below_floor"))
    elif found["round_ended_at"] is not None:
        click.echo(say("steady") if days is None else say("forecast", days=round(days)))


async def _status(server: "LocalServer", count_now: bool) -> dict[str, Any]:
    if not count_now:
        found = await server.get("/api/retention")
        if found["counted_at"] is not None:
            return found
    return await server.get("/api/retention?now=true")


def _counted(kept_bytes: str, counted_at: int) -> str:
    """By this machine's own time zone, as people at its terminal see it."""
    at = datetime.fromtimestamp(counted_at / 1000, UTC).astimezone()
    return say("kept", bytes=kept_bytes, at=at.strftime("%H:%M"), age=age(counted_at, int(time.time() * 1000)))


def _show_sweeps(sweeps: list[dict[str, Any]]) -> None:
    """What was deleted as a table; what could not be is a sentence below it, once."""
    deleted = [one for one in sweeps if one["count"]]
    if deleted:
        rows = [(one["what"], one["reason"], str(one["count"]), size(one["bytes"])) for one in deleted]
        click.echo("\n" + table(_HEADS[reader_language()]["sweeps"], rows))
    for what, reason in dict.fromkeys((one["what"], one["reason"]) for one in sweeps if not one["count"]):
        click.echo(f"\n{what}: {reason}")


@retention.command("run")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted, and why.")
@json_option
@pass_chosen
def retention_run(chosen: Chosen, dry_run: bool, as_json: bool) -> None:
    """Delete what is past its time now.

    Otherwise that is done by the next round, see retention.sweep_minutes.

    \b
    Examples:
      camserver retention run --dry-run
      camserver retention run
    """
    if dry_run:
        found = with_server(chosen, lambda server: server.get("/api/retention/preview"))
        click.echo(json.dumps(found, ensure_ascii=False) if as_json else _forecast(found))
        return
    is_over = with_running_server(chosen, _run)
    click.echo(json.dumps({"over": is_over}) if as_json else say("over" if is_over else "not_over"))


def _forecast(found: dict[str, Any]) -> str:
    if not found["going"]:
        return say("nothing_goes")
    rows = [(one["what"], one["reason"], str(one["count"]), size(one["bytes"])) for one in found["going"]]
    shown = table(_HEADS[reader_language()]["sweeps"], rows)
    return f"{shown}\n\n{say('would_go' if found['whole'] else 'would_go_partly', bytes=size(found['bytes']))}"


async def _run(server: "LocalServer") -> bool:
    """Asks for a round and waits for its end, for some minutes."""
    asked: dict[str, Any] = await server.post("/api/retention/run", {})
    for _ in range(WAIT_TURNS):
        status = await server.get("/api/retention")
        if (status.get("round_ended_at") or 0) >= asked["asked_at"]:
            return True
        await asyncio.sleep(1)
    return False


def size(count: int) -> str:
    """Bytes in the largest unit that says something."""
    for unit, length in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"
