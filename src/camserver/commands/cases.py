"""`camserver case`: evidence that is kept together, and checking what was exported of it."""

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlencode

import click

from camserver.base.errors import BadInput, CamError, CheckFailed
from camserver.commands.asking import with_server
from camserver.commands.case_items import case_path, case_remove, case_show
from camserver.commands.case_words import head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, table
from camserver.domain.cases import CaseState, ItemKind

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer


@click.group("case")
def case() -> None:
    """Keep, hold and export evidence, and check exports."""


case.add_command(case_show)
case.add_command(case_remove)


@case.command("create")
@click.argument("title")
@click.option("--note", help="A first note.")
@json_option
@pass_chosen
def case_create(chosen: Chosen, title: str, note: str | None, as_json: bool) -> None:
    """Open a case. Nothing that is added to it is deleted while it is open.

    \b
    Example:
      camserver case create "Bicycle in the yard"
    """
    made = with_server(chosen, lambda server: server.post("/api/cases", {"title": title, "note": note}))
    click.echo(json.dumps(made, ensure_ascii=False) if as_json else made["case_uuid"])


@case.command("list")
@click.option("--state", type=click.Choice([one.value for one in CaseState]), help="Only cases in this state.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="Most cases shown.")
@json_option
@pass_chosen
def case_list(chosen: Chosen, state: str | None, limit: int, as_json: bool) -> None:
    """List cases, newest first.

    \b
    Examples:
      camserver case list
      camserver case list --state open --json
    """
    query = urlencode({"limit": limit} | ({"state": state} if state else {}))
    found = with_server(chosen, lambda server: server.get(f"/api/cases?{query}"))["cases"]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found:
        click.echo(say("none"), err=True)
    else:
        now_ms = int(time.time() * 1000)
        click.echo(table(head(), [_row(one, now_ms) for one in found]))


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    state = say(str(one["state"])) + (f" ({say('hold')})" if one["hold"] else "")
    return (
        str(one["case_uuid"]),
        str(one["title"]),
        state,
        str(one["items"]),
        str(one["notes"]),
        age(one["updated_at"], now_ms),
    )


@case.command("add")
@click.argument("case_uuid")
@click.argument("kind", type=click.Choice([one.value for one in ItemKind]))
@click.argument("uuids", nargs=-1, required=True)
@json_option
@pass_chosen
def case_add(chosen: Chosen, case_uuid: str, kind: str, uuids: tuple[str, ...], as_json: bool) -> None:
    """Add frames, events or clips to a case.

    An event comes with all its frames and its clip. A clip alone is named by its event.

    \b
    Examples:
      camserver case add CASE event EVENT
      camserver case add CASE frame FRAME FRAME
    """

    count = 0

    async def work(server: "LocalServer") -> None:
        nonlocal count
        for uuid in uuids:
            answer = await server.post(f"{case_path(case_uuid)}/items", {"kind": kind, "uuid": uuid})
            count += bool(answer.get("added"))

    try:
        with_server(chosen, work)
    except CamError:
        if count and not as_json:
            # Those before the one that failed stay added.
            click.echo(say("added", count=count))
        raise
    if as_json:
        click.echo(json.dumps({"added": count}))
        return
    click.echo(say("added", count=count))
    if count < len(uuids):
        click.echo(say("there_already", count=len(uuids) - count))


@case.command("note")
@click.argument("case_uuid")
@click.argument("body")
@json_option
@pass_chosen
def case_note(chosen: Chosen, case_uuid: str, body: str, as_json: bool) -> None:
    """Add a note. Notes are never changed.

    \b
    Example:
      camserver case note CASE "The owner was called."
    """
    note = with_server(chosen, lambda server: server.post(f"{case_path(case_uuid)}/notes", {"body": body}))
    click.echo(json.dumps(note, ensure_ascii=False) if as_json else say("noted"))


@case.command("hold")
@click.argument("case_uuid")
@click.option("--off", is_flag=True, help="End the hold.")
@json_option
@pass_chosen
def case_hold(chosen: Chosen, case_uuid: str, off: bool, as_json: bool) -> None:
    """Keep everything of a case, also after it is closed.

    \b
    Examples:
      camserver case hold CASE
      camserver case hold CASE --off
    """
    _change(chosen, case_uuid, {"hold": not off}, "hold_ended" if off else "held", as_json)


@case.command("close")
@click.argument("case_uuid")
@click.option("--reopen", is_flag=True, help="Open it again.")
@json_option
@pass_chosen
def case_close(chosen: Chosen, case_uuid: str, reopen: bool, as_json: bool) -> None:
    """Close a case. Without a hold, what it held stays for some days more and then goes by its own class.

    \b
    Examples:
      camserver case close CASE
      camserver case close CASE --reopen
    """
    state = CaseState.OPEN if reopen else CaseState.CLOSED
    _change(chosen, case_uuid, {"state": state.value}, "reopened" if reopen else "is_closed", as_json)


def _change(chosen: Chosen, case_uuid: str, change: dict[str, Any], told: str, as_json: bool) -> None:
    changed = with_server(chosen, lambda server: server.patch(case_path(case_uuid), change))
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say(told))


