"""`camserver camera show` and `picture`: everything about one camera, and its newest picture as a file."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.commands.asking import with_server
from camserver.commands.camera_words import label, say
from camserver.commands.corners import corners_shown
from camserver.commands.picture_file import keep
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, reader_language

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

# Values of its own that are shown apart, because they are no single words.
_DRAWN = ("ignore_masks", "privacy_masks", "zones", "hints")


@click.command("show")
@click.argument("camera_id")
@json_option
@pass_chosen
def camera_show(chosen: Chosen, camera_id: str, as_json: bool) -> None:
    """Show everything that is known of a camera.

    Its address and values, who looks at it, whether it works, and what its last probe found. Passwords are never
    shown.

    \b
    Examples:
      camserver camera show entrance
      camserver camera show entrance --json
    """
    camera = with_server(chosen, lambda server: server.camera(camera_id))
    if as_json:
        click.echo(json.dumps(camera, ensure_ascii=False))
        return
    rows = list(_rows(camera, int(time.time() * 1000)))
    for name, value in rows:
        click.echo(f"{name}: {value}")


@click.command("picture")
@click.argument("camera_id")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the picture.",
    show_default="a new one in the folder for temporary files",
)
@click.option("--grid", is_flag=True, help="Draw a grid to read the corners of masks and zones from.")
@json_option
@pass_chosen
def camera_picture(chosen: Chosen, camera_id: str, output: Path | None, grid: bool, as_json: bool) -> None:
    """Save the newest picture of a camera.

    With --grid it has lines at each twentieth of its width and height, and numbers at each tenth: those are the
    shares that --mask, --privacy-mask, --zone and --shelf take.

    \b
    Examples:
      camserver camera picture entrance -o entrance.jpg
      camserver camera picture entrance -o entrance-grid.jpg --grid
    """

    async def work(server: "LocalServer") -> tuple[dict[str, Any], bytes]:
        camera = await server.camera(camera_id)
        return camera, await server.picture(f"/api/cameras/{quote(camera_id, safe='')}/latest.jpg")

    camera, jpeg = with_server(chosen, work)
    if grid:
        from camserver.media.grid_picture import draw_grid

        jpeg = draw_grid(jpeg)
    file = keep(jpeg, output, "camserver-picture-")
    captured_at = (camera.get("latest_picture") or {}).get("captured_at")
    if as_json:
        click.echo(json.dumps({"camera_id": camera_id, "picture": file, "captured_at": captured_at}))
        return
    click.echo(say("picture_saved", file=file, age=age(captured_at, int(time.time() * 1000))))


def preset_shown(own: dict[str, Any]) -> str:
    """The camera's preset, with a sign for what is said beside it."""
    hints = own.get("hints") or {}
    more = any(value is not None for name, value in hints.items() if name != "preset")
    return f"{hints.get('preset') or '-'}{' +' if more else ''}"


def health_shown(health: dict[str, Any]) -> str:
    """Whether it works; why not, and what else is wrong, in the terminal's language."""
    language = f"label_{reader_language()}"
    words = [health["cause"][language]] if health.get("cause") else []
    words += [issue[language] for issue in health.get("issues") or () if language in issue]
    return str(health.get("state") or "-") + (f" ({', '.join(dict.fromkeys(words))})" if words else "")


def _rows(camera: dict[str, Any], now_ms: int) -> Iterator[tuple[str, str]]:
    own = camera.get("own") or {}
    yield label("id"), camera["camera_id"]
    yield label("name"), camera["name"]
    yield label("site"), camera["site"]
    for name in ("source", "sub"):
        if stream := camera.get(name):
            login = f" ({label('with_login')})" if stream["has_credentials"] else ""
            yield label(name), f"{stream['url']}{login}"
    reason = f" ({camera['state_reason']})" if camera.get("state_reason") else ""
    yield label("state"), say("off") if not camera["enabled"] else f"{camera['state']}{reason}"
    yield label("holder"), camera.get("worker_id") or "-"
    health = camera["health"]
    since = f", {age(health['since'], now_ms)}" if health.get("since") else ""
    yield label("health"), f"{health_shown(health)}{since}"
    latest = camera.get("latest") or {}
    fault = f" {latest.get('error_code') or latest['status']}" if latest and latest["status"] != "ok" else ""
    yield label("looked"), f"{age(latest.get('captured_at'), now_ms)}{fault}"
    if failed := camera.get("stream_fault"):
        over = "" if failed["over_at"] is None else f" ({label('over')})"
        yield label("stream_fault"), f"{stream_fault_shown(failed)}, {age(failed['at'], now_ms)}{over}"
    yield label("caps"), caps_shown(camera.get("caps") or {})
    yield label("probed"), probed_shown(camera, now_ms)
    yield label("interval"), f"{camera['polling_interval_sec']:g} s"
    yield label("do_not_process"), label("yes" if camera["do_not_process"] else "no")
    # These keep the names that the API, the import and `camera change` know them by.
    for name, value in own.items():
        if value is not None and name not in _DRAWN:
            yield name, json.dumps(value) if isinstance(value, bool) else str(value)
    for name in ("ignore_masks", "privacy_masks"):
        for points in own.get(name) or ():
            yield name, corners_shown(points)
    for zone in own.get("zones") or ():
        yield "zone", f"{zone['name']}={corners_shown(zone['points'])}"
    yield label("preset"), preset_shown(own)


def stream_fault_shown(fault: dict[str, Any]) -> str:
    """Which of its two streams failed, and why, in the terminal's language."""
    return f"{fault['stream']}: {fault['cause'][f'label_{reader_language()}']}"


def probed_shown(camera: dict[str, Any], now_ms: int) -> str:
    """When it was probed, and what was wrong then."""
    error = (camera.get("caps") or {}).get("error")
    return age(camera.get("last_probe_at"), now_ms) + (f" {error}" if error else "")


def caps_shown(caps: dict[str, Any]) -> str:
    """What its last probe found, in one line."""
    words = [str(caps[name]) for name in ("codec", "res") if caps.get(name)]
    if caps.get("width") and caps.get("height"):
        words.append(f"{caps['width']}x{caps['height']}")
    if caps.get("fps"):
        words.append(f"{caps['fps']:g} fps")
    if sub := caps.get("sub"):
        words.append(f"(sub: {caps_shown(sub)})")
    return " ".join(words) or "-"
