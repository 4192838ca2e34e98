"""`camserver credentials rotate`."""

import json
from typing import TYPE_CHECKING, Any

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_WORDS = {
    "begun": Phrase("新しい鍵 {key} を作りました。", "Made a new key, {key}."),
    "resumed": Phrase("鍵 {key} への移行を続けます。", "Going on with key {key}."),
    "done": Phrase(
        "{moved} 件の認証情報を新しい鍵で暗号化し直しました。古い鍵は credential_key_previous として残ります。",
        "{moved} stored passwords are under the new key. The old one stays as credential_key_previous.",
    ),
    "unreadable": Phrase(
        "{unreadable} 件は鍵がないため読めません。パスワードを入力し直してください。",
        "{unreadable} can't be read, because their key is not there; enter those passwords again.",
    ),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


@click.group()
def credentials() -> None:
    """Look after the key that encrypts stored passwords.

    \b
    Example:
      camserver credentials rotate
    """


@credentials.command("rotate")
@json_option
@pass_chosen
def rotate(chosen: Chosen, as_json: bool) -> None:
    """Replace the key that encrypts stored passwords.

    Everything goes on running meanwhile. When it is interrupted, the next call goes on where it stopped; until then
    both keys are kept. A key that comes from the settings is replaced there first.

    \b
    Examples:
      camserver credentials rotate
      camserver credentials rotate --json
    """
    told = with_server(chosen, lambda server: _rotate(server, quiet=as_json))
    if as_json:
        click.echo(json.dumps(told))
        return
    click.echo(say("done", moved=told["moved"]))
    if told["unreadable"]:
        click.echo(say("unreadable", unreadable=told["unreadable"]), err=True)


async def _rotate(server: "LocalServer", quiet: bool) -> dict[str, Any]:
    moved = unreadable = 0
    cursor: str | None = None
    key, made = "", False
    while True:
        step = await server.post("/api/credentials/rotate", {"cursor": cursor})
        if cursor is None:
            key, made = step["key_id"], step["made_key"]
            if not quiet:
                click.echo(say("begun" if made else "resumed", key=key), err=True)
        moved += step["moved"]
        unreadable += step["unreadable"]
        cursor = step["next_cursor"]
        if cursor is None:
            return {"key_id": key, "made_key": made, "moved": moved, "unreadable": unreadable, "left": step["left"]}
