"""Commands that run something: everything, one service, or simulated cameras."""

import sys
from typing import TYPE_CHECKING

import click

from camserver.base.secrets import scrub
from camserver.commands.root import Chosen, pass_chosen
from camserver.commands.worker_identity import worker_enroll, worker_revoke, worker_token
from camserver.commands.workers import worker_drain, worker_list, worker_quota, worker_undrain

if TYPE_CHECKING:
    from camserver.config import Settings


@click.command()
@click.option("--demo", is_flag=True, help="Show made-up cameras, to look around without one.")
@pass_chosen
def up(chosen: Chosen, demo: bool) -> None:
    """Run everything on this machine until Ctrl-C or SIGTERM.

    Each process is started again when it dies; all stop within 10 seconds.

    \b
    Examples:
      camserver up
      camserver --data-dir /srv/camserver up
    """
    from camserver import processes

    settings = chosen.settings()
    _refuse_unpriced(settings)
    gave_up = processes.up(settings, chosen.as_options(), lambda: _greet(settings), demo)
    if gave_up is not None:
        click.secho(f"error: {gave_up.child} can't go on: {scrub(gave_up.last_line)}", fg="red", err=True)
        sys.exit(gave_up.exit.value)


def _refuse_unpriced(settings: "Settings") -> None:
    """Said before anything is started, not as a line of the log."""
    from camserver.clients.llm.opening import refuse_unpriced

    refuse_unpriced(settings.llm)


def _greet(settings: "Settings") -> None:
    """Says where to go next; on a terminal with the set-up link itself, for the eyes of whoever sits there."""
    click.secho(f"\ncamserver is ready: {settings.server.public_url}", fg="green", bold=True, err=True)
    link = settings.server.data_dir / "setup-link.txt"
    if link.exists() and sys.stderr.isatty():
        click.echo(f"Nobody can sign in yet. Make the admin account within one hour:\n  {link.read_text()}", err=True)
    elif link.exists():
        click.echo(f"Nobody can sign in yet: the link that makes the admin account is in {link}", err=True)


# Command → the parts it runs in one process, what its help says, an example.
_SERVICES = {
    "server": (
        ("control", "dispatcher", "web"),
        "Run control, dispatcher and web in one process.",
        "camserver server",
    ),
    "control": (
        ("control",),
        "Run the workers' side of the server alone.",
        "CAMSERVER_STORE_URL=postgresql://cam@db/cam camserver control",
    ),
    "dispatcher": (
        ("dispatcher",),
        "Run the dispatcher alone: it has pictures analyzed.",
        "CAMSERVER_STORE_URL=postgresql://cam@db/cam camserver dispatcher",
    ),
    "web": (
        ("web",),
        "Run the API and the web pages alone.",
        "CAMSERVER_WEB_PORT=9090 camserver web",
    ),
    "streamer": (
        ("streamer",),
        "Run a streamer: it shows live video to browsers.",
        "CAMSERVER_STREAMER_PUBLIC_URL=https://cams.example.com camserver streamer",
    ),
    "worker": (
        ("worker",),
        "Run a worker: it looks at cameras and sends what it sees.",
        "CAMSERVER_WORKER_SERVER_URL=http://127.0.0.1:8081 camserver worker",
    ),
    "analyzer": (
        ("analyzer",),
        "Run an analyzer: it says what a picture shows.",
        "CAMSERVER_ANALYZER_WORKERS=4 camserver analyzer",
    ),
}


def _service(name: str, parts_run: tuple[str, ...], purpose: str, example: str) -> click.Command:
    @pass_chosen
    def serve(chosen: Chosen) -> None:
        from camserver import parts

        settings = chosen.settings()
        if "dispatcher" in parts_run:
            _refuse_unpriced(settings)
        parts.serve(name, parts_run, settings)

    text = f"{purpose} It runs until SIGTERM or Ctrl-C and stops within 10 seconds.\n\n\b\nExample:\n  {example}"
    return click.Command(name, callback=serve, help=text, short_help=purpose)


def _worker_group(run: click.Command) -> click.Group:
    """`camserver worker` alone runs a worker; with a word behind it, it sees to those of the server."""

    def serve(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(run)

    group = click.Group(
        run.name,
        callback=click.pass_context(serve),
        invoke_without_command=True,
        help=run.help,
        short_help=run.short_help,
    )
    group.add_command(_worker_run(run))
    for command in (worker_list, worker_drain, worker_undrain, worker_quota):
        group.add_command(command)
    for command in (worker_token, worker_enroll, worker_revoke):
        group.add_command(command)
    return group


def _worker_run(run: click.Command) -> click.Command:
    """The same by a name of its own, for those who look for it."""
    text = (
        "Run a worker, as `camserver worker` does: beside its server, or at another site with the certificate of "
        "`camserver worker enroll`.\n\n\b\nExample:\n"
        "  CAMSERVER_WORKER_SERVER_URL=https://cams.example.com:8443 camserver worker run"
    )
    return click.Command("run", callback=run.callback, help=text, short_help="Run a worker.")


services = [_service(name, *described) for name, described in _SERVICES.items()]
services = [_worker_group(one) if one.name == "worker" else one for one in services]


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8554, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes any free one.")
@click.option("--user", help="User name the cameras ask for; needs --password-stdin.")
@click.option("--password-stdin", is_flag=True, help="Read the cameras' password from standard input.")
@click.option(
    "--camera",
    "cameras",
    multiple=True,
    metavar="NAME=SHOWS",
    show_default="one for every scene",
    help="A camera that shows a video file, or scene:quiet, scene:night or scene:moving.",
)
@click.option(
    "--offline",
    multiple=True,
    metavar="NAME=EVERY/FOR",
    help="A camera that is away now and then, in seconds.",
)
@pass_chosen
def simulate(
    chosen: Chosen,
    host: str,
    port: int,
    user: str | None,
    password_stdin: bool,
    cameras: tuple[str, ...],
    offline: tuple[str, ...],
) -> None:
    """Play videos or made-up scenes as RTSP cameras.

    For people without cameras, and for tests. Each camera has a main stream and a smaller one at …/sub. Videos that
    no camera would send as they are get encoded once. It runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      camserver simulate
      camserver simulate --camera street=street.mp4 --camera yard=scene:night --offline yard=120/30
      camserver simulate --user viewer --password-stdin < password.txt
    """
    from camserver import parts
    from camserver.base.secrets import Secret

    if (user is not None) != password_stdin:
        raise click.UsageError("--user and --password-stdin go together")
    login = None if user is None else (user, Secret(sys.stdin.readline().rstrip("\r\n")))
    parts.simulate(chosen.settings(), cameras, offline, (host, port), login, lambda urls: click.echo("\n".join(urls)))
