"""`camserver camera probe` and `test`: what a camera sends, how long it takes, or what is wrong with it.

They ask the running server, whose worker does it. A probe can also be done here, without any server.
"""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from camserver.base.errors import CheckFailed
from camserver.base.exits import Exit
from camserver.commands.asking import password_from_stdin, revealed, with_running_server
from camserver.commands.camera_words import say, step_name
from camserver.commands.picture_file import keep
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language
from camserver.domain.diagnosis import Cause

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

# What is wrong with one stream is wrong with the other; a wrong password is not tried twice.
_OF_THE_CAMERA = frozenset({Cause.WRONG_PASSWORD.value, Cause.NEEDS_LOGIN.value, Cause.NO_ROUTE.value})
_CODECS = {"h264": "H.264", "hevc": "H.265", "mjpeg": "MJPEG", "jpeg": "JPEG"}


@click.command("probe")
@click.argument("target")
@click.option("--user", help="User name the camera asks for.")
@click.option("--password-stdin", is_flag=True, help="Read the camera's password from standard input.")
@click.option("--site", help="Site whose worker tries an address.", show_default="the oldest one")
@click.option("--transport", type=click.Choice(["tcp", "udp"]), help="How RTSP video travels.", default="tcp")
@click.option("--tls-pin", help="SHA-256 of the camera's own certificate, for rtsps and https.")
@click.option("--seconds", type=click.FloatRange(0, 20), help="How long rate and keyframes are counted.", default=4.0)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="File for the picture.",
              show_default="a new one in the folder for temporary files")  # fmt: skip
@click.option("--here", is_flag=True, help="Try an address from this machine, without a server.")
@click.option("--renew", is_flag=True, help="The camera was replaced: know it by the device that is there now.")
@json_option
@pass_chosen
def camera_probe(
    chosen: Chosen,
    target: str,
    user: str | None,
    password_stdin: bool,
    site: str | None,
    transport: str,
    tls_pin: str | None,
    seconds: float,
    picture: Path | None,
    here: bool,
    renew: bool,
    as_json: bool,
) -> None:
    """Open a camera once and say what it sends or what is wrong.

    TARGET is a camera's id or an address that need not be a camera yet. The address is opened by a worker of the
    site, so what counts is what that one can reach. Nothing is tried twice: cameras lock accounts after a few wrong
    passwords.

    \b
    Examples:
      camserver camera probe entrance
      camserver camera probe rtsp://192.0.2.10/stream1 --user viewer --password-stdin < password.txt
      camserver camera probe rtsp://192.0.2.10/stream1 --here --picture entrance.jpg
    """
    pin = None if tls_pin is None else tls_pin.replace(":", "").lower()
    if "://" not in target:
        if here or user or password_stdin:
            raise click.UsageError(
                "a camera has its own login and worker; --here, --user and --password-stdin are not for it"
            )
        probed = with_running_server(chosen, lambda server: _probe_camera(server, target, seconds, renew))
    else:
        source = {"url": target, "user": user, "password": password_from_stdin(password_stdin)}
        if here:
            probed = [asyncio.run(_probe_here(source, transport, pin, seconds))]
        else:
            body = {"source": revealed(source), "site": site, "transport": transport, "tls_pin": pin,
                    "measure_sec": seconds}  # fmt: skip
            probed = with_running_server(chosen, lambda server: _probe(server, "/api/probes", body))
    _end(probed, picture, as_json)


@click.command("test")
@click.argument("camera_id")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="File for the picture.",
              show_default="a new one in the folder for temporary files")  # fmt: skip
@json_option
@pass_chosen
def camera_test(chosen: Chosen, camera_id: str, picture: Path | None, as_json: bool) -> None:
    """Look at a camera now and time every step.

    It opens each of the camera's streams anew, as far as one picture.

    \b
    Example:
      camserver camera test entrance
    """
    probed = with_running_server(chosen, lambda server: _probe_camera(server, camera_id, 0))
    _end(probed, picture, as_json)


