"""`camserver camera`: the cameras of the running server, or of the one on this disk."""

import json
import time
from typing import Any

import click

from camserver.commands.asking import password_from_stdin, with_server
from camserver.commands.camera_change import camera_change
from camserver.commands.camera_discover import camera_discover, camera_rediscover
from camserver.commands.camera_hints import PRESET_NAMES, camera_hints, camera_presets
from camserver.commands.camera_import import camera_import
from camserver.commands.camera_options import camera_fields, camera_options
from camserver.commands.camera_probe import camera_probe, camera_test
from camserver.commands.camera_show import (
    camera_picture,
    camera_show,
    health_shown,
    preset_shown,
    probed_shown,
    stream_fault_shown,
)
from camserver.commands.camera_words import head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, table
from camserver.commands.workers import camera_move, camera_pin, camera_unpin


@click.group()
def camera() -> None:
    """Add, change, check, find, import and remove cameras."""


for _command in (
    camera_change,
    camera_show,
    camera_picture,
    camera_probe,
    camera_test,
    camera_discover,
    camera_rediscover,
    camera_import,
    camera_hints,
    camera_presets,
    camera_move,
    camera_pin,
    camera_unpin,
):
    camera.add_command(_command)


@camera.command("add")
@click.argument("camera_id")
@click.argument("source")
@click.option("--site", help="Site whose workers look at it.", show_default="the oldest one")
@camera_options
@click.option(
    "--preset",
    type=click.Choice(PRESET_NAMES),
    help="The kind of place; see: camserver camera presets",
)
@json_option
@pass_chosen
def camera_add(
    chosen: Chosen, /, camera_id: str, source: str, site: str | None, preset: str | None, as_json: bool, **given: Any
) -> None:
    """Add a camera.

    SOURCE is its address. A password is read from standard input, never from the command line. Try an address
    first with: camserver camera probe. All of it can be changed later: camserver camera change

    \b
    Examples:
      camserver camera add entrance rtsp://192.0.2.10/stream1
      camserver camera add yard rtsp://192.0.2.11/live --user viewer --password-stdin < password.txt
      camserver camera add gate rtsp://192.0.2.12/stream1 --sub rtsp://192.0.2.12/stream2 --interval-sec 5
      camserver camera add lot rtsp://192.0.2.13/stream1 --preset parking
    """
    fields = camera_fields(given)
    if preset is not None:
        fields["hints"] = {"preset": preset}
    name, user = given["name"] or camera_id, given["user"]
    password = password_from_stdin(given["password_stdin"])
    made = with_server(
        chosen, lambda server: server.add_camera(camera_id, name, source, user, password, site=site, **fields)
    )
    click.echo(json.dumps(made, ensure_ascii=False) if as_json else say("added", camera_id=camera_id))


@camera.command("list")
@json_option
@pass_chosen
def camera_list(chosen: Chosen, as_json: bool) -> None:
    """List the cameras with state, health, last look and codec.

    \b
    Examples:
      camserver camera list
      camserver camera list --json
    """
    cameras = with_server(chosen, lambda server: server.cameras())
    if as_json:
        click.echo(json.dumps(cameras, ensure_ascii=False))
        return
    now_ms = int(time.time() * 1000)
    if cameras:
        click.echo(table(head("list"), [_row(one, now_ms) for one in cameras]))
    else:
        click.echo(say("no_cameras"), err=True)


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    latest = one.get("latest") or {}
    caps = one.get("caps") or {}
    state = str(one.get("state", ""))
    if not one.get("enabled", True):
        state = say("off")
    if reason := one.get("state_reason"):
        state += f" ({reason})"
    health = health_shown(one.get("health") or {})
    if (fault := one.get("stream_fault")) and fault["over_at"] is None:
        health += f" [{stream_fault_shown(fault)}]"
    looked = age(latest.get("captured_at"), now_ms)
    if latest and latest.get("status") != "ok":
        looked += f" {latest.get('error_code') or latest.get('status')}"
    every = one.get("polling_interval_sec")
    return (
        str(one.get("camera_id", "")),
        str(one.get("name", "")),
        state,
        health,
        looked,
        str(caps.get("codec") or "-"),
        str(caps.get("res") or "-"),
        f"{caps['fps']:g}" if caps.get("fps") else "-",
        probed_shown(one, now_ms),
        "-" if every is None else f"{every:g} s",
        preset_shown(one.get("own") or {}),
    )


@camera.command("remove")
@click.argument("camera_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_chosen
def camera_remove(chosen: Chosen, camera_id: str, yes: bool, as_json: bool) -> None:
    """Remove a camera.

    What it recorded stays until its retention ends.

    \b
    Example:
      camserver camera remove entrance --yes
    """
    if not yes:
        click.confirm(say("remove", camera_id=camera_id), abort=True, err=as_json)
    with_server(chosen, lambda server: server.remove_camera(camera_id))
    click.echo(json.dumps({"removed": camera_id}) if as_json else say("removed", camera_id=camera_id))
