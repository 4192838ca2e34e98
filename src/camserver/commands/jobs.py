"""`camserver job`: analysis jobs that wait or were given up, and the analyzers."""

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.jobs import REASONS, JobStatus
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_WORDS = {
    "none": Phrase("該当するジョブはありません。", "No such jobs."),
    "more": Phrase("ほかにもあります。--limit を大きくしてください。", "There are more; raise --limit."),
    "requeued": Phrase("{count} 件をキューに戻しました。", "Queued again: {count}."),
    "more_left": Phrase("まだ残っています。もう一度実行してください。", "More are left; run it again."),
    "no_analyzer": Phrase("ディスパッチャーが動いていません。", "No dispatcher runs."),
    "standing": Phrase("解析: {standing}", "Analysis: {standing}"),
    "silent": Phrase("応答なし", "not heard"),
    "waiting": Phrase("待ち: {count} 件", "Waiting: {count}"),
    "given_up": Phrase("あきらめた件数: {dead} 失敗、{skipped} 見送り", "Given up: {dead} dead, {skipped} skipped"),
}
_STANDINGS = {
    "working": Phrase("進行中", "working"),
    "idle": Phrase("待機中", "idle"),
    "stalled": Phrase("停滞", "stalled"),
}
_HEADS: dict[str, dict[str, tuple[str, ...]]] = {
    "jobs": {
        "ja": ("フレーム", "カメラ", "状態", "試行", "経過", "理由"),
        "en": ("FRAME", "CAMERA", "STATUS", "TRIES", "AGE", "WHY"),
    },
    "analyzers": {
        "ja": ("解析器", "ディスパッチャー", "報告", "状態", "処理中", "上限", "応答", "最後のエラー"),
        "en": ("ANALYZER", "DISPATCHER", "HEARD", "STATE", "BUSY", "LIMIT", "LATENCY", "LAST ERROR"),
    },
}
WHY_CHARS_MAX = 80
# Dispatchers tell of their analyzers every few seconds.
SILENT_AFTER_MS = 20_000


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def job() -> None:
    """See to analysis jobs and to how the analyzers stand."""


@job.command("list")
@click.option("--status", "statuses", multiple=True, type=click.Choice([one.value for one in JobStatus]),
              help="Only jobs in this state; may be given several times.", show_default="dead")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Jobs in every state.")
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@click.option("--reason", type=click.Choice(REASONS), help="Only those that failed for this.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="Most jobs shown.")
@json_option
@pass_chosen
def job_list(
    chosen: Chosen,
    statuses: tuple[str, ...],
    everything: bool,
    cameras: tuple[str, ...],
    reason: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, newest first.

    Without options those that failed for good.

    \b
    Examples:
      camserver job list
      camserver job list --status delayed --camera entrance
      camserver job list --reason unreadable_image --json
    """
    if everything and statuses:
        raise BadInput("--all shows every state, --status only some: give one of the two")
    wanted = () if everything else statuses or (JobStatus.DEAD.value,)
    query = [("limit", str(limit)), *(("status", one) for one in wanted), *(("camera_id", one) for one in cameras)]
    if reason is not None:
        query.append(("reason", reason))
    page = with_server(chosen, lambda server: server.get(f"/api/jobs?{urlencode(query)}"))
    if as_json:
        click.echo(json.dumps(page, ensure_ascii=False))
        return
    now_ms = int(time.time() * 1000)
    if not page["jobs"]:
        click.echo(say("none"), err=True)
        return
    click.echo(table(_HEADS["jobs"][reader_language()], [_job_row(one, now_ms) for one in page["jobs"]]))
    if page.get("next_before"):
        click.echo(say("more"), err=True)


def _job_row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    return (
        str(one["frame_uuid"]),
        str(one["camera_id"]),
        str(one["status"]),
        str(one["attempt"]),
        age(one["captured_at"], now_ms),
        str(one["error"] or "-")[:WHY_CHARS_MAX],
    )


@job.command("requeue")
@click.argument("frame_uuid", required=False)
@click.option("--status", "statuses", multiple=True, type=click.Choice(["dead", "skipped"]),
              help="Jobs in this state; may be given twice.", show_default="dead")  # fmt: skip
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@click.option("--reason", type=click.Choice(REASONS), help="Only those that failed for this.")
@click.option("--limit", type=click.IntRange(1, 1000), default=1000, help="Most jobs queued again.")
@click.option("--all", "everything", is_flag=True, help="All that failed, where no other option narrows.")
@json_option
@pass_chosen
def job_requeue(
    chosen: Chosen,
    frame_uuid: str | None,
    statuses: tuple[str, ...],
    cameras: tuple[str, ...],
    reason: str | None,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """Queue jobs again that were given up.

    One by its frame, or those that fit the options. Their attempts and their age begin anew.

    \b
    Examples:
      camserver job requeue 0198c0de-0000-7000-8000-000000000001
      camserver job requeue --reason broken_answer
      camserver job requeue --all
    """
    narrows = bool(statuses or cameras or reason)
    if frame_uuid is not None and (narrows or everything):
        raise BadInput("name one frame or give options, not both")
    if frame_uuid is None and not (narrows or everything):
        raise BadInput("name a frame, or say which jobs by --status, --camera, --reason or --all")

    async def call(server: "LocalServer") -> dict[str, Any]:
        if frame_uuid is not None:
            await server.post(f"/api/jobs/{quote(frame_uuid, safe='')}/requeue", {})
            return {"requeued": 1, "more": False}
        asked = {"camera_ids": list(cameras), "reason": reason, "limit": limit}
        return await server.post("/api/jobs/requeue", {"statuses": list(statuses) or ["dead"], **asked})

    done = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(done))
        return
    click.echo(say("requeued", count=done["requeued"]))
    if done["more"]:
        click.echo(say("more_left"), err=True)


@job.command("status")
@json_option
@pass_chosen
def job_status(chosen: Chosen, as_json: bool) -> None:
    """Show how analysis gets on and how each analyzer stands.

    \b
    Examples:
      camserver job status
      camserver job status --json
    """

    async def call(server: "LocalServer") -> dict[str, Any]:
        return {**await server.get("/api/jobs/status"), "counts": await server.get("/api/jobs/counts")}

    status = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(status, ensure_ascii=False))
        return
    language = reader_language()
    standing = _STANDINGS[status["standing"]]
    counts = status["counts"]["statuses"]
    click.echo(say("standing", standing=standing.ja if language == "ja" else standing.en))
    click.echo(say("waiting", count=sum(status["unfinished_jobs"].values())))
    click.echo(say("given_up", dead=counts["dead"], skipped=counts["skipped"]))
    if status["analyzers"]:
        click.echo(
            table(_HEADS["analyzers"][language], [_analyzer_row(one, status["now"]) for one in status["analyzers"]])
        )
    else:
        click.echo(say("no_analyzer"), err=True)


def _analyzer_row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    latency = one["latency_ms"]
    # A dispatcher that died says nothing any more; the server leaves it out after a minute.
    silent = now_ms - one["seen_at"] > SILENT_AFTER_MS
    return (
        str(one["url"] or "-"),
        str(one["dispatcher"] or "-"),
        age(one["seen_at"], now_ms),
        say("silent") if silent else str(one["state"]),
        str(one["in_flight"]),
        str(one["concurrency"]),
        "-" if latency is None else f"{latency} ms",
        str(one["last_error"] or "-")[:WHY_CHARS_MAX],
    )
