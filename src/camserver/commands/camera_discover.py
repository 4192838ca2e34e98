"""`camserver camera discover` and `rediscover`: ONVIF cameras in the network, their streams, and one that moved."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from camserver.base.errors import CheckFailed
from camserver.base.exits import Exit
from camserver.commands.asking import password_from_stdin, revealed, with_running_server
from camserver.commands.camera_probe import said_of
from camserver.commands.camera_words import head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import table

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer


@click.command("discover")
@click.option("--site", help="Site whose worker looks around.", show_default="the oldest one")
@click.option("--host", "hosts", multiple=True, help="Also ask this IP address by itself. May be given again.")
@click.option("--seconds", type=click.FloatRange(0.2, 20), help="How long answers are waited for.", default=4.0)
@click.option("--device", help="Ask this device (host or host:port) for its streams instead.")
@click.option("--user", help="User name of that device.")
@click.option("--password-stdin", is_flag=True, help="Read its password from standard input.")
@json_option
@pass_chosen
def camera_discover(
    chosen: Chosen,
    site: str | None,
    hosts: tuple[str, ...],
    seconds: float,
    device: str | None,
    user: str | None,
    password_stdin: bool,
    as_json: bool,
) -> None:
    """Find ONVIF cameras in the network, and their streams.

    Looking around sends no password to anybody.

    \b
    Examples:
      camserver camera discover
      camserver camera discover --device 192.0.2.10 --user viewer --password-stdin < password.txt
    """
    body: dict[str, Any] = {"site": site, "hosts": list(hosts), "wait_sec": seconds}
    if device is not None:
        body = {
            "site": site,
            "device": revealed({"url": device, "user": user, "password": password_from_stdin(password_stdin)}),
        }

    async def work(server: "LocalServer") -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return await server.on_errand("/api/discovery", body), await server.cameras()

    errand, cameras = with_running_server(chosen, work)
    _fail_or_json(errand, as_json)
    if as_json:
        return
    result = errand["result"]
    if device is not None:
        _show_profiles(result)
    elif result["devices"]:
        click.echo(table(head("devices"), [_device_row(one, cameras) for one in result["devices"]]))
    else:
        click.echo(say("no_devices"), err=True)


@click.command("rediscover")
@click.argument("camera_id")
@click.option("--apply", "is_applied", is_flag=True, help="Change the camera's address to the one found.")
@json_option
@pass_chosen
def camera_rediscover(chosen: Chosen, camera_id: str, is_applied: bool, as_json: bool) -> None:
    """Find a camera again whose address has changed.

    It is known by its ONVIF reference, which an earlier probe has noted. Its login goes to the new address only after
    the device there has proven to be the same and has taken the login as a digest.

    \b
    Examples:
      camserver camera rediscover entrance
      camserver camera rediscover entrance --apply
    """

    async def work(server: "LocalServer") -> dict[str, Any]:
        path = f"/api/cameras/{camera_id}"
        errand = await server.on_errand(f"{path}/rediscover", {})
        devices = errand.get("result", {}).get("devices") or []
        if errand["state"] != "done" or not devices:
            return errand | {
                "state": "failed",
                "message": errand["message"] or say("no_sighting"),
            }
        url = ((await server.camera(camera_id)).get("source") or {}).get("url", "")
        here = urlsplit(url).hostname
        # A device with several addresses that still has the known one has not moved.
        address = next((one["address"] for one in devices if one["address"] == here), devices[0]["address"])
        if not is_applied or address == here:
            return errand | {"address": address, "moved": False}
        checked = await server.on_errand(f"{path}/probe", {"at": address, "measure_sec": 0})
        if checked["state"] == "done":
            await server.post(f"{path}/move", {"errand_uuid": checked["errand_uuid"]})
        return checked | {"address": address, "moved": checked["state"] == "done"}

    errand = with_running_server(chosen, work)
    _fail_or_json(errand, as_json)
    if not as_json:
        key = "moved" if errand["moved"] else "in_place" if is_applied else "not_moved"
        click.echo(say(key, camera_id=camera_id, address=errand["address"]))


def _fail_or_json(errand: dict[str, Any], as_json: bool) -> None:
    failed = errand["state"] != "done"
    if as_json:
        click.echo(json.dumps(errand, ensure_ascii=False))
        click.get_current_context().exit(Exit.CHECK_FAILED.value if failed else 0)
    if failed:
        raise CheckFailed(said_of(errand))


def _device_row(one: dict[str, Any], cameras: list[dict[str, Any]]) -> tuple[str, ...]:
    known = [camera["camera_id"] for camera in cameras if _is_of(camera, one)]
    return (one["address"], one["name"] or "-", one["hardware"] or "-", ", ".join(known) or "-", one["reference"])


def _is_of(camera: dict[str, Any], device: dict[str, Any]) -> bool:
    onvif = (camera.get("caps") or {}).get("onvif") or {}
    url = (camera.get("source") or {}).get("url", "")
    return bool(onvif.get("reference") == device["reference"] or urlsplit(url).hostname == device["address"])


def _show_profiles(result: dict[str, Any]) -> None:
    device = result["device"]
    click.echo(
        f"{device['manufacturer']} {device['model']}, firmware {device['firmware']}, serial {device['serial']}"
    )
    use = {result["main"]: "main", result["sub"]: "sub"}
    rows = [
        (one["name"] or one["token"], one["codec"], f"{one['width']}x{one['height']}",
         "-" if one["fps"] is None else f"{one['fps']:g}", use.get(one["token"], ""), one["stream_url"])
        for one in result["profiles"]
    ]  # fmt: skip
    click.echo(table(head("profiles"), rows))
    main = next((one for one in result["profiles"] if one["token"] == result["main"]), None)
    sub = next((one for one in result["profiles"] if one["token"] == result["sub"]), None)
    if main is not None:
        extra = f" --sub '{sub['stream_url']}'" if sub is not None else ""
        command = f"camserver camera add ID '{main['stream_url']}'{extra} --user USER --password-stdin"
        click.echo(say("add_with", command=command))