@case.command("export")
@click.argument("case_uuid")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), show_default="case-UUID.zip",
              help="Where to write the file.")  # fmt: skip
@json_option
@pass_chosen
def case_export(chosen: Chosen, case_uuid: str, output: Path | None, as_json: bool) -> None:
    """Write a case to a ZIP file.

    It holds pictures, clips, notes, tables, a page to read, and a signed manifest of hashes.

    \b
    Example:
      camserver case export CASE -o bicycle.zip
    """
    target = output or Path(f"case-{case_uuid}.zip")
    if target.exists():
        raise BadInput(f"{target} is there already; choose another file with --output, or remove it")
    draft = target.with_name(f".{target.name}.part")

    async def work(server: "LocalServer") -> int:
        with _opened(draft) as file:
            return await server.download(f"{case_path(case_uuid)}/export", file)

    try:
        count = with_server(chosen, work)
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        click.echo(json.dumps({"file": str(target), "bytes": count}))
    else:
        click.echo(say("exported", file=target, count=count))


def _opened(draft: Path) -> BinaryIO:
    try:
        return draft.open("wb")
    except OSError as error:
        raise BadInput(
            f"nothing can be written to the folder {draft.parent} ({error.strerror}); choose another with --output"
        ) from None


@case.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", help="Public key it should be signed with (hex).", show_default="this installation's")
@json_option
@pass_chosen
def case_verify(chosen: Chosen, file: Path, key: str | None, as_json: bool) -> None:
    """Check an exported case.

    Names every file that is missing, changed or added, and who signed it. Needs no server.
    On another machine, give the public key of the installation that made the file.

    \b
    Examples:
      camserver case verify bicycle.zip
      camserver case verify bicycle.zip --key 5f1c…
    """
    from camserver.clients.case_file import check_case_file

    checked = check_case_file(file, _own_key(chosen) if key is None else _typed_key(key))
    if as_json:
        shown = [{"kind": one.kind, "path": one.path, "message": one.message} for one in checked.differences]
        missing = [] if checked.manifest is None else [line.model_dump() for line in checked.manifest.missing]
        click.echo(json.dumps({"differences": shown, "missing": missing, "key": checked.fingerprint}))
    else:
        for one in checked.differences:
            click.secho(f"{one.kind}: {one.message}", fg="yellow")
        for line in checked.manifest.missing if checked.manifest is not None else ():
            click.echo(say("missing", kind=line.kind, uuid=line.uuid, reason=line.reason))
    if checked.differences:
        count = len(checked.differences)
        raise CheckFailed(f"{file.name} is not as it was written: {count} {'problem' if count == 1 else 'problems'}")
    if not as_json and checked.manifest is not None:
        click.echo(say("sound", count=len(checked.manifest.files), key=checked.fingerprint))


@case.command("key")
@pass_chosen
def case_key(chosen: Chosen) -> None:
    """Print the public key that signs exports.

    \b
    Example:
      camserver case key
    """
    key = _own_key(chosen)
    if key is None:
        raise BadInput("there is no key here yet; start a server once with: camserver up")
    click.echo(key)


def _typed_key(key: str) -> str:
    typed = key.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", typed):
        raise BadInput("a public key has 64 hexadecimal digits; camserver case key prints it where the file was made")
    return typed


def _own_key(chosen: Chosen) -> str | None:
    """The public half of this installation's key; None when it has none."""
    from camserver.base import signing
    from camserver.config.secret_files import case_key_bytes

    key = case_key_bytes(chosen.settings())
    return None if key is None else signing.public_key(key)
