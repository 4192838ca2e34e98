"""`camserver analyze`: what the analyzer sees in pictures, without a camera and without a server."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from camserver.base.errors import BadInput
from camserver.base.exits import Exit
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import Language, reader_language, table
from camserver.domain.phrases import OWN_TAGS, Phrase, primary_event_phrase
from camserver.domain.presets import Preset

if TYPE_CHECKING:
    from camserver.commands.analyze_eyes import Asking, Eyes
    from camserver.domain.analysis import Analysis
    from camserver.domain.vocabulary import Vocabulary

_HEADS = {
    "en": ("PICTURE", "EVENT", "SEVERITY", "SURE", "TAGS", "FOUND"),
    "ja": ("画像", "イベント", "重要度", "確度", "タグ", "検出"),
}
_WORDS = {
    "unclear": Phrase("不確か", "unclear"),
    "failed": Phrase("失敗: {why}", "failed: {why}"),
    "drawn": Phrase("枠を描いた画像: {where}", "Pictures with boxes: {where}"),
    "looking": Phrase("解析中", "Looking"),
    "warning": Phrase("注意: {what}", "note: {what}"),
    "no_preset": Phrase(
        "{file} の preset {preset} はありません。あるのは {known} です",
        "{file}: there is no preset {preset}; there are: {known}",
    ),
}
# From so many on a progress bar is worth its line.
PROGRESS_FROM = 5


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of one picture: an analysis, or why there is none."""

    path: Path
    analysis: "Analysis | None"
    drawn: Path | None = None
    failure: Phrase | None = None


@click.command()
@click.argument("pictures", nargs=-1, required=True, metavar="PICTURE...")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), show_default="beside each picture",
              help="Folder for the pictures with boxes.")  # fmt: skip
@click.option("--no-pictures", is_flag=True, help="Write no pictures with boxes.")
@click.option("--url", help="Ask the analyzer at this address.", show_default="the model on this machine")
@click.option("--put-vocabulary", is_flag=True, help="With --url: give that analyzer camserver's vocabulary first.")
@click.option("--previous", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The camera's picture before; then one PICTURE.", show_default="none")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0.001, 86_400),
              help="With --previous: how long before it was taken.", show_default="not told")  # fmt: skip
@click.option("--preset", type=click.Choice([str(preset) for preset in Preset]),
              help="What kind of place it is.", show_default="none")  # fmt: skip
