"""One picture from its bytes to the answer about it. Work for a thread, never for an event loop."""

import time
from dataclasses import dataclass, replace

from camserver.domain.detections import DetectionPolicy, interpret
from camserver.domain.vocabulary import Vocabulary
from camserver.services.analyzer.detector import Detector
from camserver.services.analyzer.pictures import decode, diff_of, gray_of, quality_of
from camserver.wire.analyzer import AnalyzeAnswer
from camserver.wire.analyzer_service import AnalyzeAsked, make_answer


@dataclass(frozen=True, slots=True)
class Question:
    """A request whose form is right; its pictures have not been looked at."""

    asked: AnalyzeAsked
    picture: bytes
    prev_picture: bytes | None


def analyze(question: Question, detector: Detector, vocabulary: Vocabulary, policy: DetectionPolicy) -> AnalyzeAnswer:
    """The answer; BadInput when a picture is none."""
    started_ns = time.perf_counter_ns()
    # The previous picture first and let go at once: only one is held in full.
    before = None if question.prev_picture is None else gray_of(decode(question.prev_picture, "prev_infer_image"))
    picture = decode(question.picture, "infer_image")
    gray = gray_of(picture)
    found = detector.detect(picture)
    analysis = interpret(found, quality_of(gray), question.asked.hints.known(), vocabulary, policy)
    model = detector.model
    analysis = replace(
        analysis,
        model_name=model.name,
        model_version=model.version,
        processing_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
    )
    return make_answer(question.asked, analysis, diff_of(gray, before))
