"""`camserver why`: in plain words, why a camera runs or does not."""

import json
from urllib.parse import quote

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language


@click.command("why")
@click.argument("camera_id")
@json_option
@pass_chosen
def why(chosen: Chosen, camera_id: str, as_json: bool) -> None:
    """Say why a camera runs or does not.

    The first line is the answer, the others say more. docs/delegation_debug.md goes on from there.

    \b
    Examples:
      camserver why entrance
      camserver why entrance --json
    """
    path = f"/api/cameras/{quote(camera_id, safe='')}/why"
    told = with_server(chosen, lambda server: server.get(path))
    if as_json:
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    for line in told["lines"]:
        click.echo(line[f"text_{reader_language()}"])
