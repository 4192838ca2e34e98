"""`camserver vocabulary`: the tags an analyzer may answer with; which there are, and which is used."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase

_WORDS = {
    "head": Phrase("バージョン|使用中|追加日時|使用開始", "VERSION|IN USE|ADDED|IN USE SINCE"),
    "yes": Phrase("はい", "yes"),
}


def say(name: str) -> str:
    phrase = _WORDS[name]
    return phrase.ja if reader_language() == "ja" else phrase.en


@click.group()
def vocabulary() -> None:
    """See, add and choose the vocabularies of tags."""


@vocabulary.command("list")
@json_option
@pass_chosen
def vocabulary_list(chosen: Chosen, as_json: bool) -> None:
    """List the vocabularies there are.

    \b
    Example:
      camserver vocabulary list
    """
    _show(with_server(chosen, lambda server: server.get("/api/vocabulary/versions")), as_json)


@vocabulary.command("show")
@click.argument("version")
@pass_chosen
def vocabulary_show(chosen: Chosen, version: str) -> None:
    """Print a vocabulary as JSON.

    Changed, it can be added under another version.

    \b
    Example:
      camserver vocabulary show 2025-12-28.1 > words.json
    """
    found = with_server(chosen, lambda server: server.get(f"/api/vocabulary/versions/{version}"))
    click.echo(json.dumps(found["document"], ensure_ascii=False, indent=2))


@vocabulary.command("add")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@pass_chosen
def vocabulary_add(chosen: Chosen, file: Path, as_json: bool) -> None:
    """Add a vocabulary from a JSON file.

    It is checked, and not used before `camserver vocabulary use`.

    \b
    Example:
      camserver vocabulary add words.json
    """
    body = {"document": _document(file)}
    _show(with_server(chosen, lambda server: server.post("/api/vocabulary", body)), as_json)


@vocabulary.command("use")
@click.argument("version")
@json_option
@pass_chosen
def vocabulary_use(chosen: Chosen, version: str, as_json: bool) -> None:
    """Use a vocabulary from now on.

    Analyzers get it within seconds; what was seen before keeps its tags.

    \b
    Example:
      camserver vocabulary use 2026-11-16.1
    """
    body = {"schema_version": version}
    _show(with_server(chosen, lambda server: server.post("/api/vocabulary/active", body)), as_json)


def _document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file} is no JSON file in UTF-8: {error}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{file} must hold a JSON object with schema_version, primary_events, tag_groups and tags")
    return document


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    rows = [
        (one["schema_version"], say("yes") if one["is_active"] else "", _day(one["created_at"]), _since(one))
        for one in found["versions"]
    ]
    click.echo(table(tuple(say("head").split("|")), rows))


def _since(one: dict[str, Any]) -> str:
    return _day(one["activated_at"]) if one["is_active"] and one["activated_at"] is not None else ""


def _day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M}"
