"""`camserver db`: the schema and the health of the database."""

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click

from camserver.base.errors import CheckFailed
from camserver.commands.database_copy import db_copy
from camserver.commands.root import Chosen, json_option, pass_chosen

if TYPE_CHECKING:
    from camserver.config import DatabaseUrl


@click.group()
def db() -> None:
    """Look after the database."""


db.add_command(db_copy)


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
    from camserver.care.ownership import handed_over

    settings = chosen.settings()
    backup_dir = None if no_backup else parts.backup_folder(settings)
    with handed_over(settings):
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


@db.command("rls")
@click.option("--enable", "wanted", flag_value="enable", help="Hold web's own role to one tenant at a time.")
@click.option("--disable", "wanted", flag_value="disable", help="End that, and take the role's rights away.")
@click.option("--status", "wanted", flag_value="status", default=True, help="Print whether it is on.")
@click.option("--role", help="The role of web's own.", show_default="the user in web.store_url, else camserver_web")
@json_option
@pass_chosen
def db_rls(chosen: Chosen, wanted: str, role: str | None, as_json: bool) -> None:
    """Hold web to one tenant by PostgreSQL's row-level security.

    What web does in somebody's name then goes through a database role of its own (web.store_url), to which PostgreSQL
    shows the rows of that person's tenant only. Make the role first; the guide on tenants says how.

    \b
    Examples:
      camserver db rls
      camserver db rls --enable
      camserver db rls --disable
    """
    from camserver.store import migrate, postgres_store, row_security

    settings = chosen.settings()
    if wanted == "enable" and settings.store.url.dialect == "postgresql":
        migrate.require_current(settings.store.url.reveal())
    held = role or role_of(settings.web.store_url) or row_security.USUAL_ROLE

    async def work() -> row_security.Status:
        async with postgres_store(settings.store.url) as store:
            if wanted == "enable":
                return await store.write(row_security.enable, held)
            if wanted == "disable":
                return await store.write(row_security.disable)
            return await store.read(row_security.status)

    found = asyncio.run(work())
    if as_json:
        click.echo(json.dumps({"is_on": found.is_on, "roles": found.roles, "missing": found.missing}))
    elif found.is_on:
        click.echo(f"Row-level security holds {', '.join(found.roles)}.")
    elif found.roles:
        click.echo(f"Row-level security lacks {len(found.missing)} tables; run: camserver db rls --enable")
    else:
        click.echo("Row-level security is off.")


def role_of(url: "DatabaseUrl | None") -> str | None:
    return None if url is None else unquote(urlsplit(url.reveal()).username or "") or None


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
