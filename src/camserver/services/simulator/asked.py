"""Simulated cameras as they are asked for on a command line: NAME=FILE, NAME=scene:quiet, and when they are away."""

from collections.abc import Sequence

from camserver.base.errors import BadInput
from camserver.media.scenes import SCENES
from camserver.services.simulator.cameras import SCENE_PREFIX, CameraAsked


def parse_cameras(cameras: Sequence[str], offline: Sequence[str]) -> tuple[CameraAsked, ...]:
    """Each of `cameras` is NAME=FILE or NAME=scene:NAME, each of `offline` NAME=EVERY/FOR in seconds.

    Without any, there is one camera for every scene.
    """
    shown = dict(_pair(text, "--camera", "NAME=FILE or NAME=scene:quiet") for text in cameras)
    if len(shown) < len(cameras):
        raise BadInput("two simulated cameras have one name; give each its own")
    shown = shown or {name: SCENE_PREFIX + name for name in SCENES}
    away = dict(_pair(text, "--offline", "NAME=EVERY/FOR") for text in offline)
    for name in away.keys() - shown.keys():
        raise BadInput(f"--offline names {name}, which is none of the simulated cameras {', '.join(shown)}")
    return tuple(_camera(name, shows, away.get(name)) for name, shows in shown.items())


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise BadInput(f"{option} {text!r} is not of the form {form}")
    return name, value


def _camera(name: str, shows: str, away: str | None) -> CameraAsked:
    if away is None:
        return CameraAsked(name, shows)
    every, _, lasting = away.partition("/")
    try:
        return CameraAsked(name, shows, float(every), float(lasting))
    except ValueError:
        raise BadInput(f"--offline {name}={away} is not of the form NAME=EVERY/FOR, in seconds") from None
