"""`camserver token`: tokens with which programs use the API."""

import json
import time
from typing import Any
from urllib.parse import quote

import click

from camserver.commands.asking import with_server
from camserver.commands.page_reading import read_all
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.domain.people import TOKEN_DAYS, TOKEN_DAYS_MAX, Permission
from camserver.domain.phrases import Phrase

DAY_MS = 86_400_000
SCOPES = tuple(one.value for one in Permission if one is not Permission.CAPTURE)
_WORDS = {
    "none": Phrase("有効なトークンはありません。", "There is no token."),
    "head": Phrase(
        "ID|名前|ログイン|できること|残り|最終利用|アドレス", "ID|NAME|LOGIN|GOOD FOR|LEFT|LAST USED|ADDRESS"
    ),
    "days": Phrase("{days} 日", "{days} d"),
    "secret": Phrase(
        "トークンはこの一度だけ表示されます。安全な場所に保存してください:\n{secret}",
        "This is shown only once; keep it in a safe place:\n{secret}",
    ),
    "revoked": Phrase("トークンを無効にしました。", "The token was revoked."),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def token() -> None:
    """Make and revoke tokens for programs."""


@token.command("list")
@json_option
@pass_chosen
def token_list(chosen: Chosen, as_json: bool) -> None:
    """List the tokens that work.

    \b
    Example:
      camserver token list
    """
    found = with_server(chosen, lambda server: read_all(server, "/api/tokens", "tokens"))
    if as_json:
        click.echo(json.dumps({"tokens": found}, ensure_ascii=False))
    elif not found:
        click.echo(say("none"), err=True)
    else:
        now_ms = time.time_ns() // 1_000_000
        click.echo(table(say("head").split("|"), [_row(one, now_ms) for one in found]))


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    return (
        one["token_uuid"],
        one["name"],
        one["login"],
        ", ".join(one["scopes"]),
        say("days", days=max(one["expires_at"] - now_ms, 0) // DAY_MS),
        age(one["last_used_at"], now_ms),
        one["last_address"] or "-",
    )


@token.command("add")
@click.argument("name")
@click.option("--user", required=True, help="Login of whom it stands for; it never may more than they.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), default=["read"], help="What it is good for."
)
@click.option("--days", type=click.IntRange(1, TOKEN_DAYS_MAX), default=TOKEN_DAYS, help="How long it works.")
@json_option
@pass_chosen
def token_add(chosen: Chosen, name: str, user: str, scopes: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make a token for a program.

    The program sends it as `Authorization: Bearer …`. Make a user of its own for each program that should reach less
    than you.

    \b
    Examples:
      camserver token add exporter --user robot
      camserver token add importer --user robot --scope read --scope manage_cameras --days 30
    """
    body = {"name": name, "user": user, "scopes": list(scopes), "days": days}
    added = with_server(chosen, lambda server: server.post("/api/tokens", body))
    click.echo(json.dumps(added, ensure_ascii=False) if as_json else say("secret", secret=added["secret"]))


@token.command("revoke")
@click.argument("token_uuid")
@pass_chosen
def token_revoke(chosen: Chosen, token_uuid: str) -> None:
    """End a token at once.

    \b
    Example:
      camserver token revoke 0190c1f2-5f0e-7c1a-9a55-1f2d3c4b5a69
    """
    with_server(chosen, lambda server: server.delete(f"/api/tokens/{quote(token_uuid, safe='')}"))
    click.echo(say("revoked"))