@click.option("--hints-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="JSON of more hints, as a camera has them.", show_default="none")  # fmt: skip
@click.option("--night", is_flag=True, help="As if it were night there.")
@json_option
@pass_chosen
def analyze(
    chosen: Chosen,
    pictures: tuple[str, ...],
    out: Path | None,
    no_pictures: bool,
    url: str | None,
    put_vocabulary: bool,
    previous: Path | None,
    seconds: float | None,
    preset: str | None,
    hints_file: Path | None,
    night: bool,
    as_json: bool,
) -> None:
    """Say what the analyzer sees in pictures.

    Prints the tags of each picture and writes it again with boxes around what was found, as NAME.boxes.jpg. PICTURE
    is a JPEG or PNG file, a folder with such files, or a pattern in quotes. No server has to run. A picture is looked
    at as if a camera had taken it: made as wide as looks.infer_width. Ends with code 12 when one can't be read.

    \b
    Examples:
      camserver analyze entrance.jpg
      camserver analyze holiday/ 'archive/**/*.jpg' --out /tmp/boxes
      camserver analyze entrance.jpg --url http://127.0.0.1:9000 --json
      camserver analyze lot.jpg --previous lot-before.jpg --seconds 1.5 --preset parking --night
    """
    from camserver.commands.analyze_eyes import opened
    from camserver.commands.analyze_files import find_pictures

    paths = find_pictures(pictures)
    settings = chosen.settings()
    if previous is not None and len(paths) != 1:
        raise BadInput(f"--previous is the picture before one picture, but {len(paths)} are given; name one")
    if seconds is not None and previous is None:
        raise BadInput("--seconds says how long before the picture of --previous was taken; give both")
    asking = _asking(previous, seconds, _hints(preset, hints_file, night), settings.looks.infer_width)
    language = reader_language()
    writing = None if no_pictures else _Writing(out)

    async def work() -> "tuple[list[Looked], Vocabulary]":
        async with opened(settings, url, put_vocabulary) as eyes:
            with _progress(paths, language) as shown:
                width = settings.looks.infer_width
                return [await _look(path, eyes, asking, width, writing) for path in shown], eyes.vocabulary

    looked, vocabulary = asyncio.run(work())
    if as_json:
        click.echo(json.dumps([_document(one, language) for one in looked], ensure_ascii=False))
    else:
        _print(looked, vocabulary, language)
    failed = any(one.analysis is None for one in looked)
    click.get_current_context().exit(Exit.CHECK_FAILED.value if failed else 0)


class _Writing:
    """Where pictures with boxes go."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._taken: set[Path] = set()

    def keep(self, path: Path, jpeg: bytes, analysis: "Analysis") -> Path:
        from camserver.commands.analyze_files import place_for, write_drawn
        from camserver.media.box_picture import draw_boxes

        place = place_for(path, self._folder, self._taken)
        write_drawn(draw_boxes(jpeg, analysis.boxes), place)
        return place


def _hints(preset: str | None, file: Path | None, night: bool) -> dict[str, object]:
    """As a server makes them of what people say of a camera."""
    from camserver.domain.hints import NIGHT
    from camserver.domain.presets import preset_hints

    said: dict[str, object] = {}
    if file is not None:
        try:
            read = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"{file} can't be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{file} is no JSON: {error}") from None
        if not isinstance(read, dict):
            raise BadInput(f"{file} holds no JSON object; docs/guide/analyzer.md says what hints are")
        said = read
    of_file = said.pop("preset", None)
    if of_file is not None and of_file not in list(Preset):
        known, language = ", ".join(Preset), reader_language()
        raise BadInput(_in(_WORDS["no_preset"], language).format(file=file, preset=repr(of_file), known=known))
    named = str(of_file) if preset is None else preset
    return {**preset_hints(named, is_day=not night), **said, **({"time_band": NIGHT} if night else {})}


def _asking(previous: Path | None, seconds: float | None, hints: dict[str, object], width: int) -> "Asking":
    from camserver.commands.analyze_eyes import Asking
    from camserver.commands.analyze_files import infer_picture, read_upright

    before = None if previous is None else infer_picture(read_upright(previous), width)
    return Asking(before, None if seconds is None else round(seconds * 1000), hints)


async def _look(path: Path, eyes: "Eyes", asking: "Asking", width: int, writing: _Writing | None) -> Looked:
    """One picture. What is wrong with it is told with it; what is wrong with who looks ends the command."""
    from camserver.commands.analyze_files import Unusable, infer_picture, read_upright

    try:
        jpeg = read_upright(path)
        analysis = await eyes.look(infer_picture(jpeg, width), int(time.time() * 1000), asking)
    except Unusable as error:
        return Looked(path, None, failure=error.said)
    except BadInput as error:
        return Looked(path, None, failure=Phrase(error.message, error.message))
    return Looked(path, analysis, None if writing is None else writing.keep(path, jpeg, analysis))


@contextmanager
def _progress(paths: Sequence[Path], language: Language) -> Iterator[Iterable[Path]]:
    """The paths, with a bar that fills as they are taken where there are many and somebody watches."""
    if len(paths) < PROGRESS_FROM or not sys.stderr.isatty():
        yield paths
        return
    with click.progressbar(paths, label=_in(_WORDS["looking"], language), file=sys.stderr) as shown:
        yield shown


def _print(looked: Sequence[Looked], vocabulary: "Vocabulary", language: Language) -> None:
    click.echo(table(_HEADS[language], [row_of(one, vocabulary, language) for one in looked]))
    drawn = [str(one.drawn) for one in looked if one.drawn is not None]
    if drawn:
        where = drawn[0] if len(drawn) == 1 else f"{drawn[0]} … {drawn[-1]} ({len(drawn)})"
        click.echo(_in(_WORDS["drawn"], language).format(where=where), err=True)
    # Mostly about the hints, and then the same of each picture.
    for warning in dict.fromkeys(text for one in looked if one.analysis for text in one.analysis.warnings):
        click.echo(_in(_WORDS["warning"], language).format(what=warning), err=True)


def row_of(one: Looked, vocabulary: "Vocabulary", language: Language) -> tuple[str, ...]:
    analysis = one.analysis
    if analysis is None:
        why = "" if one.failure is None else _in(one.failure, language)
        return (str(one.path), _in(_WORDS["failed"], language).format(why=why), "-", "-", "-", "-")
    event = _in(primary_event_phrase(analysis.primary_event), language)
    if analysis.unknown_flag:
        event = f"{event} ({_in(_WORDS['unclear'], language)})"
    found = Counter(box.label or "?" for box in analysis.boxes)
    return (
        str(one.path),
        event,
        str(analysis.severity),
        "-" if analysis.confidence is None else f"{100 * analysis.confidence:.0f} %",
        ", ".join(_label(tag, vocabulary, language) for tag in analysis.tags) or "-",
        ", ".join(f"{count} {label}" for label, count in found.most_common()) or "-",
    )


def _label(tag_id: str, vocabulary: "Vocabulary", language: Language) -> str:
    tag = vocabulary.tag(tag_id)
    if tag is None:
        return _in(OWN_TAGS.get(tag_id) or Phrase(tag_id, tag_id), language)
    return tag.label_ja if language == "ja" else tag.label_en


def _document(one: Looked, language: Language) -> dict[str, object]:
    told: dict[str, object] = {"picture": str(one.path), "drawn": None if one.drawn is None else str(one.drawn)}
    if one.analysis is None:
        return {**told, "error": "" if one.failure is None else _in(one.failure, language)}
    return {**told, **asdict(one.analysis)}


def _in(phrase: Phrase, language: Language) -> str:
    return phrase.ja if language == "ja" else phrase.en
