"""How well the analyzer finds people and vehicles, for each model, threshold and way to fit a picture into a model.

    make bench-quality                              about three minutes
    QUICK=1 make bench-quality                      the default model only
    make bench-quality BENCH_ARGS="--table"         prints the tables of docs/quality.md as well
    make bench-quality BENCH_ARGS="--wrong"         says where the default found what is not there

Pictures and truth: docs/quality.md, bench/quality_truth.toml. Every picture goes the product's own way: made small
and encoded as a worker does it, then read, searched and interpreted as the analyzer does it.
"""

import argparse
import io
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from PIL import Image

from bench._quality_sources import model, pictures
from bench._quality_truth import KINDS, Find, Place, Tally, Truth, read_truth
from bench._report import QUICK, Row, figure, more_is_better, report, say
from camserver.domain.detections import MEANINGS, Category, Detection, DetectionPolicy
from camserver.domain.looks import LookPolicy
from camserver.domain.stationary import iou
from camserver.domain.vocabulary import parse_vocabulary
from camserver.media.jpeg_picture import JpegPicture
from camserver.services.analyzer.analyzing import Question, analyze
from camserver.services.analyzer.detector import Detector, Model
from camserver.services.analyzer.litert_detector import LiteRtDetector
from camserver.store.vocabularies import shipped
from camserver.wire.analyzer_service import AnalyzeAsked

DEFAULT_WAY = "lite1"
# Recall and precision of the default in per cent, by kind: a little below what docs/quality.md says, where a few per
# cent mean nothing.
AIMS = {"person": (86.0, 96.0), "vehicle": (66.0, 96.0)}
DEFAULT_THRESHOLD = DetectionPolicy().min_confidence
THRESHOLDS = tuple(sorted({0.3, 0.35, 0.4, 0.45, 0.5, 0.6, DEFAULT_THRESHOLD}))
# Below every threshold: what is surer than one does not depend on what is not.
LEAST = 0.05
KIND_OF = {Category.HUMAN: "person", Category.VEHICLE: "vehicle"}
# Two tiles share this part of their width; two finds that overlap more than this are one.
TILES_SHARE = 0.2
SAME_IOU = 0.5
SOURCE_QUALITY = 95
VOCABULARY = parse_vocabulary(json.loads(shipped().text))


@dataclass(slots=True)
class Tiled:
    """Two overlapping halves beside the whole picture: three times the work, and small things twice as large."""

    inner: Detector

    @property
    def model(self) -> Model:
        return self.inner.model

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        width, height = picture.size
        part = round(width * (1 + TILES_SHARE) / 2)
        found = list(self.inner.detect(picture))
        for left in (0, width - part):
            tile = picture.crop((left, 0, left + part, height))
            for one in self.inner.detect(tile):
                x1, x2 = ((left + x * part) / width for x in (one.x1, one.x2))
                found.append(Detection(one.label, one.score, max(x1, 0.0), one.y1, min(x2, 1.0), one.y2))
        return _once(found)


def _once(found: Iterable[Detection]) -> list[Detection]:
    kept: list[Detection] = []
    for one in sorted(found, key=lambda one: -one.score):
        if all(one.label != other.label or iou(one.box(), other.box()) < SAME_IOU for other in kept):
            kept.append(one)
    return kept


@dataclass(slots=True)
class Way:
    """One way to find things, and what it found in every picture."""

    name: str
    detector: Detector
    finds: list[tuple[Truth, list[Find]]] = field(default_factory=list)
    cpu_sec: float = 0.0

    def look(self, truth: Truth, question: Question, size: tuple[int, int]) -> None:
        started = time.process_time()
        answer = analyze(question, self.detector, VOCABULARY, DetectionPolicy(min_confidence=LEAST))
        self.cpu_sec += time.process_time() - started
        width, height = size
        found = []
        for box in answer.bboxes or ():
            meaning = MEANINGS.get(box.label or "")
            kind = KIND_OF.get(meaning.category) if meaning is not None else None
            if kind is not None:
                place = Place(box.x1 * width, box.y1 * height, box.x2 * width, box.y2 * height)
                found.append(Find(kind, box.conf or 0.0, place))
        self.finds.append((truth, found))

    def tally(self, kind: str, threshold: float, source: str | None = None) -> Tally:
        tally = Tally()
        for truth, found in self.finds:
            if source not in (None, _source_of(truth)):
                continue
            tally.add(truth, kind, [one for one in found if one.sureness >= threshold])
        return tally


