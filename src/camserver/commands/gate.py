"""`camserver gate`: why looks at a camera pass its gate."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camserver.base.errors import CheckFailed
from camserver.base.exits import Exit
from camserver.commands.asking import with_running_server
from camserver.commands.picture_file import keep
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import Language, age, reader_language, table

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_HEADS = {
    "en": ("AGO", "VERDICT", "WHY", "Z", "CELL", "SPREAD", "CHANGED", "LIGHT"),
    "ja": ("経過", "判定", "理由", "Z", "セル", "広がり", "変化", "明るさ"),
}
_WHY = {
    "quiet": ("nothing changed", "変化なし"),
    "change": ("something changed", "変化あり"),
    "whole": ("the whole picture is new", "画面全体が変化"),
    "learning": ("still learning", "学習中"),
    "sticky": ("something was there before", "直前に検出"),
    "forced": ("it was time", "定期"),
}
_VERDICTS = {"skip": ("skipped", "見送り"), "analyze": ("analyzed", "解析"), "forced": ("analyzed", "解析")}


@click.group()
def gate() -> None:
    """See what the gate of a camera does."""


@gate.command("explain")
@click.argument("camera_id")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="File for the picture.",
              show_default="a new one in the folder for temporary files")  # fmt: skip
@json_option
@pass_chosen
def gate_explain(chosen: Chosen, camera_id: str, picture: Path | None, as_json: bool) -> None:
    """Show why the last looks passed a camera's gate, or not.

    Prints the numbers of the last looks and writes a picture of the last one in which something changed: the more a
    cell stands out, the redder it is. docs/guide/gate.md explains both.

    \b
    Examples:
      camserver gate explain entrance
      camserver gate explain entrance --picture entrance-gate.jpg
    """

    async def work(server: "LocalServer") -> tuple[dict[str, Any], bytes]:
        camera = await server.camera(camera_id)
        errand = await server.on_errand(f"/api/cameras/{camera['camera_id']}/explain", {})
        has_picture = errand["state"] == "done" and errand.get("has_picture")
        return errand, await server.errand_picture(errand["errand_uuid"]) if has_picture else b""

    errand, jpeg = with_running_server(chosen, work)
    if jpeg:
        errand["picture"] = keep(jpeg, picture, "camserver-gate-")
    failed = errand["state"] != "done"
    if as_json:
        click.echo(json.dumps(errand, ensure_ascii=False))
        click.get_current_context().exit(Exit.CHECK_FAILED.value if failed else 0)
    if failed:
        raise CheckFailed(str(errand.get("message") or f"the errand ended as {errand['state']}"))
    click.echo(described(errand["result"], reader_language(), int(time.time() * 1000)))
    if jpeg:
        click.echo(f"{'画像' if reader_language() == 'ja' else 'Picture'}: {errand['picture']}")


def described(result: dict[str, Any], language: Language, now_ms: int) -> str:
    """The numbers as people read them, newest look first."""
    rows = [_row(look, language, now_ms) for look in result["looks"]]
    return "\n".join([*_facts(result, language), table(_HEADS[language], rows)])


def _facts(result: dict[str, Any], language: Language) -> list[str]:
    is_threshold = result["rule"] == "threshold"
    light, ratio = f"{result['luma_delta_no_event']:g}", f"{100 * result['diff_ratio_no_event']:.2g} %"
    if language == "ja":
        if is_threshold:
            return [f"ルール threshold: 変化した画素が {ratio} 以上、または明るさの変化が {light} 以上で通過"]
        facts = [f"ルール contrast: Z が {result['z_pass']:g} 以上で通過、学習済み {result['learned']} 回"]
        if result["clock_cells"]:
            facts.append(f"画面の時計を {result['clock_cells']} セルで検出し、無視しています")
        return facts
    if is_threshold:
        return [f"Rule threshold: passes from {ratio} of the pixels or a change of light of {light}."]
    facts = [f"Rule contrast: passes from Z {result['z_pass']:g}; learned from {result['learned']} looks."]
    if result["clock_cells"]:
        facts.append(f"A clock in the picture was found and is left out: {result['clock_cells']} cells.")
    return facts


def _row(look: dict[str, Any], language: Language, now_ms: int) -> tuple[str, ...]:
    place = 1 if language == "ja" else 0
    unknown = (str(look["reason"]), str(look["reason"]))
    has_cells = look["z_max"] is not None
    return (
        age(look["captured_at"], now_ms),
        _VERDICTS.get(look["verdict"], unknown)[place],
        _WHY.get(look["reason"], unknown)[place],
        f"{look['z_max']:.1f}" if has_cells else "-",
        f"{look['row']},{look['column']}" if has_cells else "-",
        f"{look['spread']:.1f}" if has_cells else "-",
        f"{100 * look['diff_ratio']:.2f} %",
        f"{look['luma_delta']:+.1f}",
    )
