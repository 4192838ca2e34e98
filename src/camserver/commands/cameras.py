"""`camserver camera`: the cameras of the running server, or of the one on this disk."""

import json
import time
from typing import Any

import click

from camserver.commands.asking import password_from_stdin, with_server
from camserver.commands.camera_discover import camera_discover, camera_rediscover
from camserver.commands.camera_hints import PRESET_NAMES, camera_hints, camera_presets
from camserver.commands.camera_import import camera_import
from camserver.commands.camera_probe import camera_probe, camera_test
from camserver.commands.camera_words import head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language, table
from camserver.commands.workers import camera_move, camera_pin, camera_unpin


@click.group()
def camera() -> None:
    """Add, check, find, import, list and remove cameras."""


for _command in (
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
@click.option("--name", help="Name that people read.", show_default="the id")
@click.option("--site", help="Site whose workers look at it.", default="main")
@click.option("--sub", "sub_url", help="Address of its small stream, for watching; same login.")
@click.option("--user", help="User name the camera asks for.")
@click.option("--password-stdin", is_flag=True, help="Read the camera's password from standard input.")
@click.option("--interval-sec", type=click.FloatRange(1, 86_400), help="Time between two looks.", show_default="60")
@click.option("--transport", type=click.Choice(["tcp", "udp"]), help="How RTSP video travels.", show_default="tcp")
@click.option("--tls-pin", help="SHA-256 of the camera's own certificate, for rtsps and https.")
@click.option("--rotation", type=click.Choice(["0", "90", "180", "270"]), help="Turn the picture clockwise.")
@click.option(
    "--preset",
    type=click.Choice(PRESET_NAMES),
    help="The kind of place; see: camserver camera presets",
)
@click.option("--device", help="Cameras with the same name here share a device.", show_default="host and port")
@json_option
@pass_chosen
def camera_add(
    chosen: Chosen,
    camera_id: str,
    source: str,
    name: str | None,
    site: str,
    sub_url: str | None,
    user: str | None,
    password_stdin: bool,
    interval_sec: float | None,
    transport: str | None,
    tls_pin: str | None,
    rotation: str | None,
    preset: str | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Add a camera.

    SOURCE is its address. A password is read from standard input, never from the command line. Try an address
    first with: camserver camera probe

    \b
    Examples:
      camserver camera add entrance rtsp://192.0.2.10/stream1
      camserver camera add yard rtsp://192.0.2.11/live --user viewer --password-stdin < password.txt
      camserver camera add gate rtsp://192.0.2.12/stream1 --sub rtsp://192.0.2.12/stream2 --interval-sec 5
      camserver camera add lot rtsp://192.0.2.13/stream1 --preset parking
    """
    values: dict[str, Any] = {
        "polling_interval_sec": interval_sec,
        "transport": transport,
        "tls_pin": None if tls_pin is None else tls_pin.replace(":", "").lower(),
        "rotation": None if rotation is None else int(rotation),
        "device": device,
        "hints": None if preset is None else {"preset": preset},
        "sub": None if sub_url is None else {"url": sub_url},
    }
    given = {name: value for name, value in values.items() if value is not None}
    password = password_from_stdin(password_stdin)
    made = with_server(
        chosen,
        lambda server: server.add_camera(camera_id, name or camera_id, source, user, password, site=site, **given),
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
    looked = age(latest.get("captured_at"), now_ms)
    if latest and latest.get("status") != "ok":
        looked += f" {latest.get('error_code') or latest.get('status')}"
    every = one.get("polling_interval_sec")
    return (
        str(one.get("camera_id", "")),
        str(one.get("name", "")),
        state,
        _health(one.get("health") or {}),
        looked,
        str(caps.get("codec") or "-"),
        str(caps.get("res") or "-"),
        "-" if every is None else f"{every:g} s",
        _preset(one.get("own") or {}),
    )


def _preset(own: dict[str, Any]) -> str:
    """The camera's preset, with a sign for what is said beside it."""
    hints = own.get("hints") or {}
    more = any(value is not None for name, value in hints.items() if name != "preset")
    return f"{hints.get('preset') or '-'}{' +' if more else ''}"


def _health(health: dict[str, Any]) -> str:
    """Whether it works; why not, and what else is wrong, in the terminal's language."""
    label = f"label_{reader_language()}"
    words = [health["cause"][label]] if health.get("cause") else []
    words += [issue[label] for issue in health.get("issues") or () if label in issue]
    return str(health.get("state") or "-") + (f" ({', '.join(dict.fromkeys(words))})" if words else "")


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
