"""`camserver camera`: the cameras of the running server, or of the one on this disk."""

import json
import sys

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen


@click.group()
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
    made = with_server(
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
    cameras = with_server(chosen, lambda server: server.cameras())
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
    with_server(chosen, lambda server: server.remove_camera(camera_id))
    click.echo(f"Removed {camera_id}.")
