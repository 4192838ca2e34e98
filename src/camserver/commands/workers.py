"""`camserver worker list`, `drain`, `undrain` and `quota`; `camserver camera move`, `pin` and `unpin`."""

import json
import time
from typing import Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.page_reading import read_all
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.phrases import Phrase

_WORDS = {
    "none": Phrase("ワーカーはまだ登録されていません。", "No worker has registered yet."),
    "drained": Phrase(
        "{worker} を退避中にしました。{used} 台のカメラが順に他のワーカーへ移ります。",
        "{worker} is being emptied; its {used} cameras move to others as far as they have room.",
    ),
    "undrained": Phrase("{worker} は再びカメラを受け持ちます。", "{worker} takes cameras again."),
    "moving": Phrase("{camera} を {worker} へ移します。", "{camera} goes to {worker}."),
    "there": Phrase("{camera} はすでに {worker} にあります。", "{camera} is at {worker} already."),
    "pinned": Phrase("{camera} を {worker} に固定しました。", "{camera} is pinned to {worker}."),
    "unpinned": Phrase("{camera} の固定を解除しました。", "{camera} is not pinned any more."),
    "quota": Phrase(
        "同時に動作できるのは {most} 台までです（現在 {running} 台）。",
        "{running} cameras run, at most {most} may.",
    ),
    "no_quota": Phrase("台数の上限はありません（現在 {running} 台）。", "{running} cameras run; there is no quota."),
    "connected": Phrase("接続中", "connected"),
    "away": Phrase("切断", "away"),
    "draining": Phrase("退避中", "draining"),
}
_HEAD = {
    "ja": ("ワーカー", "サイト", "接続", "状態", "カメラ", "ラベル", "最終応答", "バージョン"),
    "en": ("WORKER", "SITE", "LINK", "STATE", "CAMERAS", "LABELS", "SEEN", "VERSION"),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.command("list")
@click.option("-v", "--verbose", is_flag=True, help="Also what each measured last, under its line.")
@json_option
@pass_chosen
def worker_list(chosen: Chosen, verbose: bool, as_json: bool) -> None:
    """List the workers with what they hold and what they could.

    \b
    Examples:
      camserver worker list
      camserver worker list --verbose
      camserver worker list --json
    """
    found = with_server(chosen, lambda server: read_all(server, "/api/workers", "workers"))
    if as_json:
        click.echo(json.dumps({"workers": found}, ensure_ascii=False))
        return
    if not found:
        click.echo(say("none"), err=True)
        return
    now_ms = int(time.time() * 1000)
    click.echo(table(_HEAD[reader_language()], [_row(one, now_ms) for one in sorted(found, key=_by_site)]))
    for one in found if verbose else ():
        measured = ", ".join(f"{name}={value:g}" for name, value in sorted(one["metrics"].items()))
        click.echo(f"{one['worker_id']} ({age(one['metrics_at'], now_ms)}): {measured or '-'}")


def _by_site(one: dict[str, Any]) -> tuple[str, str]:
    return one["site"], one["worker_id"]


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    link = say("connected" if one["is_connected"] else "away")
    if one["is_draining"]:
        link += f" ({say('draining')})"
    labels = ", ".join(f"{name}={value}" for name, value in one["labels"].items())
    return (
        str(one["worker_id"]),
        str(one["site"]),
        link,
        str(one["status"]),
        f"{one['used']}/{one['slots']}",
        labels or "-",
        age(one["last_seen_at"], now_ms),
        str(one["version"] or "-"),
    )


@click.command("drain")
@click.argument("worker_id")
@json_option
@pass_chosen
def worker_drain(chosen: Chosen, worker_id: str, as_json: bool) -> None:
    """Empty a worker: its cameras move to others.

    It gets no further camera until `camserver worker undrain`. Cameras for which no other worker has room stay.

    \b
    Example:
      camserver worker drain shop-1
    """
    _set_drain(chosen, worker_id, "drain", as_json)


@click.command("undrain")
@click.argument("worker_id")
@json_option
@pass_chosen
def worker_undrain(chosen: Chosen, worker_id: str, as_json: bool) -> None:
    """Let a worker take cameras again.

    \b
    Example:
      camserver worker undrain shop-1
    """
    _set_drain(chosen, worker_id, "undrain", as_json)


@click.command("quota")
@click.argument("most", type=click.IntRange(0, 1_000_000), required=False)
@click.option("--none", "without", is_flag=True, help="Any number may run.")
@json_option
@pass_chosen
def worker_quota(chosen: Chosen, most: int | None, without: bool, as_json: bool) -> None:
    """Show or set how many cameras may run at once.

    Those that run go on when the quota falls below them.

    \b
    Examples:
      camserver worker quota
      camserver worker quota 50
      camserver worker quota --none
    """
    if most is not None and without:
        raise BadInput("give a number or --none, not both")
    if most is None and not without:
        found = with_server(chosen, lambda server: server.get("/api/quota"))
    else:
        found = with_server(chosen, lambda server: server.post("/api/quota", {"cameras_running_max": most}))
    limit, running = found["cameras_running_max"], found["running"]
    told = say("no_quota", running=running) if limit is None else say("quota", most=limit, running=running)
    click.echo(json.dumps(found) if as_json else told)


def _set_drain(chosen: Chosen, worker_id: str, what: str, as_json: bool) -> None:
    path = f"/api/workers/{quote(worker_id, safe='')}/{what}"
    done = with_server(chosen, lambda server: server.post(path, {}))
    told = say(f"{what}ed", worker=worker_id, used=done["used"])
    click.echo(json.dumps(done, ensure_ascii=False) if as_json else told)


@click.command("move")
@click.argument("camera_id")
@click.argument("worker_id")
@json_option
@pass_chosen
def camera_move(chosen: Chosen, camera_id: str, worker_id: str, as_json: bool) -> None:
    """Send a camera to another worker of its site, once.

    Its holder stops first. Later it may move again by itself; to keep it there, pin it.

    \b
    Example:
      camserver camera move entrance shop-2
    """
    done = _place(chosen, camera_id, "reassign", worker_id)
    told = say("there" if done["worker_id"] == worker_id else "moving", camera=camera_id, worker=worker_id)
    click.echo(json.dumps(done) if as_json else told)


@click.command("pin")
@click.argument("camera_id")
@click.argument("worker_id")
@json_option
@pass_chosen
def camera_pin(chosen: Chosen, camera_id: str, worker_id: str, as_json: bool) -> None:
    """Let only one worker hold a camera.

    While that worker is away or full, a camera that nobody holds waits for it.

    \b
    Example:
      camserver camera pin entrance shop-2
    """
    done = _place(chosen, camera_id, "pin", worker_id)
    click.echo(json.dumps(done) if as_json else say("pinned", camera=camera_id, worker=worker_id))


@click.command("unpin")
@click.argument("camera_id")
@json_option
@pass_chosen
def camera_unpin(chosen: Chosen, camera_id: str, as_json: bool) -> None:
    """Let any worker of its site hold a camera again.

    \b
    Example:
      camserver camera unpin entrance
    """
    path = f"/api/cameras/{quote(camera_id, safe='')}/pin"
    with_server(chosen, lambda server: server.delete(path))
    click.echo(json.dumps({"unpinned": camera_id}) if as_json else say("unpinned", camera=camera_id))


def _place(chosen: Chosen, camera_id: str, what: str, worker_id: str) -> dict[str, Any]:
    path = f"/api/cameras/{quote(camera_id, safe='')}/{what}"
    return with_server(chosen, lambda server: server.post(path, {"worker_id": worker_id}))
