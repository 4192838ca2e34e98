"""`camserver db`: the schema and the health of the database."""

import asyncio
import json

import click

from camserver.base.errors import CheckFailed
from camserver.commands.root import Chosen, json_option, pass_chosen


@click.group()
def db() -> None:
    """Look after the database."""


@db.command("upgrade")
@click.option("--no-backup", is_flag=True, help="Do not copy the database aside first.")
@pass_chosen
def db_upgrade(chosen: Chosen, no_backup: bool) -> None:
    """Bring the database to this program's schema.

    It is backed up first. Refused while a camserver runs on a SQLite database.

    \b
    Examples:
      camserver db upgrade
      camserver db upgrade --no-backup
    """
    from camserver import parts, store
    from camserver.base.secrets import Secret

    settings = chosen.settings()
    backup_dir = None if no_backup else parts.backup_folder(settings)
    status = asyncio.run(store.upgrade_database(Secret(settings.store.url.reveal()), backup_dir))
    click.echo(f"The database is at schema {status.current}.")


@db.command("status")
@json_option
@pass_chosen
def db_status(chosen: Chosen, as_json: bool) -> None:
    """Print the schema the database has and the one needed.

    \b
    Examples:
      camserver db status
      camserver db status --json
    """
    from camserver.store import migrate

    settings = chosen.settings()
    found = migrate.status(settings.store.url.reveal())
    if as_json:
        click.echo(json.dumps({"current": found.current, "head": found.head, "up_to_date": found.up_to_date}))
        return
    click.echo(f"database: {settings.store.url}")
    click.echo(f"schema:   {found.current or 'none (empty)'}; this program needs {found.head}")


@db.command("check")
@click.option("--objects", "with_objects", is_flag=True, help="Also look whether every picture and clip is there.")
@click.option("--forget-missing", is_flag=True, help="With --objects: note those that are not there as gone.")
@json_option
@pass_chosen
def db_check(chosen: Chosen, with_objects: bool, forget_missing: bool, as_json: bool) -> None:
    """Check that the database is what camserver takes it for.

    Looks at the schema and at what rows promise each other; changes nothing. A SQLite database can't be checked
    while a camserver runs on it. Looking at every object takes a while.

    \b
    Examples:
      camserver db check
      camserver db check --objects
      camserver db check --json
    """
    from camserver.commands.object_check import check_objects
    from camserver.store.check import check_database

    settings = chosen.settings()
    findings = asyncio.run(check_database(settings.store.url))
    # Where the schema is another one, rows can't be read.
    if with_objects and not any(found.kind.startswith("schema") for found in findings):
        findings += asyncio.run(check_objects(settings, forget_missing))
    if as_json:
        shown = [{"kind": found.kind, "message": found.message, "count": found.count} for found in findings]
        click.echo(json.dumps(shown, ensure_ascii=False))
    else:
        for found in findings:
            click.secho(f"{found.kind}: {found.message}", fg="yellow")
    if findings:
        raise CheckFailed(f"{len(findings)} checks found something wrong with the database")
    if not as_json:
        click.echo("The database is fine.")
