"""`camserver camera hints` and `presets`: what the analyzer is told of a camera."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.camera_words import head, say
from camserver.commands.corners import corners, corners_shown
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.presets import PRESETS, Preset

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

FILE_MAX_BYTES = 100_000
PRESET_NAMES = [preset.value for preset in Preset]


@click.command("presets")
@json_option
def camera_presets(as_json: bool) -> None:
    """List the presets for places, with what they mean.

    \b
    Example:
      camserver camera presets
    """
    if as_json:
        click.echo(json.dumps([_preset(preset) for preset in Preset], ensure_ascii=False))
        return
    rows = []
    for preset in Preset:
        told = PRESETS[preset]
        called = told.called.ja if reader_language() == "ja" else told.called.en
        lists = (told.expected, told.expected_by_day, told.excluded)
        rows.append((preset.value, called, *(" ".join(names) or "-" for names in lists)))
    click.echo(table(head("presets"), rows))


def _preset(preset: Preset) -> dict[str, object]:
    told = PRESETS[preset]
    return {
        "preset": preset.value,
        "label_ja": told.called.ja,
        "label_en": told.called.en,
        "expected_objects": told.expected,
        "expected_by_day": told.expected_by_day,
        "excluded_objects": told.excluded,
    }


@click.command("hints")
@click.argument("camera_id")
@click.option("--preset", type=click.Choice([*PRESET_NAMES, "none"]), help="The kind of place it looks at.")
@click.option("--expect", multiple=True, metavar="NAME", help="Is there anyway and no event; may be repeated.")
@click.option("--exclude", multiple=True, metavar="NAME", help="Is not there, whatever it looks like; repeatable.")
@click.option("--threshold", multiple=True, metavar="NAME=VALUE", help="Least confidence, 0 to 1; repeatable.")
@click.option(
    "--shelf", metavar="'X,Y X,Y X,Y …'", help="Corners of a region that things shall not vanish from, 0 to 1."
)
@click.option(
    "--shelf-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The same, from a JSON file: [[x, y], …]",
)
@click.option("--clear", is_flag=True, help="Forget what was said before.")
@json_option
@pass_chosen
def camera_hints(
    chosen: Chosen,
    camera_id: str,
    preset: str | None,
    expect: tuple[str, ...],
    exclude: tuple[str, ...],
    threshold: tuple[str, ...],
    shelf: str | None,
    shelf_file: Path | None,
    clear: bool,
    as_json: bool,
) -> None:
    """Show or change what the analyzer is told of a camera.

    Names are labels (car), categories (human, animal, vehicle, hazard, camera_issue) or tags (animal.bird). A list
    that is given replaces the one before; what is not given stays. Corners are shares of the picture's width and
    height, 0,0 at the upper left; --shelf none forgets the region.

    \b
    Examples:
      camserver camera hints lot
      camserver camera hints lot --preset parking
      camserver camera hints yard --expect dog --exclude bird --threshold person=0.6
      camserver camera hints shop --shelf '0.1,0.2 0.5,0.2 0.5,0.6 0.1,0.6'
      camserver camera hints yard --clear
    """
    given: dict[str, object] = {}
    if preset is not None:
        given["preset"] = None if preset == "none" else preset
    for name, names in (("expected_objects", expect), ("excluded_objects", exclude)):
        if names:
            given[name] = [one.strip().lower() for one in names]
    if threshold:
        given["thresholds"] = dict(map(_threshold, threshold))
    if shelf is not None and shelf_file is not None:
        raise BadInput(say("one_shelf"))
    if shelf is not None:
        given["shelf_roi"] = None if shelf == "none" else corners("--shelf", shelf)
    if shelf_file is not None:
        given["shelf_roi"] = _corners_in(shelf_file)
    camera = with_server(chosen, lambda server: _changed(server, camera_id, given, clear))
    hints: dict[str, Any] | None = (camera["own"] or {}).get("hints")
    unknown: list[str] = camera.get("unknown_hints") or []
    if as_json:
        told = {"camera_id": camera_id, "hints": hints, "unknown_hints": unknown}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    for name in unknown:
        click.echo(say("unknown_hint", name=name), err=True)
    said = {name: value for name, value in (hints or {}).items() if value is not None}
    if not said:
        click.echo(say("no_hints", camera_id=camera_id))
    for name, value in said.items():
        click.echo(f"{name}: {_shown(value)}")


async def _changed(server: "LocalServer", camera_id: str, given: dict[str, object], clear: bool) -> dict[str, Any]:
    """The camera after the change; without one, as it is."""
    camera = await server.camera(camera_id)
    if given or clear:
        before = {} if clear else (camera["own"] or {}).get("hints") or {}
        camera = await server.patch(f"/api/cameras/{quote(camera_id, safe='')}", {"hints": {**before, **given}})
    return camera


def _threshold(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if not name or not equals or not 0 <= least <= 1:
        raise BadInput(f"--threshold {text}: write it as NAME=VALUE with a value from 0 to 1, such as person=0.6")
    return name.strip().lower(), least


def _corners_in(file: Path) -> list[list[float]]:
    try:
        points = json.loads(file.read_bytes()[: FILE_MAX_BYTES + 1])
    except (OSError, ValueError):
        points = None
    is_list = isinstance(points, list) and bool(points)
    if not is_list or not all(isinstance(point, list) and len(point) == 2 and _numbers(point) for point in points):
        raise BadInput(say("bad_shelf_file", file=file))
    return [[float(x), float(y)] for x, y in points]


def _numbers(point: list[object]) -> bool:
    return all(isinstance(share, int | float) and not isinstance(share, bool) for share in point)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={least:g}" for name, least in value.items())
    if isinstance(value, list) and value and isinstance(value[0], str):
        return ", ".join(value)
    if isinstance(value, list):
        return corners_shown(value)
    return str(value)
