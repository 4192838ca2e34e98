"""`camserver check`: everything about the installation."""

import asyncio
import json
from dataclasses import asdict

import click

from camserver.base.errors import CheckFailed
from camserver.commands.care_words import say
from camserver.commands.progress import bars
from camserver.commands.root import Chosen, json_option, pass_chosen


@click.command()
@click.option("--fix", is_flag=True, help="Repair what is safe to repair.")
@click.option("--no-objects", is_flag=True, help="Leave pictures and clips out, which take a while.")
@json_option
@pass_chosen
def check(chosen: Chosen, fix: bool, no_objects: bool, as_json: bool) -> None:
    """Check the installation: rows, objects, disk, clock, keys.

    Looks at the settings, versions, the database with its leases and orphans, secrets, certificates, the clock, the
    disks, and at objects and rows both ways. It reads only, beside a running server too. With --fix it repairs what
    loses nothing; on SQLite the server must be stopped for that. Ends with 12 when there are problems left; warnings
    alone are no failure.

    \b
    Examples:
      camserver check
      camserver check --no-objects --json
      camserver check --fix
    """
    from camserver.care.checks import AREAS, run_checks
    from camserver.care.ownership import handed_over

    settings = chosen.settings()
    with bars() as shown, handed_over(settings):
        found = asyncio.run(
            run_checks(settings, not no_objects, fix, lambda what, done, total: shown.tell(say(what), done, total))
        )
    left = [one for one in found if one.level == "problem" and not one.fixed]
    if as_json:
        click.echo(json.dumps({"ok": not left, "found": [asdict(one) for one in found]}, ensure_ascii=False))
    else:
        for area in AREAS:
            of_area = [one for one in found if one.area == area]
            if not of_area:
                click.echo(f"{area:<13}ok")
            for one in of_area:
                note = f" ({say('fixed')})" if one.fixed else ""
                colour = "green" if one.fixed else "red" if one.level == "problem" else "yellow"
                click.secho(f"{area:<13}{one.level} {one.kind}: {one.message}{note}", fg=colour)
        if not found:
            click.echo(say("fine"))
    if left:
        raise CheckFailed(say("problems", count=len(left)))
