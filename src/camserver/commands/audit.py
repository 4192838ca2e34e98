"""`camserver audit`: what was done, and whether the log of it is whole."""

import json
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlencode

import click

from camserver.base.errors import BadInput, CheckFailed
from camserver.commands.asking import with_server
from camserver.commands.audit_words import HEADS, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from camserver.clients.local_server import LocalServer
    from camserver.domain.audit import Finding

INSTALLATION = "installation"
PAGE = 500
DETAILS_MAX_CHARS = 60
FINDINGS_MAX = 50
# The server seals every minute; what waits for so long says that it does not.
UNSEALED_LATE_MS = 10 * 60_000


@click.group()
def audit() -> None:
    """Read the audit log, and check that it is whole."""


@audit.command("list")
@click.option("--who", help="Only what this login did; `local admin`, `system` and `link` are names too.")
@click.option("--action", help="Only this action, such as camera_changed.")
@click.option("--object", "target", metavar="KIND[:ID]", help="Only about this, such as case or camera:entrance.")
@click.option(
    "--since", metavar="TIME", help="Not older than this: 2026-01-31, 2026-01-31T08:00 (UTC), or 90m, 12h, 7d."
)
@click.option("--until", metavar="TIME", help="Older than this.")
@click.option("--installation", is_flag=True, help="The log of the installation itself instead of the tenant's.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, help="Most entries shown.")
@json_option
@pass_chosen
def audit_list(
    chosen: Chosen,
    who: str | None,
    action: str | None,
    target: str | None,
    since: str | None,
    until: str | None,
    installation: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List what was done, newest first.

    \b
    Examples:
      camserver audit list --since 12h
      camserver audit list --who owner --action picture_opened
      camserver audit list --object camera:entrance --json
    """
    now_ms = int(time.time() * 1000)
    kind, _, object_id = (target or "").partition(":")
    asked = {
        "who": who,
        "action": action,
        "object_kind": kind,
        "object_id": object_id,
        "from": None if since is None else moment(since, now_ms),
        "to": None if until is None else moment(until, now_ms),
        "installation": "true" if installation else None,
    }
    entries, more = with_server(chosen, lambda server: _entries(server, {k: v for k, v in asked.items() if v}, limit))
    if as_json:
        click.echo(json.dumps({"entries": entries, "more": more}, ensure_ascii=False))
        return
    if not entries:
        click.echo(say("none"), err=True)
        return
    click.echo(table(HEADS[reader_language()], [_row(one) for one in entries]))
    if more:
        click.echo(say("more"), err=True)


async def _entries(server: "LocalServer", asked: dict[str, Any], limit: int) -> tuple[list[dict[str, Any]], bool]:
    entries: list[dict[str, Any]] = []
    before: str | None = None
    while len(entries) < limit:
        query = {**asked, "limit": min(PAGE, limit - len(entries)), **({"before": before} if before else {})}
        page = await server.get(f"/api/audit?{urlencode(query)}")
        entries += page["entries"]
        before = page["next_before"]
        if before is None:
            break
    return entries, before is not None


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    details = "" if one["details"] is None else json.dumps(one["details"], ensure_ascii=False)
    return (
        datetime.fromtimestamp(one["at"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        str(one["who"]),
        str(one["action"]),
        f"{one['object_kind']} {one['object_name'] or one['object_id']}".strip() or "-",
        details[:DETAILS_MAX_CHARS] or "-",
        str(one["address"] or "-"),
    )


def moment(given: str, now_ms: int) -> int:
    """A time that somebody wrote: a date, a date with a time (UTC), or how long ago."""
    units = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}
    if given[:-1].isascii() and given[:-1].isdigit() and len(given) <= 8 and given[-1] in units:
        return max(now_ms - int(given[:-1]) * units[given[-1]], 0)
    try:
        read = datetime.fromisoformat(given)
    except ValueError:
        raise BadInput(
            f"{given!r} is no time; write 2026-01-31, 2026-01-31T08:00 (UTC), or how long ago: 90m, 12h, 7d"
        ) from None
    return max(round((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000), 0)


@audit.command("verify")
@click.option(
    "--tenant", help="Only this tenant's log; `installation` is the installation's own.", show_default="all"
)
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Check an exported file instead; needs no server.")  # fmt: skip
@click.option("--without-key", is_flag=True, help="Check hashes only, where the key is lost.")
@json_option
@pass_chosen
def audit_verify(chosen: Chosen, tenant: str | None, file: Path | None, without_key: bool, as_json: bool) -> None:
    """Check that no entry was changed, removed or added.

    Every sealed entry is read. Ends with exit code 12 when something is wrong, and says where it begins; also when
    entries are not sealed yet though they are older than ten minutes.

    \b
    Examples:
      camserver audit verify
      camserver audit verify --tenant default --json
      camserver audit verify --file audit.jsonl
    """
    if file is not None and tenant is not None:
        raise BadInput("a file holds one tenant's log: give --file or --tenant, not both")
    if file is not None:
        logs = [_verified_file(chosen, file, without_key)]
    else:
        logs = with_server(chosen, lambda server: _verified(server, tenant, without_key))
    findings = [(one["tenant"], finding) for one in logs for finding in one["findings"]]
    if as_json:
        click.echo(json.dumps({"logs": logs, "whole": not findings}, ensure_ascii=False))
    else:
        for one in logs:
            _tell(one)
    if findings:
        where, first = findings[0]
        raise CheckFailed(say("broken", tenant=where, what=first["message"], batch=first["batch_no"]))
    late = [one for one in logs if one["late"]]
    if late:
        raise CheckFailed(say("late", tenant=late[0]["tenant"], count=late[0]["unsealed"]))


def _tell(one: dict[str, Any]) -> None:
    said = "whole" if not one["findings"] else "not_whole"
    click.echo(say(said, tenant=one["tenant"], batches=one["batches"], entries=one["entries"]))
    click.echo("  " + (say("no_key") if one["key_id"] is None else say("key", key_id=one["key_id"])))
    if one["last_hash"]:
        click.echo("  " + say("last", hash=one["last_hash"], batch=one["last_batch"]))
    if one["unsealed"]:
        click.echo("  " + say("unsealed_late" if one["late"] else "unsealed", count=one["unsealed"]))
    told: set[str] = set()
    for finding in one["findings"]:
        click.secho(f"  {finding['message']}", fg="red")
        if finding["what_to_do"] not in told:
            told.add(finding["what_to_do"])
            click.echo(f"    {finding['what_to_do']}")


async def _verified(server: "LocalServer", tenant: str | None, without_key: bool) -> list[dict[str, Any]]:
    listed = await server.get("/api/audit/chains")
    chains = [one for one in listed["chains"] if tenant is None or (one["tenant"] or INSTALLATION) == tenant]
    if not chains:
        raise BadInput(f"there is no log of a tenant {tenant!r}; see: camserver audit verify")
    logs = []
    with _bar(sum(one["batches"] for one in chains)) as told:
        for chain in chains:
            logs.append(await _verified_chain(server, chain, without_key, told))
    return logs


async def _verified_chain(
    server: "LocalServer", chain: dict[str, Any], without_key: bool, told: Any
) -> dict[str, Any]:
    name = chain["tenant"]
    asked = {"tenant": name} if name is not None else {"installation": True}
    findings: list[dict[str, Any]] = []
    batches = entries = 0
    after: int | None = 0
    key_id = None
    while after is not None:
        part = await server.post("/api/audit/verify", {**asked, "after_batch": after, "with_key": not without_key})
        findings += part["findings"][: FINDINGS_MAX - len(findings)]
        batches += part["batches"]
        entries += part["entries"]
        key_id, after = part["key_id"], part["next_after"]
        told(part["batches"])
    oldest = chain["oldest_unsealed_at"]
    return {
        "tenant": name or INSTALLATION,
        "batches": batches,
        "entries": entries,
        "unsealed": chain["unsealed"],
        "late": oldest is not None and oldest < time.time() * 1000 - UNSEALED_LATE_MS,
        "last_batch": chain["batches"],
        "last_hash": chain["last_hash"],
        "key_id": key_id,
        "findings": findings,
    }


@contextmanager
def _bar(length: int) -> "Iterator[Any]":
    """Shows how far it is; nothing where nobody looks on."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=max(length, 1), label=say("checking"), file=sys.stderr) as shown:
        yield shown.update


def _verified_file(chosen: Chosen, path: Path, without_key: bool) -> dict[str, Any]:
    from camserver.config.secret_files import audit_key_bytes
    from camserver.domain.audit import Finding, SealKey, Wrong
    from camserver.domain.audit_files import LINE_MAX_CHARS, FileCheck

    given = None if without_key else audit_key_bytes(chosen.settings())
    check = FileCheck(None if given is None else SealKey(given), int(time.time() * 1000))
    found: list[Finding] = []
    number = 0
    with path.open(encoding="utf-8", errors="replace") as lines, _bar(path.stat().st_size) as told:
        while line := lines.readline(LINE_MAX_CHARS):
            number += 1
            try:
                found += check.take(line)
            except BadInput as error:
                raise BadInput(f"{path}, line {number}: {error.message}") from None
            told(len(line.encode()))
    if not check.ended:
        found.append(Finding(Wrong.SEAL_MISSING, check.seals + 1))
    return {
        "tenant": check.tenant,
        "batches": check.seals,
        "entries": check.entries,
        "unsealed": 0,
        "late": False,
        "last_batch": check.seals,
        "last_hash": check.last_hash,
        "key_id": None if check.key is None else check.key.key_id,
        "findings": [_shown(one) for one in found[:FINDINGS_MAX]],
    }


def _shown(finding: "Finding") -> dict[str, Any]:
    from camserver.domain.audit_words import what_is_wrong, what_to_do

    language = reader_language()
    return {
        "wrong": finding.wrong.value,
        "batch_no": finding.batch_no,
        "entry_ids": list(finding.entry_ids),
        "message": getattr(what_is_wrong(finding), language),
        "what_to_do": getattr(what_to_do(finding), language),
    }


@audit.command("export")
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--installation", is_flag=True, help="The log of the installation itself instead of the tenant's.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@json_option
@pass_chosen
def audit_export(chosen: Chosen, output: Path, installation: bool, force: bool, as_json: bool) -> None:
    """Write the sealed log with its seals into a file.

    One JSON object a line. The file can be checked anywhere by `camserver audit verify --file`.

    \b
    Examples:
      camserver audit export audit.jsonl
      camserver audit export audit-installation.jsonl --installation
    """
    if output.exists() and not force:
        raise BadInput(f"{output} exists; give --force to overwrite it")
    draft = output.with_name(f".{output.name}.part")
    path = "/api/audit/export" + ("?installation=true" if installation else "")

    async def fetch(server: "LocalServer", file: BinaryIO) -> int:
        return await server.download(path, file)

    try:
        with draft.open("wb") as file:
            draft.chmod(0o600)
            count = with_server(chosen, lambda server: fetch(server, file))
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        click.echo(json.dumps({"file": str(output), "bytes": count}))
    else:
        click.echo(say("exported", file=output, bytes=count))
