"""One picture from its bytes to the answer about it, in three steps. Work for threads, never for an event loop.

`prepare` and `conclude` can run for several pictures at once; the detector between them is for one thread at a time
and is what takes long, so the service prepares the next picture while the detector has this one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from camserver.base.errors import BadInput
from camserver.domain.detections import Detection, DetectionPolicy, Hints, interpret, unknown_names
from camserver.domain.vocabulary import Vocabulary
from camserver.media.jpeg_planes import Picture, rgb_of
from camserver.services.analyzer.detector import Detector, Model, ModelInput, Preparing
from camserver.services.analyzer.observing import Observer, Sight, is_kept, previous_sight_of, sight_of
from camserver.services.analyzer.pictures import diff_of, hidden_pixels, open_picture, quality_of
from camserver.services.analyzer.remembered import Remembered
from camserver.wire.analyzer import AnalyzeAnswer, DiffInfo
from camserver.wire.analyzer_service import AnalyzeAsked, make_answer

# Of names in hints that mean nothing; one tells that something is wrong.
WARNED_NAMES_MAX = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A request whose form is right; its pictures have not been looked at."""

    asked: AnalyzeAsked
    picture: bytes
    prev_picture: bytes | None
    # For an analyzer that passes it on: the hints as they came, and who passed it on already (`VIA_HEADER`).
    hints_json: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A picture that is one, and what was measured of it without a model."""

    picture: Picture
    observer: Observer
    diff: DiffInfo
    took_ns: int
    given: ModelInput | None = None  # what the model is given of it; None: it makes that itself
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    detections: Sequence[Detection]
    model: Model
    took_ns: int
    before: Sequence[Detection] | None = None  # in the previous picture; None: nobody looked


def prepare(question: Question, detector: Detector | None = None, remembered: Remembered | None = None) -> Prepared:
    """BadInput when the picture is none. `detector` is of the model that will look; it may have another picture now.

    A previous picture that is none is done without: it says nothing about the new one.
    """
    started_ns = time.perf_counter_ns()
    hints, since_ms = question.asked.hints.known(), question.asked.since_previous_ms
    # First, and made small or let go at once: only one is held in full.
    before, warnings = _before_or_why_not(question.prev_picture, hints, since_ms, remembered)
    picture = open_picture(question.picture, "infer_image")
    now = sight_of(picture)
    if remembered is not None:
        remembered.put(question.picture, now)
    quality = quality_of(now.gray, hidden_pixels(now.gray.shape, hints.masks))
    given = detector.input_of(picture) if isinstance(detector, Preparing) else None
    return Prepared(
        picture=picture,
        observer=Observer(now, before, quality, hints, since_ms),
        diff=diff_of(now.gray, None if before is None else before.gray),
        took_ns=time.perf_counter_ns() - started_ns,
        given=given,
        warnings=warnings,
    )


def _before_or_why_not(
    content: bytes | None, hints: Hints, since_ms: int | None, remembered: Remembered | None
) -> tuple[Sight | None, tuple[str, ...]]:
    try:
        return _before(content, hints, since_ms, remembered), ()
    except BadInput as error:
        return None, (f"{error.message}; it was done without",)


def _before(content: bytes | None, hints: Hints, since_ms: int | None, remembered: Remembered | None) -> Sight | None:
    if content is None:
        return None
    # Where the model may have to look at it too, it has to be decoded all the same.
    if remembered is not None and not is_kept(hints, since_ms):
        sight = remembered.get(content)
        if sight is not None:
            return sight
    return previous_sight_of(open_picture(content, "prev_infer_image"), hints, since_ms)


def find(prepared: Prepared, detector: Detector) -> Found:
    started_ns = time.perf_counter_ns()
    given = prepared.given
    if given is not None and isinstance(detector, Preparing):
        detections = detector.detect_in(given)
    else:
        detections = _detect(detector, prepared.picture)
    before = prepared.observer.to_find_too(detections)
    found_before = None if before is None else _detect(detector, before)
    return Found(detections, detector.model, time.perf_counter_ns() - started_ns, found_before)


def _detect(detector: Detector, picture: Picture) -> Sequence[Detection]:
    if isinstance(detector, Preparing):
        return detector.detect_in(detector.input_of(picture))
    return detector.detect(rgb_of(picture))


def conclude(
    question: Question, prepared: Prepared, found: Found, vocabulary: Vocabulary, policy: DetectionPolicy
) -> AnalyzeAnswer:
    started_ns = time.perf_counter_ns()
    observer = prepared.observer
    measured = observer.measure(found.detections, found.before, policy)
    analysis = interpret(found.detections, observer.quality, observer.hints, vocabulary, policy, measured)
    took_ns = prepared.took_ns + found.took_ns + time.perf_counter_ns() - started_ns
    analysis = replace(
        analysis,
        model_name=found.model.name,
        model_version=found.model.version,
        processing_ms=took_ns // 1_000_000,
        warnings=(*prepared.warnings, *_warnings(observer.hints, found.model, vocabulary)),
    )
    return make_answer(question.asked, analysis, prepared.diff)


def _warnings(hints: Hints, model: Model, vocabulary: Vocabulary) -> tuple[str, ...]:
    unknown = unknown_names(hints, model.labels, vocabulary)
    return tuple(
        f"hints: nothing is called {name!r}; a name is a label of the model, a category or a tag"
        for name in unknown[:WARNED_NAMES_MAX]
    )


def analyze(question: Question, detector: Detector, vocabulary: Vocabulary, policy: DetectionPolicy) -> AnalyzeAnswer:
    """All three steps in one thread."""
    prepared = prepare(question, detector)
    return conclude(question, prepared, find(prepared, detector), vocabulary, policy)
