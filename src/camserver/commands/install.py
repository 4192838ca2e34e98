"""`camserver install`: as services of a machine with systemd."""

import sys
from pathlib import Path

import click

from camserver.commands.care_words import say
from camserver.commands.root import Chosen, pass_chosen


@click.command()
@click.option("--systemd", is_flag=True, required=True, help="As units of systemd, the one way there is.")
@click.option(
    "--services",
    type=click.Choice(["one", "fleet", "site"]),
    default="one",
    help="one: everything on this machine; fleet: a server beside others; site: a worker only.",
)
@click.option("--program", help="The camserver that the units start.", show_default="this one")
@click.option("--no-enable", is_flag=True, help="Do not have them started when the machine starts, only by hand.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option(
    "--root", type=click.Path(file_okay=False, path_type=Path), help="Write below this folder and run nothing."
)
@pass_chosen
def install(
    chosen: Chosen,
    systemd: bool,
    services: str,
    program: str | None,
    no_enable: bool,
    dry_run: bool,
    root: Path | None,
) -> None:
    """Install the services of this machine.

    Makes the user camserver, /var/lib/camserver, /etc/camserver with a configuration to begin with (one that is there
    stays as it is) and the units cam-….service with camserver.target. Run it again after an upgrade.

    \b
    Examples:
      camserver install --systemd --dry-run
      camserver install --systemd
      camserver install --systemd --services site
    """
    from camserver.care import install as installing
    from camserver.care.systemd_units import Where

    started = program or str(Path(sys.argv[0]).absolute())
    where = Where(program=started, addresses=_addresses(chosen))
    if chosen.data_dir is not None:
        where = Where(program=started, data_dir=str(chosen.data_dir.absolute()), addresses=where.addresses)
    has_user = root is not None or installing.has_user()
    steps = installing.plan(services, where, has_user, not no_enable)
    if dry_run:
        for step in steps:
            _show(step)
        return
    installing.carry_out(steps, root, lambda what, name: click.echo(say(what, path=name, command=name)))
    click.echo(say("installed_site" if services == "site" else "installed", unit="camserver.target"))


def _addresses(chosen: Chosen) -> dict[str, str]:
    """Where web and control listen by the configuration that is in force here."""
    from camserver.base.hosts import in_address

    settings = chosen.settings()
    return {
        "web.port": f"{in_address(settings.web.host)}:{settings.web.port}",
        "control.port": f"{in_address(settings.control.host)}:{settings.control.port}",
    }


def _show(step: object) -> None:
    from camserver.care.install import Command, File, Folder

    if isinstance(step, Command):
        click.echo(say("would_run", command=step.shown))
    elif isinstance(step, Folder):
        click.echo(say("would_write", path=f"{step.path}/", mode=f"{step.mode:04o}"))
    elif isinstance(step, File):
        click.echo(say("would_write", path=step.path, mode=f"{step.mode:04o}"))
        click.echo(step.content)
