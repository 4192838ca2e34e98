"""What `camera add` and `camera change` say of a camera alike: options that are named after the fields of the API."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from camserver.commands.corners import corners, zone

F = TypeVar("F", bound=Callable[..., Any])

# Options that are values of a camera's own: where none is set, the configured default holds.
_VALUES: Mapping[str, tuple[str, Any, str]] = {
    "interval-sec": ("polling_interval_sec", click.FloatRange(1, 86_400), "Time between two looks."),
    "connect-timeout-sec": ("connect_timeout_sec", click.FloatRange(0.1, 60), "How long connecting may take."),
    "transport": ("transport", click.Choice(["tcp", "udp"]), "How RTSP video travels."),
    "tls-pin": ("tls_pin", str, "SHA-256 of the camera's own certificate, for rtsps and https."),
    "rotation": ("rotation", click.Choice(["0", "90", "180", "270"]), "Turn the picture clockwise."),
    "infer-width": ("infer_width", click.IntRange(64, 3840), "Width of the picture that is analyzed."),
    "diff-width": ("diff_width", click.IntRange(32, 1920), "Width of the picture that looks are compared in."),
    "force-every": ("force_infer_every_n", click.IntRange(1, 1_000_000), "Analyze one look in so many anyway."),
    "detect-every": ("detect_every_n_frames", click.IntRange(1, 1000), "Analyze every n-th passing look only."),
    "job-priority": ("job_priority", click.IntRange(0, 255), "Rank of its looks at the analyzer; lower is sooner."),
    "device": ("device", str, "Cameras with the same name here share a device."),
    "streams-max": ("streams_max", click.IntRange(1, 64), "Connections that the device bears at once."),
    "clip-sec": ("clip_sec", click.FloatRange(0, 60), "Length of event clips; 0 for none."),
    "suggest-weight": ("suggest_weight", click.IntRange(0, 10), "How readily it is suggested for live view."),
}
_SWITCHES = {"mask-clock": "mask_clock", "live-sound": "live_sound"}
# What `--default` takes.
RESETTABLE = (*_VALUES, *_SWITCHES)
_FIELD_OF = {option: field for option, (field, _, _) in _VALUES.items()} | _SWITCHES
_DEFAULTS = {"interval-sec": "60", "transport": "tcp", "device": "host and port", "suggest-weight": "5"}


def camera_options(command: F) -> F:
    """Adds the options; `camera_fields` makes a request of what was given."""
    drawn = "'X,Y X,Y X,Y …'"
    options = [
        click.option("--name", help="Name that people read."),
        click.option("--sub", "sub_url", help="Address of its small stream, for watching; same login."),
        click.option("--user", help="User name the camera asks for."),
        click.option("--password-stdin", is_flag=True, help="Read the camera's password from standard input."),
        *(
            click.option(f"--{option}", field, type=kind, help=text, show_default=_DEFAULTS.get(option, False))
            for option, (field, kind, text) in _VALUES.items()
        ),
        click.option("--network-zone", type=click.Choice(["local", "vpn"]), help="How far away it is."),
        click.option(
            "--mask-clock/--no-mask-clock", default=None, help="Whether a clock in the picture is left out."
        ),
        click.option(
            "--live-sound/--no-live-sound", default=None, help="Whether those who watch live may hear the camera."
        ),
        click.option(
            "--do-not-process/--process", default=None, help="Whether it is left alone: no picture, no analysis."
        ),
        click.option("--mask", "masks", multiple=True, metavar=drawn, help="Where the gate does not look."),
        click.option("--privacy-mask", "privacy_masks", multiple=True, metavar=drawn, help="Black in everything."),
        click.option(
            "--zone", "zones", multiple=True, metavar="'NAME=X,Y X,Y X,Y …'", help="The gate looks inside zones only."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def camera_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of `camera_options`, as the API takes it; logins are the commands' own business."""
    fields: dict[str, Any] = {}
    for name in (*_FIELD_OF.values(), "network_zone", "do_not_process"):
        if given[name] is not None:
            fields[name] = given[name]
    if "rotation" in fields:
        fields["rotation"] = int(fields["rotation"])
    if "tls_pin" in fields:
        fields["tls_pin"] = fields["tls_pin"].replace(":", "").lower()
    if given["sub_url"] is not None:
        fields["sub"] = {"url": given["sub_url"]}
    if given["masks"]:
        fields["ignore_masks"] = [corners("--mask", text) for text in given["masks"]]
    if given["privacy_masks"]:
        fields["privacy_masks"] = [corners("--privacy-mask", text) for text in given["privacy_masks"]]
    if given["zones"]:
        fields["zones"] = [zone(text) for text in given["zones"]]
    return fields


def reset_fields(options: tuple[str, ...]) -> dict[str, None]:
    """The fields that go back to the configured default, by the names of their options."""
    return {_FIELD_OF[option]: None for option in options}
