"""`camserver lease`: who holds which camera, and taking one back by hand."""

import json
from typing import Any

import click

from camserver.commands.asking import with_server
from camserver.commands.page_reading import read_all
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase

_WORDS = {
    "none": Phrase("カメラはまだありません。", "There are no cameras yet."),
    "head": Phrase("カメラ|サイト|ワーカー|世代|状態|残り|理由", "CAMERA|SITE|WORKER|GENERATION|STATE|LEFT|REASON"),
    "nobody": Phrase("-", "-"),
    "away": Phrase("{worker}（切断中）", "{worker} (away)"),
    "ran_out": Phrase("期限切れ", "ran out"),
    "left": Phrase("{sec} 秒", "{sec} s"),
    "stopping_state": Phrase("{state}（停止中）", "{state} (stopping)"),
    "free": Phrase("{camera} を受け持っているワーカーはありません。", "Nobody holds {camera}."),
    "stopping": Phrase(
        "{worker} に {camera} の停止を求めました。停止すると割り当て直されます。",
        "{worker} was asked to stop {camera}; it is given out anew when it has.",
    ),
    "reclaimed": Phrase(
        "{camera} を {worker} から取り上げました。受け持てる次のワーカーに割り当てられます。",
        "{camera} was taken back from {worker}; the next worker that may have it gets it.",
    ),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def lease() -> None:
    """See who holds which camera, and take one back."""


@lease.command("list")
@json_option
@pass_chosen
def lease_list(chosen: Chosen, as_json: bool) -> None:
    """List who holds each camera, and for how long.

    \b
    Examples:
      camserver lease list
      camserver lease list --json
    """
    found = with_server(chosen, lambda server: read_all(server, "/api/leases", "leases"))
    if as_json:
        click.echo(json.dumps({"leases": found}, ensure_ascii=False))
    elif not found:
        click.echo(say("none"), err=True)
    else:
        click.echo(table(say("head").split("|"), [_row(one) for one in found]))


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    worker = one["worker_id"]
    if worker is not None and not one["is_holder_connected"]:
        worker = say("away", worker=worker)
    left = "-"
    if one["left_ms"] is not None:
        left = say("left", sec=one["left_ms"] // 1000) if one["left_ms"] else say("ran_out")
    state = say("stopping_state", state=one["state"]) if one["is_stopping"] else one["state"]
    return (
        str(one["camera_id"]),
        str(one["site"]),
        worker or say("nobody"),
        str(one["generation"]),
        state,
        left,
        str(one["reason"] or "-"),
    )


@lease.command("reclaim")
@click.argument("camera_id")
@click.option("--force", is_flag=True, help="Also from a worker that is connected, without asking it to stop first.")
@json_option
@pass_chosen
def lease_reclaim(chosen: Chosen, camera_id: str, force: bool, as_json: bool) -> None:
    """Take a camera back from its worker.

    It is given out anew. A worker that is connected is asked to stop first. From one that is away the camera is taken
    at once, without waiting for its lease to run out; do that when you know that the worker is gone.

    \b
    Examples:
      camserver lease reclaim entrance
      camserver lease reclaim entrance --force
    """
    body = {"camera_id": camera_id, "force": force}
    done = with_server(chosen, lambda server: server.post("/api/leases/reclaim", body))
    told = say(done["outcome"], camera=camera_id, worker=done["lease"]["worker_id"])
    click.echo(json.dumps(done, ensure_ascii=False) if as_json else told)
