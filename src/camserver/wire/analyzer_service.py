"""The analyzer contract from the analyzer's side: what it is asked, and what it answers besides the analysis itself.

The 200 of an analysis is `wire.analyzer.AnalyzeAnswer`, the same model its caller checks it with: an answer that
breaks the contract can't be made here. Pictures are bytes beside the form and are not looked at in this module.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from camserver.base.errors import BadInput
from camserver.domain.analysis import Analysis
from camserver.domain.detections import Hints
from camserver.domain.polygons import POINTS_MAX, POINTS_MIN, POLYGONS_MAX, rounded
from camserver.wire.analyzer import IMAGE_BYTES_MAX, AnalyzeAnswer, BoxAnswer, DiffInfo, ModelInfo, Name, Share

API_VERSION: Final = "v1"
INFER_WIDTHS: Final = (640, 960)
# A vocabulary at all its bounds is below this.
VOCABULARY_BYTES_MAX: Final = 4_000_000
HINT_NAMES_MAX: Final = 100
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def _in_utc(text: str) -> str:
    try:
        offset = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        raise ValueError("it is no time in ISO 8601") from None
    # The contract has only UTC, so a time without an offset is in it.
    if offset not in (None, timedelta(0)):
        raise ValueError("it is not in UTC")
    return text


def _utc(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


Given = Annotated[Name, Field(min_length=1)]
Names = Annotated[list[Name], Field(max_length=HINT_NAMES_MAX)]
Point = Annotated[list[Share], Field(min_length=2, max_length=2)]
Points = Annotated[list[Point], Field(min_length=POINTS_MIN, max_length=POINTS_MAX)]


class _Asked(BaseModel):
    # What a newer caller has to say more is left alone.
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class HintsAsked(_Asked):
    time_band: Name | None = None
    network_zone: Name | None = None
    location_type: Name | None = None
    expected_objects: Names | None = None
    excluded_objects: Names | None = None
    thresholds: Annotated[dict[Name, Share], Field(max_length=HINT_NAMES_MAX)] | None = None
    # Beside those that the contract names; another analyzer leaves them alone. Polygons are of [x, y] in 0..1.
    prev_captured_at: Annotated[Given, AfterValidator(_in_utc)] | None = None
    privacy_masks: Annotated[list[Points], Field(max_length=POLYGONS_MAX)] | None = None
    shelf_roi: Points | None = None

    def known(self) -> Hints:
        """What of it this analyzer uses. Names are in lower case here, whoever wrote them."""
        return Hints(
            night=self.time_band == "night",
            excluded=frozenset(name.lower() for name in self.excluded_objects or ()),
            thresholds={name.lower(): least for name, least in (self.thresholds or {}).items()},
            expected=frozenset(name.lower() for name in self.expected_objects or ()),
            masks=tuple(rounded(mask) for mask in self.privacy_masks or ()),
            shelf=None if self.shelf_roi is None else rounded(self.shelf_roi),
        )


class AnalyzeAsked(_Asked):
    """The fields of POST /v1/analyze that are no pictures."""

    camera_id: Given
    captured_at: Annotated[Given, AfterValidator(_in_utc)]
    schema_version: Given
    request_id: Name | None = None
    profile: Literal["fast", "standard"] = "standard"
    return_bboxes: bool = True
    hints: HintsAsked = HintsAsked()

    @property
    def since_previous_ms(self) -> int | None:
        """The time between the two pictures; None where the caller does not tell."""
        if self.hints.prev_captured_at is None:
            return None
        between = _utc(self.captured_at) - _utc(self.hints.prev_captured_at)
        return round(between.total_seconds() * 1000)


class VocabularyAsked(_Asked):
    schema_version: Given
    # `schema` on the wire, which is a method of every model.
    document: Annotated[dict[str, Any], Field(alias="schema")]


class Accepted(BaseModel):
    schema_version: str
    status: Literal["accepted"] = "accepted"


class Capabilities(BaseModel):
    api_version: str = API_VERSION
    runtime: str
    model: ModelInfo
    supported_primary_events: tuple[str, ...]
    max_image_bytes: int = IMAGE_BYTES_MAX
    recommended_infer_widths: tuple[int, ...] = INFER_WIDTHS
    # What is not as it was set up, such as a model that could not be loaded.
    warnings: tuple[str, ...] | None = None


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    uptime_sec: float


class ErrorAnswer(BaseModel):
    error: str
    message: str
    details: dict[str, Any] | None = None


def parse_fields(fields: Mapping[str, str]) -> AnalyzeAsked:
    """The text fields of an analysis request, or BadInput naming the first that is wrong."""
    document: dict[str, object] = {name: text for name, text in fields.items() if name != "hints"}
    if "hints_json" in fields:
        document["hints"] = _parse_json(fields["hints_json"], "hints_json")
    if "return_bboxes" in fields:
        text = fields["return_bboxes"].lower()
        document["return_bboxes"] = _BOOLEANS.get(text, text)
    try:
        return AnalyzeAsked.model_validate(document)
    except ValidationError as error:
        raise _refused(error) from None


def parse_vocabulary_put(body: bytes) -> VocabularyAsked:
    try:
        asked = VocabularyAsked.model_validate(_parse_json(body, "the body"))
    except ValidationError as error:
        raise _refused(error) from None
    inside = asked.document.get("schema_version")
    if inside != asked.schema_version:
        raise BadInput(f"schema_version is {asked.schema_version!r}, but the schema itself says {inside!r}")
    return asked


def _parse_json(text: str | bytes, what: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise BadInput(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"{what} is no JSON ({error})") from None


def _refused(error: ValidationError) -> BadInput:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the whole"
    return BadInput(f"{field}: {first['msg']}")


def make_answer(asked: AnalyzeAsked, analysis: Analysis, diff: DiffInfo) -> AnalyzeAnswer:
    """What is said about one picture, in the contract's form."""
    boxes = [BoxAnswer(x1=b.x1, y1=b.y1, x2=b.x2, y2=b.y2, label=b.label, conf=b.conf) for b in analysis.boxes]
    return AnalyzeAnswer(
        schema_version=analysis.schema_version,
        camera_id=asked.camera_id,
        captured_at=asked.captured_at,
        analyzed=True,
        detected=analysis.detected,
        primary_event=analysis.primary_event,
        tags=list(analysis.tags),
        severity=analysis.severity,
        unknown_flag=analysis.unknown_flag,
        request_id=asked.request_id,
        confidence=analysis.confidence,
        count_hint=analysis.count_hint,
        bboxes=boxes if asked.return_bboxes else None,
        diff=diff,
        processing_ms=analysis.processing_ms,
        model_info=ModelInfo(name=analysis.model_name, version=analysis.model_version),
        warnings=list(analysis.warnings) or None,
    )
