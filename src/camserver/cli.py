"""The `camserver` command: commands, options and help. What they do is elsewhere.

Everything beyond click is imported inside the command that needs it, so that help and completion stay fast.
Global options and errors are in `cli_root.py`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from camserver import __version__
from camserver.base.errors import CheckFailed
from camserver.base.exits import Exit
from camserver.base.secrets import scrub
from camserver.cli_root import Chosen, Commands, find_config, json_option, pass_chosen

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer
    from camserver.config import Settings

T = TypeVar("T")

_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code.value:>2}  {code.meaning}" for code in Exit)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
    epilog=_EXIT_CODES,
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default="./camserver.toml, else $CAMSERVER_CONFIG, else /etc/camserver/camserver.toml",
    help="The configuration file.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    show_default="server.data_dir",
    help="The folder camserver keeps everything in.",
)
@click.pass_context
def main(ctx: click.Context, config: Path | None, data_dir: Path | None) -> None:
    """camserver looks at cameras, remembers what it saw and tells you what matters.

    \b
    Examples:
      camserver up
      camserver config show
      camserver camera add entrance rtsp://192.0.2.10/stream1
    """
    ctx.obj = Chosen(find_config(config), data_dir)


@main.command()
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
    from camserver import parts

    settings = chosen.settings()
    gave_up = parts.up(settings, chosen.as_options(), lambda: _greet(settings), demo)
    if gave_up is not None:
        click.secho(f"error: {gave_up.child} can't go on: {scrub(gave_up.last_line)}", fg="red", err=True)
        sys.exit(gave_up.exit.value)


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


def _add_service(name: str, parts_run: tuple[str, ...], purpose: str, example: str) -> None:
    @pass_chosen
    def serve(chosen: Chosen) -> None:
        from camserver import parts

        parts.serve(name, parts_run, chosen.settings())

    text = f"{purpose} It runs until SIGTERM or Ctrl-C and stops within 10 seconds.\n\n\b\nExample:\n  {example}"
    main.add_command(click.Command(name, callback=serve, help=text, short_help=purpose))


for _name, _service in _SERVICES.items():
    _add_service(_name, *_service)


@main.command()
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


@main.group()
def config() -> None:
    """Look at and check the settings."""


@config.command("show")
@json_option
@pass_chosen
def config_show(chosen: Chosen, as_json: bool) -> None:
    """Print every setting and where its value came from.

    Secrets are masked.

    \b
    Examples:
      camserver config show
      camserver config show --json
    """
    from camserver import config as configuration

    shown = configuration.describe(chosen.settings())
    if as_json:
        click.echo(configuration.as_json(shown))
        return
    for one in shown:
        click.echo(f"{one.section}.{one.key} = {one.text}" + click.style(f"  ({one.source})", dim=True))


@config.command("check")
@pass_chosen
def config_check(chosen: Chosen) -> None:
    """Check the settings without starting anything.

    All problems are listed at once.

    \b
    Example:
      camserver --config camserver.toml config check
    """
    settings = chosen.settings()
    for warning in settings.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    source = settings.config_file or "no file: defaults and environment"
    click.echo(f"The settings are fine ({source}).")


@main.group()
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
@json_option
@pass_chosen
def db_check(chosen: Chosen, as_json: bool) -> None:
    """Check that the database is what camserver takes it for.

    Looks at the schema and at what rows promise each other; changes nothing. A SQLite database can't be checked
    while a camserver runs on it.

    \b
    Examples:
      camserver db check
      camserver db check --json
    """
    from camserver.store.check import check_database

    findings = asyncio.run(check_database(chosen.settings().store.url))
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


def _with_server(chosen: Chosen, call: Callable[["LocalServer"], Awaitable[T]]) -> T:
    """Calls the API of the running server, or of one that is there just for this call."""
    from camserver import parts

    async def work() -> T:
        async with parts.tool_server(chosen.settings()) as server:
            return await call(server)

    return asyncio.run(work())


@main.command("setup-link")
@json_option
@pass_chosen
def setup_link(chosen: Chosen, as_json: bool) -> None:
    """Print a new one-time link for the first administrator.

    It makes the administrator's account while there is none. It works once, within an hour, and replaces the
    one before.

    \b
    Example:
      camserver setup-link
    """
    link = _with_server(chosen, lambda server: server.new_setup_link())
    click.echo(json.dumps(link) if as_json else link["url"])


@main.group()
def camera() -> None:
    """Add, list and remove cameras."""


@camera.command("add")
@click.argument("camera_id")
@click.argument("source")
@click.option("--name", help="Name that people read.", show_default="the id")
@click.option("--user", help="User name the camera asks for.")
@click.option("--interval-sec", type=click.FloatRange(1, 86_400), help="Time between two looks.", show_default="60")
@click.option("--password-stdin", is_flag=True, help="Read the camera's password from standard input.")
@json_option
@pass_chosen
def camera_add(
    chosen: Chosen,
    camera_id: str,
    source: str,
    name: str | None,
    user: str | None,
    interval_sec: float | None,
    password_stdin: bool,
    as_json: bool,
) -> None:
    """Add a camera.

    SOURCE is its address. A password is read from standard input, never from the command line.

    \b
    Examples:
      camserver camera add entrance rtsp://192.0.2.10/stream1
      camserver camera add yard rtsp://192.0.2.11/live --user viewer --password-stdin < password.txt
    """
    from camserver.base.secrets import Secret

    password = Secret(sys.stdin.readline().rstrip("\r\n")) if password_stdin else None
    made = _with_server(
        chosen,
        lambda server: server.add_camera(
            camera_id, name or camera_id, source, user, password, polling_interval_sec=interval_sec
        ),
    )
    click.echo(json.dumps(made, ensure_ascii=False) if as_json else f"Added {camera_id}.")


@camera.command("list")
@json_option
@pass_chosen
def camera_list(chosen: Chosen, as_json: bool) -> None:
    """List the cameras.

    \b
    Examples:
      camserver camera list
      camserver camera list --json
    """
    cameras = _with_server(chosen, lambda server: server.cameras())
    if as_json:
        click.echo(json.dumps(cameras, ensure_ascii=False))
        return
    for one in cameras:
        click.echo(f"{one['camera_id']}  {one.get('name', '')}")
    if not cameras:
        click.echo("No cameras yet; add one with: camserver camera add", err=True)


@camera.command("remove")
@click.argument("camera_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_chosen
def camera_remove(chosen: Chosen, camera_id: str, yes: bool) -> None:
    """Remove a camera.

    What it recorded stays until its retention ends.

    \b
    Example:
      camserver camera remove entrance --yes
    """
    if not yes:
        click.confirm(f"Remove {camera_id}?", abort=True)
    _with_server(chosen, lambda server: server.remove_camera(camera_id))
    click.echo(f"Removed {camera_id}.")


@main.command()
@json_option
def version(as_json: bool) -> None:
    """Print the version of camserver and of Python.

    \b
    Example:
      camserver version
    """
    python = ".".join(map(str, sys.version_info[:3]))
    if as_json:
        click.echo(json.dumps({"camserver": __version__, "python": python}))
    else:
        click.echo(f"camserver {__version__} (Python {python})")
