"""The analyzer contract: what an analyzer answers, checked field by field.

An analyzer may be anybody's program, so nothing in its answer is believed before it fits the contract and the
vocabulary. Fields the contract does not name are left out, not refused: a newer analyzer may have more to say.
"""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from camserver.base.errors import Reject
from camserver.domain.analysis import Analysis, Box
from camserver.domain.vocabulary import Vocabulary

IMAGE_BYTES_MAX = 5_000_000
ANSWER_BYTES_MAX = 1_000_000
TAGS_MAX = 200
BOXES_MAX = 500
WARNINGS_MAX = 50
EVENTS_MAX = 200
# Beside the contract: analyzers that passed a request on, so that a circle of them is noticed.
VIA_HEADER = "X-Analyzer-Via"
# An echo may have lost the fraction of its second on the way.
ECHO_SLACK_MS = 1000

# Not all databases can store these; nor does anybody want them in a page or a log.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def _printable(text: str) -> str:
    if _UNPRINTABLE.search(text):
        raise ValueError("control characters and halves of characters are not allowed")
    return text


Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=128), AfterValidator(_printable)]
Sentence = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]


class BrokenAnswer(Reject):
    """A 200 that breaks the contract; the message names the offending field."""

    code = "broken_answer"


class _Answer(BaseModel):
    # Strict: "true" is no boolean and "3" no number, whoever sent it.
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class BoxAnswer(_Answer):
    x1: Share
    y1: Share
    x2: Share
    y2: Share
    label: Name | None = None
    conf: Share | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "BoxAnswer":
        if self.x1 >= self.x2 or self.y1 >= self.y2:
            raise ValueError("x1 must be below x2 and y1 below y2")
        return self


class ModelInfo(_Answer):
    name: Name | None = None
    version: Name | None = None


class DiffInfo(_Answer):
    """What the analyzer measured against the previous picture; checked, not used."""

    used_prev_image: bool | None = None
    diff_ratio: Share | None = None
    luma_delta: Annotated[float, Field(ge=-255, le=255, allow_inf_nan=False)] | None = None


class AnalyzeAnswer(_Answer):
    schema_version: Name
    camera_id: Name
    captured_at: Name
    analyzed: bool
    detected: bool
    primary_event: Name
    tags: Annotated[list[Name], Field(max_length=TAGS_MAX)]
    severity: Annotated[int, Field(ge=0, le=3)]
    unknown_flag: bool
    request_id: Name | None = None
    confidence: Share | None = None
    count_hint: Annotated[int, Field(ge=0, le=100_000)] | None = None
    bboxes: Annotated[list[BoxAnswer], Field(max_length=BOXES_MAX)] | None = None
    diff: DiffInfo | None = None
    processing_ms: Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)] | None = None
    model_info: ModelInfo | None = None
    warnings: Annotated[list[Sentence], Field(max_length=WARNINGS_MAX)] | None = None


class CapabilitiesAnswer(_Answer):
    """What an analyzer says about itself; for people to read."""

    api_version: Name
    runtime: Name
    model: ModelInfo
    supported_primary_events: Annotated[list[Name], Field(max_length=EVENTS_MAX)] | None = None
    warnings: Annotated[list[Sentence], Field(max_length=WARNINGS_MAX)] | None = None


Checked = TypeVar("Checked", bound=_Answer)


def parse_answer(
    body: bytes, camera_id: str, captured_at_ms: int, request_id: str, vocabulary: Vocabulary
) -> Analysis:
    """An analysis from a 200's body, or BrokenAnswer naming what is wrong with it."""
    return parse_whole_answer(body, camera_id, captured_at_ms, request_id, vocabulary)[0]


def parse_whole_answer(
    body: bytes, camera_id: str, captured_at_ms: int, request_id: str, vocabulary: Vocabulary
) -> tuple[Analysis, DiffInfo]:
    """With what the server has no use for, for whoever passes the answer on."""
    answer = _checked(AnalyzeAnswer, body)
    _check_echoes(answer, camera_id, captured_at_ms, request_id)
    _check_words(answer, vocabulary)
    info = answer.model_info or ModelInfo()
    analysis = Analysis(
        schema_version=answer.schema_version,
        detected=answer.detected,
        primary_event=answer.primary_event,
        tags=tuple(sorted(set(answer.tags))),
        severity=answer.severity,
        unknown_flag=answer.unknown_flag,
        confidence=answer.confidence,
        count_hint=answer.count_hint,
        boxes=tuple(Box(b.x1, b.y1, b.x2, b.y2, b.label, b.conf) for b in answer.bboxes or ()),
        model_name=info.name,
        model_version=info.version,
        processing_ms=None if answer.processing_ms is None else round(answer.processing_ms),
        warnings=tuple(answer.warnings or ()),
    )
    return analysis, answer.diff or DiffInfo()


