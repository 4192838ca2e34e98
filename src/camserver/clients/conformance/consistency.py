"""Whether the fields of one answer agree with one another, and hold nothing that the contract does not name.

A server bears what is found here, because a newer analyzer may have more to say; it breaks the contract all the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from camserver.clients.conformance.talking import expect
from camserver.domain.analysis import Analysis
from camserver.domain.detections import HAZARD_UNKNOWN_BELOW, TAG_MULTIPLE, TAG_SINGLE, UNKNOWN_BELOW, Category
from camserver.domain.vocabulary import NO_EVENT, Vocabulary
from camserver.wire.analyzer import AnalyzeAnswer, BoxAnswer, DiffInfo, ModelInfo

HAZARD: Final = str(Category.HAZARD)
NESTED: Final = {"diff": DiffInfo.model_fields, "model_info": ModelInfo.model_fields}


def expect_named_fields(document: Mapping[str, Any]) -> None:
    extra = sorted(_unnamed(document))
    expect(
        not extra,
        f"契約にない項目があります: {', '.join(extra[:5])}",
        f"the contract names no field {', '.join(extra[:5])}",
    )


def _unnamed(document: Mapping[str, Any]) -> Iterator[str]:
    yield from document.keys() - AnalyzeAnswer.model_fields.keys()
    for name, named in NESTED.items():
        yield from (f"{name}.{field}" for field in (document.get(name) or {}).keys() - named.keys())
    for box in document.get("bboxes") or ():
        yield from (f"bboxes.{field}" for field in box.keys() - BoxAnswer.model_fields.keys())


def expect_agreement(said: Analysis, vocabulary: Vocabulary) -> None:
    _expect_detected(said)
    _expect_doubt(said)
    hazards = [tag for tag in said.tags if tag.startswith(f"{HAZARD}.")]
    expect(
        not hazards or said.primary_event == HAZARD or HAZARD not in vocabulary.primary_events,
        f"{hazards} があるのに primary_event が {said.primary_event} です",
        f"primary_event is {said.primary_event} with {hazards} among the tags; a hazard comes first",
    )
    expect(
        not {TAG_SINGLE, TAG_MULTIPLE} <= set(said.tags),
        f"{TAG_SINGLE} と {TAG_MULTIPLE} が両方あります",
        f"{TAG_SINGLE} and {TAG_MULTIPLE} are both among the tags",
    )


def _expect_detected(said: Analysis) -> None:
    """Something that was detected without an event is at least a doubt."""
    if said.detected:
        expect(
            said.primary_event != NO_EVENT or said.unknown_flag,
            "detected が true なのに primary_event が none です",
            "detected is true, but primary_event is none and unknown_flag false",
        )
        return
    expect(
        said.primary_event == NO_EVENT,
        f"detected が false なのに primary_event が {said.primary_event} です",
        f"detected is false, but primary_event is {said.primary_event}",
    )
    expect(
        not said.unknown_flag,
        "detected が false なのに unknown_flag が true です",
        "detected is false, but unknown_flag is true",
    )


def _expect_doubt(said: Analysis) -> None:
    if not said.detected or said.confidence is None:
        return
    least = HAZARD_UNKNOWN_BELOW if said.primary_event == HAZARD else UNKNOWN_BELOW
    expect(
        said.confidence >= least or said.unknown_flag,
        f"confidence が {said.confidence} ({said.primary_event}) なのに unknown_flag が false です",
        f"unknown_flag is false with a confidence of {said.confidence} for {said.primary_event}",
    )
