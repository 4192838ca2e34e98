"""`camserver camera change`: other values for a camera that is there."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import password_from_stdin, with_server
from camserver.commands.camera_options import RESETTABLE, camera_fields, camera_options, reset_fields
from camserver.commands.camera_words import say
from camserver.commands.root import Chosen, json_option, pass_chosen

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer


@click.command("change")
@click.argument("camera_id")
@click.option("--url", help="Its new address.")
@camera_options
@click.option("--site", help="Site whose workers look at it.")
@click.option("--on/--off", "enabled", default=None, help="Switch it on or off.")
@click.option("--no-sub", is_flag=True, help="It has no small stream any more.")
@click.option("--no-login", is_flag=True, help="Forget its user name and password.")
@click.option("--no-masks", is_flag=True, help="Forget where the gate does not look.")
@click.option("--no-privacy-masks", is_flag=True, help="Forget what is black.")
@click.option("--no-zones", is_flag=True, help="The gate looks everywhere again.")
@click.option(
    "--default",
    "defaults",
    multiple=True,
    type=click.Choice(RESETTABLE),
    help="Back to the configured value; may be repeated.",
)
@json_option
@pass_chosen
def camera_change(chosen: Chosen, /, camera_id: str, as_json: bool, **given: Any) -> None:
    """Change a camera; what is not given stays as it is.

    Its worker goes on with the new values at once. Masks of a kind, and zones, replace those there were; repeat the
    option to give several. Corners are shares of the picture's width and height, 0,0 at the upper left; read them
    from: camserver camera picture ID --grid. An address at another host needs the login again, which is never sent
    to a host that it was not given for.

    \b
    Examples:
      camserver camera change entrance --user viewer --password-stdin < password.txt
      camserver camera change entrance --url rtsp://192.0.2.20/stream1 --interval-sec 5
      camserver camera change yard --mask '0,0 1,0 1,0.2 0,0.2' --mask '0.7,0.5 1,0.5 1,1 0.7,1'
      camserver camera change yard --off
      camserver camera change yard --no-masks --default interval-sec
    """
    body = _change(given)
    if not body:
        raise click.UsageError(say("nothing_to_change"))

    async def work(server: "LocalServer") -> dict[str, Any]:
        return await server.patch(f"/api/cameras/{quote(camera_id, safe='')}", body)

    changed = with_server(chosen, work)
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", camera_id=camera_id))


def _change(given: dict[str, Any]) -> dict[str, Any]:
    """The request; BadInput when two things that were given say different things."""
    body = camera_fields(given)
    for name in ("name", "site", "enabled"):
        if given[name] is not None:
            body[name] = given[name]
    if given["url"] is not None:
        body["source"] = {"url": given["url"]}
    removals = {
        "--no-sub": ("sub", given["no_sub"]),
        "--no-masks": ("ignore_masks", given["no_masks"]),
        "--no-privacy-masks": ("privacy_masks", given["no_privacy_masks"]),
        "--no-zones": ("zones", given["no_zones"]),
    }
    gone = {field: option for option, (field, is_given) in removals.items() if is_given}
    gone |= {field: "--default" for field in reset_fields(given["defaults"])}
    if twice := sorted(body.keys() & gone.keys()):
        raise BadInput(say("set_and_gone", option=gone[twice[0]]))
    return body | dict.fromkeys(gone) | _login(given)


def _login(given: dict[str, Any]) -> dict[str, Any]:
    user, has_password = given["user"], given["password_stdin"]
    if given["no_login"]:
        if user is not None or has_password:
            raise BadInput(say("set_and_gone", option="--no-login"))
        return {"credentials": None}
    if user is None and not has_password:
        return {}
    # The server never tells what it has, so half a login can't be completed from there.
    if user is None or not has_password:
        raise BadInput(say("half_login"))
    password = password_from_stdin(True)
    return {"credentials": {"user": user, "password": "" if password is None else password.reveal()}}
