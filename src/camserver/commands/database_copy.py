"""`camserver db copy`: from SQLite to PostgreSQL or MariaDB."""

import asyncio
import json

import click

from camserver.base.errors import BadInput
from camserver.commands.care_words import say
from camserver.commands.progress import bars
from camserver.commands.root import Chosen, json_option, pass_chosen

TARGET_VARIABLE = "CAMSERVER_COPY_URL"


@click.command("copy")
@click.argument("url", envvar=TARGET_VARIABLE)
@json_option
@pass_chosen
def db_copy(chosen: Chosen, url: str, as_json: bool) -> None:
    """Copy everything from SQLite to PostgreSQL or MariaDB.

    The target must be an empty database, and no camserver may run meanwhile. Every table is compared at the end, by
    counts and hashes. Run it again after it was broken off: it goes on where it was. SQLite stays as it is; pictures
    and clips stay where they are. An address with a password is better given in $CAMSERVER_COPY_URL, since others on
    the machine can read arguments.

    \b
    Examples:
      camserver db copy postgresql://cam@db.example.com/cam
      CAMSERVER_COPY_URL=mysql://cam@db.example.com/cam camserver db copy
    """
    from camserver import parts
    from camserver.base.secrets import Secret
    from camserver.care.ownership import handed_over
    from camserver.config import DatabaseUrl
    from camserver.store import copy_database

    settings = chosen.settings()
    try:
        target = DatabaseUrl.parse(url)
    except BadInput as error:
        raise BadInput(f"the address of the target is wrong: {error.message}") from None
    with bars() as shown, handed_over(settings):
        copied = asyncio.run(
            copy_database(
                Secret(settings.store.url.reveal()),
                target,
                parts.backup_folder(settings),
                lambda table, done, total: shown.tell(f"{say('copying')} {table}", done, total),
            )
        )
    rows = sum(standing.rows for standing in copied.values())
    if as_json:
        counts = {name: standing.rows for name, standing in copied.items()}
        click.echo(json.dumps({"rows": rows, "tables": counts}))
    else:
        click.echo(say("copied", tables=len(copied), rows=rows))
