"""`camserver user`: who may sign in, and what they reach."""

import json
import time
from typing import Any
from urllib.parse import quote

import click

from camserver.commands.asking import password_from_stdin, with_server
from camserver.commands.page_reading import read_all
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.people import RANKS
from camserver.domain.phrases import Phrase

ROLES = tuple(role.value for role in RANKS)
_WORDS = {
    "none": Phrase(
        "まだ誰もいません。camserver setup-link で管理者を作ってください。",
        "There is nobody yet; make the administrator with: camserver setup-link",
    ),
    "head": Phrase("ログイン|名前|役割|担当|状態|最終利用", "LOGIN|NAME|ROLE|REACHES|STATE|LAST SEEN"),
    "all": Phrase("すべて", "everything"),
    "nothing": Phrase("なし", "nothing"),
    "off": Phrase("停止中", "switched off"),
    "invited": Phrase("パスワード未設定", "no password yet"),
    "on": Phrase("有効", "on"),
    "added": Phrase("{login} を追加しました。", "{login} was added."),
    "link": Phrase(
        "次のリンクを本人に渡してください。3 日以内に一度だけ使えます:\n  {url}",
        "Give this link to that person; it works once, within three days:\n  {url}",
    ),
    "changed": Phrase("{login} を変更しました。", "{login} was changed."),
    "removed": Phrase("{login} を削除しました。", "{login} was removed."),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def _address(login: str) -> str:
    return f"/api/users/{quote(login, safe='')}"


@click.group()
def user() -> None:
    """See and change who may sign in."""


@user.command("list")
@json_option
@pass_chosen
def user_list(chosen: Chosen, as_json: bool) -> None:
    """List the people, their roles and what they reach.

    \b
    Examples:
      camserver user list
      camserver user list --json
    """
    found = with_server(chosen, lambda server: read_all(server, "/api/users", "users"))
    if as_json:
        click.echo(json.dumps({"users": found}, ensure_ascii=False))
    elif not found:
        click.echo(say("none"), err=True)
    else:
        now_ms = time.time_ns() // 1_000_000
        click.echo(table(say("head").split("|"), [_row(one, now_ms) for one in found]))


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    grants = one["grants"]
    reaches = say("all") if grants is None else ", ".join([*grants["sites"], *grants["camera_ids"]]) or say("nothing")
    state = say("off" if one["disabled"] else "on" if one["has_password"] or one["oidc_subject"] else "invited")
    return (one["login"], one["display_name"], one["role"], reaches, state, age(one["last_seen_at"], now_ms))


@user.command("add")
@click.argument("login")
@click.option("--role", type=click.Choice(ROLES), default="viewer", help="What they may do.")
@click.option("--name", help="How they are called.", show_default="the login")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Of pages and messages.")
@click.option("--site", "sites", multiple=True, help="Only this site; can be given several times.")
@click.option("--camera", "cameras", multiple=True, help="Only this camera; can be given several times.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; make no link.")
@click.option("--oidc-subject", help="Who they are at the OpenID Connect provider (sub); make no link.")
@json_option
@pass_chosen
def user_add(
    chosen: Chosen,
    login: str,
    role: str,
    name: str | None,
    language: str | None,
    sites: tuple[str, ...],
    cameras: tuple[str, ...],
    password_stdin: bool,
    oidc_subject: str | None,
    as_json: bool,
) -> None:
    """Add somebody.

    The answer is a link with which that person chooses a password. Without --site and --camera they reach everything.

    \b
    Examples:
      camserver user add tanaka --role site_manager --site main
      camserver user add guard --camera entrance --camera gate
    """
    password = password_from_stdin(password_stdin)
    body: dict[str, Any] = {"login": login, "role": role, "display_name": name or ""}
    body["language"] = language or reader_language()
    if sites or cameras:
        body["grants"] = {"sites": list(sites), "camera_ids": list(cameras)}
    if password is not None:
        body["password"] = password.reveal()
    if oidc_subject is not None:
        body["oidc_subject"] = oidc_subject
    added = with_server(chosen, lambda server: server.post("/api/users", body))
    if as_json:
        click.echo(json.dumps(added, ensure_ascii=False))
        return
    click.echo(say("added", login=added["user"]["login"]))
    if added["password_link"] is not None:
        click.echo(say("link", url=added["password_link"]["url"]))


@user.command("change")
@click.argument("login")
@click.option("--role", type=click.Choice(ROLES), help="What they may do.")
@click.option("--name", help="How they are called.")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Of pages and messages.")
@click.option("--site", "sites", multiple=True, help="Only this site; replaces what was granted before.")
@click.option("--camera", "cameras", multiple=True, help="Only this camera; replaces what was granted before.")
@click.option("--all-sites", is_flag=True, help="They reach everything again.")
@click.option("--off/--on", "disabled", default=None, help="Switch them off or on.")
@click.option("--oidc-subject", help="Who they are at the OpenID Connect provider (sub); an empty one unlinks.")
@json_option
@pass_chosen
def user_change(
    chosen: Chosen,
    login: str,
    role: str | None,
    name: str | None,
    language: str | None,
    sites: tuple[str, ...],
    cameras: tuple[str, ...],
    all_sites: bool,
    disabled: bool | None,
    oidc_subject: str | None,
    as_json: bool,
) -> None:
    """Change somebody's role, name or reach, or switch them off.

    It holds from their next request on; who is switched off is signed out everywhere.

    \b
    Examples:
      camserver user change guard --site main --site depot
      camserver user change tanaka --off
      camserver user change tanaka --oidc-subject 9f1c2b7e
    """
    if all_sites and (sites or cameras):
        raise click.UsageError("--all-sites does not go with --site and --camera; leave one out")
    wanted: dict[str, Any] = {"role": role, "display_name": name, "language": language, "disabled": disabled}
    wanted["oidc_subject"] = oidc_subject
    body: dict[str, Any] = {key: value for key, value in wanted.items() if value is not None}
    if all_sites:
        body["all_sites"] = True
    if sites or cameras:
        body["grants"] = {"sites": list(sites), "camera_ids": list(cameras)}
    if not body:
        raise click.UsageError("nothing to change; see camserver user change --help")
    changed = with_server(chosen, lambda server: server.patch(_address(login), body))
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", login=changed["login"]))


@user.command("reset")
@click.argument("login")
@json_option
@pass_chosen
def user_reset(chosen: Chosen, login: str, as_json: bool) -> None:
    """Make a link with which somebody chooses a new password.

    The present password works until the link is used; then every sign-in of that person ends.

    \b
    Example:
      camserver user reset tanaka
    """
    link = with_server(chosen, lambda server: server.post(f"{_address(login)}/password-link", {}))
    click.echo(json.dumps(link) if as_json else say("link", url=link["url"]))


@user.command("remove")
@click.argument("login")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_chosen
def user_remove(chosen: Chosen, login: str, yes: bool) -> None:
    """Remove somebody, with their sign-ins and tokens.

    What they did stays in the audit log.

    \b
    Example:
      camserver user remove tanaka
    """
    if not yes:
        click.confirm(f"{login}?", abort=True)
    with_server(chosen, lambda server: server.delete(_address(login)))
    click.echo(say("removed", login=login))
