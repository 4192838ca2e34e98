"""`camserver incident`: what people review, and reviewing it.

A review is a person's own, so whoever reviews signs in with login and password for it; the token that commands
otherwise use belongs to nobody.
"""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.secrets import Secret
from camserver.commands.asking import password_from_stdin, with_server
from camserver.commands.page_reading import LIMIT_MAX, check_cameras, read_newest
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import lasted, moment, reader_language, table
from camserver.commands.spans import span_options, span_query
from camserver.domain.phrases import Phrase, primary_event_phrase

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_WORDS = {
    "none": Phrase("該当するインシデントはありません。", "No such incidents."),
    "more": Phrase("ほかにもあります。--limit を大きくしてください。", "There are more; raise --limit."),
    "password": Phrase("{login} のパスワード", "Password of {login}"),
    "reviewed": Phrase(
        "{incident} を {login} さんの確認済みにしました。", "{incident} is marked as reviewed by {login}."
    ),
    "unreviewed": Phrase(
        "{incident} の {login} さんの確認を取り消しました。", "{login}'s review of {incident} is undone."
    ),
    "nobody": Phrase("未確認", "nobody"),
    "people": Phrase("{count} 人", "{count}"),
}
_HEAD = {
    "ja": ("インシデント", "カメラ", "サイト", "最後の内容", "深刻度", "開始", "長さ", "イベント", "確認した人"),
    "en": ("INCIDENT", "CAMERA", "SITE", "LAST SEEN", "SEVERITY", "BEGAN", "LASTED", "EVENTS", "REVIEWED BY"),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def incident() -> None:
    """See incidents, and mark them as reviewed."""


@incident.command("list")
@click.option("--camera", "cameras", multiple=True, help="Only of this camera; may be given several times.")
@click.option("--site", help="Only of this site.", show_default="all sites")
@click.option("--severity", type=click.IntRange(0, 3), default=0, help="Only of this severity or above.")
@click.option("--reviewed/--unreviewed", default=None, help="Only what somebody has reviewed, or what nobody has.")
@span_options("all times")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=50, help="Most incidents shown.")
@json_option
@pass_chosen
def incident_list(
    chosen: Chosen,
    cameras: tuple[str, ...],
    site: str | None,
    severity: int,
    reviewed: bool | None,
    since: int | None,
    until: int | None,
    hours: float | None,
    limit: int,
    as_json: bool,
) -> None:
    """List incidents by the time they began, newest first.

    \b
    Examples:
      camserver incident list --unreviewed --severity 2
      camserver incident list --camera entrance --hours 24
      camserver incident list --json
    """
    query = [("camera_id", one) for one in cameras]
    query += [("site", site)] if site is not None else []
    query += [("severity_min", str(severity))] if severity else []
    query += [("reviewed", "true" if reviewed else "false")] if reviewed is not None else []
    query += span_query(since, until, hours)

    async def call(server: "LocalServer") -> dict[str, Any]:
        page = await read_newest(server, "/api/incidents", "incidents", query, limit)
        if not page["incidents"]:
            await check_cameras(server, cameras)
        return page

    page = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(page, ensure_ascii=False))
        return
    if not page["incidents"]:
        click.echo(say("none"), err=True)
        return
    click.echo(table(_HEAD[reader_language()], [_row(one) for one in page["incidents"]]))
    if page["next_before"] is not None:
        click.echo(say("more"), err=True)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    phrase = primary_event_phrase(str(one["primary_event"] or "-"))
    return (
        str(one["incident_uuid"]),
        str(one["camera_id"]),
        str(one["site"]),
        phrase.ja if reader_language() == "ja" else phrase.en,
        str(one["severity_max"]),
        moment(one["start_at"]),
        lasted(one["last_seen_at"] - one["start_at"]),
        str(one["event_count"]),
        say("people", count=one["reviewers"]) if one["reviewers"] else say("nobody"),
    )


@incident.command("review")
@click.argument("incident_uuids", metavar="INCIDENT...", nargs=-1, required=True)
@click.option("--login", required=True, help="Who reviews: the name you sign in with.")
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it."
)
@click.option("--undo", is_flag=True, help="Take your review back.")
@json_option
@pass_chosen
def incident_review(
    chosen: Chosen, incident_uuids: tuple[str, ...], login: str, password_stdin: bool, undo: bool, as_json: bool
) -> None:
    """Mark incidents as reviewed by you.

    As it is now: when an incident becomes more severe, or another event joins it, it is unreviewed again. A review is
    a person's own, so you sign in for it and are signed out afterwards.

    \b
    Examples:
      camserver incident review INCIDENT --login owner
      camserver incident review INCIDENT --login owner --undo
      camserver incident review INCIDENT INCIDENT --login owner --password-stdin < password
    """
    password = password_from_stdin(password_stdin)
    if password is None:
        password = Secret(click.prompt(say("password", login=login), hide_input=True, err=True))
    done: list[dict[str, Any]] = []

    async def call(server: "LocalServer") -> None:
        async with server.signed_in(login, password) as person:
            for uuid in dict.fromkeys(incident_uuids):
                path = f"/api/incidents/{quote(uuid, safe='')}/review"
                done.append(await person.delete(path) if undo else await person.post(path, {}))

    try:
        with_server(chosen, call)
    finally:
        # Those before one that failed are done.
        told = say_each(done, login, undo) if not as_json else []
        for line in told:
            click.echo(line)
    if as_json:
        click.echo(json.dumps({"incidents": done}, ensure_ascii=False))


def say_each(done: list[dict[str, Any]], login: str, undo: bool) -> list[str]:
    name = "unreviewed" if undo else "reviewed"
    return [say(name, incident=one["incident_uuid"], login=login) for one in done]
