"""`camserver camera import`: cameras from a CSV file or from a configuration of Frigate."""

import json
import os
from pathlib import Path
from typing import Any

import click

from camserver.base.errors import BadInput, CheckFailed
from camserver.base.exits import Exit
from camserver.commands.asking import with_server
from camserver.commands.camera_words import say
from camserver.commands.root import Chosen, json_option, pass_chosen

FILE_MAX_BYTES = 900_000
_FORMAT_OF = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".yml": "frigate", ".yaml": "frigate"}


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--format", "kind", type=click.Choice(["csv", "frigate"]), help="What FILE is.", show_default="its ending"
)
@click.option("--site", help="Site of cameras that name none.", show_default="the oldest one")
@click.option("--dry-run", is_flag=True, help="Say what would be done and do nothing.")
@click.option("--skip-bad", is_flag=True, help="Add the good ones although others are wrong.")
@click.option("--zones", is_flag=True, help="Take over Frigate's zones: cameras then look inside them only.")
@json_option
@pass_chosen
def camera_import(
    chosen: Chosen,
    file: Path,
    kind: str | None,
    site: str | None,
    dry_run: bool,
    skip_bad: bool,
    zones: bool,
    as_json: bool,
) -> None:
    """Add cameras from a CSV file or from Frigate.

    Cameras that are there already stay as they are, so it can be run again. Placeholders such as
    {FRIGATE_RTSP_PASSWORD} are taken from the environment. Columns and conversions are in docs/guide/cameras.md.

    \b
    Examples:
      camserver camera import cameras.csv --dry-run
      FRIGATE_RTSP_PASSWORD=secret camserver camera import frigate/config.yml
    """
    kind = kind or _FORMAT_OF.get(file.suffix.lower())
    if kind is None:
        raise click.UsageError(f"the ending of {file} says nothing; give --format csv or --format frigate")
    text = _text_of(file)
    body: dict[str, Any] = {"format": kind, "text": text, "site": site, "dry_run": dry_run, "skip_bad": skip_bad}
    if kind == "frigate":
        from camserver.domain.import_frigate import placeholders

        body["zones"] = zones
        body["environment"] = {name: os.environ[name] for name in placeholders(text) if name in os.environ}
    done = with_server(chosen, lambda server: server.post("/api/imports", body))
    if as_json:
        click.echo(json.dumps(done, ensure_ascii=False))
    else:
        _show(done)
    if done["problems"] or any(one["action"] == "failed" for one in done["cameras"]):
        if as_json:
            click.get_current_context().exit(Exit.CHECK_FAILED.value)
        raise CheckFailed(say("import_incomplete", file=file))


def _text_of(file: Path) -> str:
    """UTF-8, or what spreadsheets on Japanese Windows write."""
    data = file.read_bytes()
    if len(data) > FILE_MAX_BYTES:
        raise BadInput(f"{file} is larger than {FILE_MAX_BYTES} bytes; split it")
    for encoding in ("utf-8-sig", "cp932"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise BadInput(f"{file} is neither UTF-8 nor Shift JIS text; save it as UTF-8")


def _show(done: dict[str, Any]) -> None:
    for one in done["cameras"]:
        said = f": {one['message']}" if one["message"] else ""
        click.echo(f"{say('import_' + one['action'])} {one['camera_id']} ({one['where']}){said}")
    for note in done["notes"]:
        click.echo(f"{say('note')}: {note['where']}: {note['message']}", err=True)
    for problem in done["problems"]:
        click.secho(f"{problem['where']}: {problem['message']}", fg="red", err=True)
    added = sum(one["action"] in ("add", "added") for one in done["cameras"])
    key = "import_would" if any(one["action"] == "add" for one in done["cameras"]) else "import_done"
    click.echo(say(key, added=added, others=len(done["cameras"]) - added), err=True)