def ways() -> list[Way]:
    default = [Way(DEFAULT_WAY, LiteRtDetector(model("efficientdet-lite1")))]
    if QUICK:
        return default
    others = [Way(name, LiteRtDetector(model(f"efficientdet-{name}"))) for name in ("lite0", "lite2")]
    variants = [
        Way("lite1 centred", LiteRtDetector(model("efficientdet-lite1"), "centre")),
        Way("lite1 stretched", LiteRtDetector(model("efficientdet-lite1"), "stretch")),
        Way("lite1 in tiles", Tiled(LiteRtDetector(model("efficientdet-lite1")))),
        Way("lite2 in tiles", Tiled(LiteRtDetector(model("efficientdet-lite2")))),
    ]
    return [*default, *others, *variants]


def question_of(picture: Image.Image) -> Question:
    """As a worker makes it: small, encoded twice, once by the camera and once by us."""
    source = io.BytesIO()
    picture.save(source, "JPEG", quality=SOURCE_QUALITY)
    width = LookPolicy().infer_width
    _, infer = JpegPicture(source.getvalue(), width).small(width)
    asked = AnalyzeAsked(camera_id="quality", captured_at="2026-01-01T00:00:00Z", schema_version=VOCABULARY.version)
    return Question(asked, infer, None)


def measure() -> list[Way]:
    chosen = ways()
    truths = read_truth()
    for number, (truth, picture) in enumerate(pictures(truths), 1):
        question = question_of(picture)
        for way in chosen:
            way.look(truth, question, picture.size)
        if number % 20 == 0:
            say(f"{number} of {len(truths)} pictures")
    return chosen


def table(chosen: Sequence[Way]) -> str:
    """In the form of docs/quality.md."""
    lines = [
        "| way | threshold | person recall | precision | vehicle recall | precision | people noticed | "
        "false alarms | CPU a picture |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for way in chosen:
        for threshold in THRESHOLDS:
            person, vehicle = (way.tally(kind, threshold) for kind in KINDS)
            mark = "**" if (way.name, threshold) == (DEFAULT_WAY, DEFAULT_THRESHOLD) else ""
            cells = [
                f"{mark}{way.name}{mark}",
                f"{mark}{threshold:g}{mark}",
                *(f"{share:.0f} %" for share in (person.recall, person.precision)),
                *(f"{share:.0f} %" for share in (vehicle.recall, vehicle.precision)),
                f"{person.noticed} of {person.with_any}",
                f"{person.alarmed} of {person.without}",
                f"{1000 * way.cpu_sec / len(way.finds):.0f} ms",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table_by_source(way: Way) -> str:
    """The default's figures for each kind of picture, in the form of docs/quality.md."""
    lines = ["| pictures | people | found | wrong | vehicles | found | wrong |", "|---|---|---|---|---|---|---|"]
    for source in dict.fromkeys(_source_of(truth) for truth, _ in way.finds):
        cells = [source]
        for kind in KINDS:
            tally = way.tally(kind, DEFAULT_THRESHOLD, source)
            cells += [str(tally.right + tally.missed), str(tally.right), str(tally.wrong)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _source_of(truth: Truth) -> str:
    return "photos" if truth.frame is None else truth.source


def rows(chosen: Sequence[Way]) -> list[Row]:
    made = []
    for way in chosen:
        for kind in KINDS:
            tally = way.tally(kind, DEFAULT_THRESHOLD)
            shares = {"recall": tally.recall, "precision": tally.precision}
            for (what, share), wanted in zip(shares.items(), AIMS[kind], strict=True):
                name = f"{way.name}, {kind} {what} at {DEFAULT_THRESHOLD:g}"
                is_default = way.name == DEFAULT_WAY
                made.append(
                    more_is_better(name, share, wanted, "wanted", "%", aim=1.0)
                    if is_default
                    else figure(name, share, "%")
                )
        made.append(figure(f"{way.name}, CPU a picture", 1000 * way.cpu_sec / len(way.finds), "ms"))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="How well the analyzer finds people and vehicles.")
    parser.add_argument("--table", action="store_true", help="print the tables of docs/quality.md as well")
    parser.add_argument("--wrong", action="store_true", help="say where the default found what is not there")
    options = parser.parse_args()
    chosen = measure()
    if options.table:
        print(table(chosen), table_by_source(chosen[0]), sep="\n\n", flush=True)
    if options.wrong:
        for kind in KINDS:
            for where in chosen[0].tally(kind, DEFAULT_THRESHOLD).wrong_in:
                say(f"no {kind} in {where}")
    report("quality", rows(chosen))


if __name__ == "__main__":
    main()
