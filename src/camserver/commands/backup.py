"""`camserver backup` and `camserver restore`."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from camserver.commands.care_words import say
from camserver.commands.progress import bars
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import moment

if TYPE_CHECKING:
    from camserver.care.backup_files import Manifest

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("target", type=_FILE)
@click.option(
    "--objects",
    type=click.Choice(["copy", "reference"]),
    default="copy",
    help="Copy pictures and clips, or only say where they are.",
)
@click.option("--secrets", type=_FILE, help="Also write the secrets, to this file of their own.")
@json_option
@pass_chosen
def backup(
    chosen: Chosen, target: Path, objects: Literal["copy", "reference"], secrets: Path | None, as_json: bool
) -> None:
    """Back up database, pictures and clips while it runs.

    Into a new folder, or into one file when its name ends in .tar. The database is of one moment; SQLite is copied,
    PostgreSQL and MariaDB are dumped by their own tools. A manifest holds the SHA-256 of everything. Secrets (keys
    and tokens) are named in it and never inside: keep them apart, with --secrets. With --objects reference the place
    of pictures and clips is for you to keep, such as a bucket with versions.

    \b
    Examples:
      camserver backup /mnt/backups/monday
      camserver backup /mnt/backups/monday.tar --secrets /root/camserver-secrets.json
      camserver backup /mnt/backups/rows --objects reference
    """
    from camserver.care.backup import Wanted, back_up
    from camserver.care.backup_files import clear_broken

    settings = chosen.settings()
    for left in clear_broken(target.absolute().parent):
        click.echo(say("cleared_broken", file=left), err=True)
    with bars() as shown:
        wanted = Wanted(target.absolute(), objects, secrets)
        manifest = asyncio.run(
            back_up(settings, wanted, lambda what, done, total: shown.tell(say(what), done, total))
        )
    if as_json:
        click.echo(json.dumps(_summary(target, manifest), ensure_ascii=False))
        return
    database_bytes = manifest.files[manifest.database][0]
    click.echo(
        say(
            "backed_up",
            file=target,
            database_mb=_mb(database_bytes),
            objects=manifest.object_count,
            objects_mb=_mb(manifest.object_bytes),
        )
    )
    if objects == "reference":
        click.echo(say("by_reference", where=manifest.objects_where))
    if manifest.objects_gone_count:
        click.echo(say("gone", count=manifest.objects_gone_count))
    if secrets is None:
        click.secho(say("secrets_apart", names=", ".join(manifest.secrets)), fg="yellow", err=True)
    else:
        click.echo(say("secrets_written", file=secrets))


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--verify-only", is_flag=True, help="Compare every hash and change nothing.")
@click.option("--force", is_flag=True, help="Restore over a database that is there.")
@click.option("--secrets", type=_FILE, help="The file that `camserver backup --secrets` wrote.")
@json_option
@pass_chosen
def restore(
    chosen: Chosen, source: Path, verify_only: bool, force: bool, secrets: Path | None, as_json: bool
) -> None:
    """Put a backup back, after verifying all of it.

    No camserver may run on the database meanwhile. Refused over a database that is there unless --force is given; a
    SQLite file is then kept beside the new one. Workers start their cameras anew, and everybody signs in again.

    \b
    Examples:
      camserver restore /mnt/backups/monday --verify-only
      camserver restore /mnt/backups/monday.tar --secrets /root/camserver-secrets.json
      camserver restore /mnt/backups/monday --force
    """
    from camserver.care import restore as restoring
    from camserver.care.ownership import handed_over

    warnings: tuple[str, ...] = ()
    with bars() as shown:

        def told(what: str, done: int, total: int) -> None:
            shown.tell(say(what), done, total)

        if verify_only:
            manifest = asyncio.run(restoring.verify(source, told))
        else:
            settings = chosen.settings()
            with handed_over(settings):
                done = asyncio.run(restoring.restore(settings, restoring.Wanted(source, force, secrets), told))
            manifest, warnings = done.manifest, done.warnings
    if as_json:
        click.echo(json.dumps({**_summary(source, manifest), "warnings": warnings}, ensure_ascii=False))
        return
    for warning in warnings:
        click.secho(warning, fg="yellow", err=True)
    words = {"file": source, "taken": moment(manifest.taken_at), "version": manifest.version}
    click.echo(say("verified" if verify_only else "restored", objects=manifest.object_count, **words))


def _summary(file: Path, manifest: "Manifest") -> dict[str, Any]:
    return {"file": str(file), **asdict(manifest)}


def _mb(size: int) -> str:
    return f"{size / 1_000_000:.1f}"
