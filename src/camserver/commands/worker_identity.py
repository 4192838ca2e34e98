"""`camserver worker token`, `enroll` and `revoke`: workers at other sites."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS = {
    "token": Phrase(
        "サイト {site} のトークンです。{minutes} 分以内に 1 回だけ使えます。"
        "ワーカーのマシンで次を実行し、入力してください:\n"
        "  camserver worker enroll https://このサーバー:{port} --token-stdin",
        "A token for site {site}; it works once, within {minutes} minutes. On the worker's machine run this and "
        "enter it:\n  camserver worker enroll https://THIS-SERVER:{port} --token-stdin",
    ),
    "ask": Phrase("トークン", "Token"),
    "enrolled": Phrase(
        "サイト {site} のワーカー {worker} として登録しました。鍵と証明書は {path} にあります。"
        "次の設定で起動します:\n"
        "  CAMSERVER_WORKER_SERVER_URL={url} camserver worker run",
        "Enrolled as worker {worker} of site {site}; key and certificate are in {path}. It runs with:\n"
        "  CAMSERVER_WORKER_SERVER_URL={url} camserver worker run",
    ),
    "revoked": Phrase(
        "{worker} の証明書を失効させました（{count} 件）。接続はすぐに切れます。",
        "{count} certificates of {worker} are revoked; it is disconnected at once.",
    ),
}
# A file that holds a token and nothing else.
TOKEN_FILE_MAX_CHARS = 1000


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.command("token")
@click.option("--site", help="Site of the worker, by name or id.", show_default="the only one there is")
@click.option("--name", "worker_id", help="Name the worker gets; one of that name is replaced.")
@click.option("--ttl", "ttl_sec", type=click.IntRange(60, 604_800), help="Seconds it works.", show_default="1 hour")
@json_option
@pass_chosen
def worker_token(chosen: Chosen, site: str | None, worker_id: str | None, ttl_sec: int | None, as_json: bool) -> None:
    """Make a one-time token that lets a worker at another site in.

    The token itself is the only line on standard output. It needs `[control] tls_port` on the server.

    \b
    Examples:
      camserver worker token --site shop
      camserver worker token --site shop --name till-1 --ttl 600 > token.txt
    """
    body = {"site": site, "worker_id": worker_id, "ttl_sec": ttl_sec}
    made = with_server(chosen, lambda server: server.post("/api/workers/enrolments", body))
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
        return
    minutes = max(1, round((made["expires_at"] / 1000 - time.time()) / 60))
    port = chosen.settings().control.tls_port
    click.echo(say("token", site=made["site"], minutes=minutes, port=port), err=True)
    click.echo(made["token"])


@click.command("revoke")
@click.argument("worker_id")
@json_option
@pass_chosen
def worker_revoke(chosen: Chosen, worker_id: str, as_json: bool) -> None:
    """Shut a worker out at once: its certificates end.

    It is disconnected and not let in again. Its cameras move to others when their leases run out, within two minutes.
    To bring it back, enroll it again.

    \b
    Example:
      camserver worker revoke shop-1
    """
    path = f"/api/workers/{quote(worker_id, safe='')}/revoke"
    done = with_server(chosen, lambda server: server.post(path, {}))
    told = say("revoked", worker=worker_id, count=done["certificates"])
    click.echo(json.dumps(done) if as_json else told)


@click.command("enroll")
@click.argument("server_url")
@click.option("--token", help="The token; others on this machine can see it, so rather use one of the next two.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), help="Read the token from a file.")
@click.option("--name", "worker_id", help="Name of this worker.", show_default="worker.name")
@click.option("--replace", is_flag=True, help="Replace the identity that this worker has.")
@json_option
@pass_chosen
def worker_enroll(
    chosen: Chosen,
    server_url: str,
    token: str | None,
    token_stdin: bool,
    token_file: Path | None,
    worker_id: str | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Make this machine a worker of a server elsewhere.

    It gets a certificate for a token of `camserver worker token`. The key is made here and stays here. The token says
    which server is the right one; nothing is sent to another.

    \b
    Examples:
      camserver worker enroll https://cams.example.com:8443
      camserver worker enroll https://cams.example.com:8443 --name shop-1 --token-file token.txt
    """
    from camserver.care.ownership import handed_over
    from camserver.services.worker import enrolling, identity_file
    from camserver.wire.enrolment import Token

    settings = chosen.settings()
    folder = settings.worker.identity_dir
    if not replace and identity_file.path_in(folder).exists():
        raise BadInput(
            f"this worker was enrolled already ({identity_file.path_in(folder)}); use --replace to do it anew"
        )
    given = Token.parse(_token_text(token, token_stdin, token_file))
    name = worker_id or settings.worker.name
    enrolled, site = asyncio.run(enrolling.enroll(server_url, given, name))
    with handed_over(settings, with_objects=False):
        identity_file.write(folder, enrolled)
    path = identity_file.path_in(folder)
    if as_json:
        told: dict[str, Any] = {"worker_id": name, "site": site, "identity": str(path), "server_url": server_url}
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        click.echo(say("enrolled", worker=name, site=site, path=path, url=server_url))


def _token_text(token: str | None, from_stdin: bool, file: Path | None) -> str:
    if (token is not None) + from_stdin + (file is not None) > 1:
        raise BadInput("give the token once: with --token, --token-stdin or --token-file")
    if token is not None:
        return token
    if file is not None:
        try:
            with file.open() as opened:
                return opened.read(TOKEN_FILE_MAX_CHARS)
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"the token can't be read from {file} ({type(error).__name__})") from None
    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline(TOKEN_FILE_MAX_CHARS)
    asked: str = click.prompt(say("ask"), hide_input=True, err=True)
    return asked