def parse_capabilities(body: bytes) -> CapabilitiesAnswer:
    return _checked(CapabilitiesAnswer, body)


def check_content_type(header: str) -> None:
    """Prose and pages are refused by what they call themselves, whatever they hold."""
    kind, _, rest = header.lower().partition(";")
    kind = kind.strip()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise BrokenAnswer(f"the analyzer's answer is not JSON: its Content-Type is {header[:128]!r}")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]*)", rest)
    if charset is not None and charset[1] not in ("utf-8", "utf8", "us-ascii"):
        raise BrokenAnswer(f"the analyzer's answer is not in UTF-8: its Content-Type is {header[:128]!r}")


def _checked(kind: type[Checked], body: bytes) -> Checked:
    try:
        # As text: given bytes, the parser would guess at other encodings, which JSON between programs never has.
        document: Any = _DECODER.decode(body.decode("utf-8"))
    except RecursionError:
        raise BrokenAnswer("the analyzer's answer is nested too deeply") from None
    except ValueError as error:
        raise BrokenAnswer(f"the analyzer's answer is not JSON ({error})") from None
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BrokenAnswer(f"the analyzer's answer breaks the contract at {field}: {first['msg']}") from None


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that comes twice says two things, and nobody can know which one was meant."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise BrokenAnswer(f"the analyzer's answer has {_first_repeat(pairs)[:128]!r} twice")
    return document


def _first_repeat(pairs: list[tuple[str, Any]]) -> str:
    """In one pass: there may be a hundred thousand names."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


# Made once: `json.loads` with a hook makes one for each answer.
_DECODER = json.JSONDecoder(object_pairs_hook=without_repeats)


def _check_echoes(answer: AnalyzeAnswer, camera_id: str, captured_at_ms: int, request_id: str) -> None:
    """Is this the answer to our question, and to nobody else's?"""
    if answer.camera_id != camera_id:
        raise BrokenAnswer(f"the analyzer answered for camera_id {answer.camera_id!r} when asked about {camera_id!r}")
    if answer.request_id is not None and answer.request_id != request_id:
        raise BrokenAnswer("the analyzer echoed another request_id than it was given")
    echoed_ms = _utc_ms(answer.captured_at)
    if echoed_ms is None:
        raise BrokenAnswer(f"the analyzer echoed captured_at {answer.captured_at!r}, which is not ISO 8601")
    if abs(echoed_ms - captured_at_ms) > ECHO_SLACK_MS:
        raise BrokenAnswer(f"the analyzer echoed captured_at {answer.captured_at!r}, which is another look's")
    if not answer.analyzed:
        raise BrokenAnswer("the analyzer answered 200 with analyzed false")


def _check_words(answer: AnalyzeAnswer, vocabulary: Vocabulary) -> None:
    if answer.schema_version != vocabulary.version:
        raise BrokenAnswer(
            f"the analyzer answered with schema_version {answer.schema_version!r} when asked for "
            f"{vocabulary.version!r}"
        )
    if answer.primary_event not in vocabulary.primary_events:
        raise BrokenAnswer(f"primary_event {answer.primary_event!r} is not in the vocabulary {vocabulary.version}")
    for tag in answer.tags:
        if not vocabulary.has(tag):
            raise BrokenAnswer(f"{tag!r} in tags is not in the vocabulary {vocabulary.version}")


def _utc_ms(text: str) -> int | None:
    """UTC epoch ms of an ISO 8601 time; one without an offset is in UTC, as the contract has it."""
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def result_json(analysis: Analysis) -> str:
    """An analysis as it is kept with its frame."""
    return json.dumps(
        {
            "schema_version": analysis.schema_version,
            "bboxes": [
                {"x1": b.x1, "y1": b.y1, "x2": b.x2, "y2": b.y2, "label": b.label, "conf": b.conf}
                for b in analysis.boxes
            ],
            "model_info": {"name": analysis.model_name, "version": analysis.model_version},
            "processing_ms": analysis.processing_ms,
            "warnings": list(analysis.warnings),
        },
        separators=(",", ":"),
    )