async def _probe(server: "LocalServer", path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    errand = await server.on_errand(path, body)
    if errand.get("has_picture"):
        errand["jpeg"] = await server.errand_picture(errand["errand_uuid"])
    return [errand]


async def _probe_camera(
    server: "LocalServer", camera_id: str, seconds: float, renew: bool = False
) -> list[dict[str, Any]]:
    """Each of its streams, as long as trying another one can tell more and does no harm."""
    camera = await server.camera(camera_id)
    probed: list[dict[str, Any]] = []
    for stream in ("main", "sub") if camera.get("sub") else ("main",):
        body: dict[str, Any] = {"stream": stream, "measure_sec": seconds}
        if renew:
            body["renew"] = True
        probed += await _probe(server, f"/api/cameras/{camera['camera_id']}/probe", body)
        if (probed[-1].get("result") or {}).get("cause") in _OF_THE_CAMERA:
            break
    return probed


async def _probe_here(source: dict[str, Any], transport: str, pin: str | None, seconds: float) -> dict[str, Any]:
    from camserver.base.secrets import Secret
    from camserver.domain.imports import without_login
    from camserver.media.addresses import AddressPolicy
    from camserver.media.digest import Login
    from camserver.media.probe import ProbeWanted, probe

    url, user, password = without_login(source["url"])
    login = None
    if user is not None and password is not None:
        login = Login(user, Secret(password))
    elif source["user"] is not None:
        login = Login(source["user"], source["password"] or Secret(""))
    scheme = urlsplit(url).scheme
    kind = {"rtsps": "rtsp", "https": "http"}.get(scheme, scheme)
    anywhere = AddressPolicy(allow_loopback=True)
    done = await probe(ProbeWanted(kind, url, login, transport, pin, measure_sec=seconds, addresses=anywhere))
    result = {
        "cause": done.cause.value,
        "said_ja": done.said.ja,
        "said_en": done.said.en,
        "steps": [asdict(step) for step in done.steps],
        "stream": None if done.caps is None else {**asdict(done.caps), "transport": transport},
    }
    return {"state": "done" if done.ok else "failed", "message": done.said.en, "result": result, "jpeg": done.jpeg}


def _end(probed: list[dict[str, Any]], picture: Path | None, as_json: bool) -> None:
    for number, errand in enumerate(probed):
        jpeg = errand.pop("jpeg", b"")
        # Its sub stream shows the same: one picture is enough.
        if jpeg and not number:
            errand["picture"] = keep(jpeg, picture, "camserver-probe-")
    failed = [errand for errand in probed if errand["state"] != "done"]
    if as_json:
        click.echo(json.dumps({"ok": not failed, "probes": probed}, ensure_ascii=False))
        click.get_current_context().exit(Exit.CHECK_FAILED.value if failed else 0)
    for errand in probed:
        _show_probe(errand)
    if failed:
        raise CheckFailed(said_of(failed[0]))


def _show_probe(errand: dict[str, Any]) -> None:
    result = errand.get("result") or {}
    camera_id = errand.get("camera_id")
    if stream := result.get("stream"):
        kind = f" ({result['stream_kind']})" if result.get("stream_kind") else ""
        click.echo(f"{camera_id or say('the_camera')}{kind}: {_stream_words(stream)}")
    if steps := result.get("steps"):
        each = ", ".join(say("step", step=step_name(one["name"]), value=one["took_ms"]) for one in steps)
        click.echo(f"  {each}; {say('in_all', value=sum(one['took_ms'] for one in steps))}")
    if errand.get("picture"):
        click.echo(say("picture", file=errand["picture"]))
    if result.get("other_reference"):
        click.echo(say("other_device"))
    if seen_at := result.get("seen_at"):
        click.echo(say("seen_at", address=seen_at, camera_id=camera_id))


def _stream_words(stream: dict[str, Any]) -> str:
    words = [f"{_CODECS.get(stream['codec'], stream['codec'])} {stream['width']}x{stream['height']}"]
    for key, name in (("fps", "fps"), ("gop", "gop_sec"), ("kbit", "kbit_per_sec")):
        if stream.get(name) is not None:
            words.append(say(key, value=f"{stream[name]:g}"))
    if stream.get("has_audio"):
        words.append(say("sound"))
    return ", ".join([*words, say("transport", value=str(stream.get("transport", "tcp")).upper())])


def said_of(errand: dict[str, Any]) -> str:
    result = errand.get("result") or {}
    return str(result.get(f"said_{reader_language()}") or errand.get("message") or errand["state"])
