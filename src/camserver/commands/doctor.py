"""`camserver doctor`: a report to attach to a bug."""

import asyncio
import os
from pathlib import Path

import click

from camserver.base.errors import BadInput
from camserver.commands.care_words import say
from camserver.commands.root import Chosen, pass_chosen


@click.command()
@click.option("--output", "-o", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
              show_default="camserver-doctor-TIME.txt", help="Where to write the report; - prints it.")  # fmt: skip
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(path_type=Path),
    show_default="the journal of cam-* units",
    help="A log file whose end goes into it.",
)
@pass_chosen
def doctor(chosen: Chosen, output: Path | None, logs: tuple[Path, ...]) -> None:
    """Write one report to attach to a bug, without secrets.

    It holds versions, settings, what a running server says of itself, checks, sizes of tables, room on disks and the
    end of the logs. Secrets are masked; names and addresses of cameras are not, so read it before you send it.

    \b
    Examples:
      camserver doctor
      camserver doctor -o report.txt --log /var/log/camserver.log
    """
    from camserver.care.doctor import file_name, report

    target = output or Path(file_name())
    if str(target) != "-" and target.exists():
        raise BadInput(f"{target} is there already; choose another file with --output")
    text = asyncio.run(report(chosen.settings(), logs))
    if str(target) == "-":
        click.echo(text)
        return
    with os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text + "\n")
    click.echo(say("report", file=target))
