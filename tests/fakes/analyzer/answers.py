"""What the fake sees in a picture, and its answer to it by the contract's rules.

A picture's hint (tests.rig.pictures) says it in full: `jpeg(Seen("human", ("count.single",)).hint())`. Where
pictures are encoded anew on their way, a scene number chooses from `SCENES`. Any other picture shows nothing.
"""

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from PIL import Image, ImageChops, ImageStat

from tests.rig.pictures import hint_of, scene_of

PRIMARY_EVENTS = ("none", "human", "animal", "vehicle", "hazard", "camera_issue", "object_missing", "unknown")
UNKNOWN_BELOW = 0.5
UNKNOWN_HAZARD_BELOW = 0.7
NIGHT_HUMAN_SEVERITY = 2
DIFF_SIZE = (64, 48)
DIFF_LUMA = 20  # a pixel counts as changed beyond this


@dataclass(frozen=True, slots=True)
class Seen:
    """What is in a picture. None means: as the contract's rules have it."""

    primary_event: str = "none"
    tags: tuple[str, ...] = ()
    confidence: float = 0.9
    count_hint: int | None = None
    bboxes: tuple[Mapping[str, object], ...] = ()
    severity: int | None = None
    unknown_flag: bool | None = None
    detected: bool | None = None
    warnings: tuple[str, ...] = ()

    def hint(self, fault: Mapping[str, object] | None = None) -> dict[str, object]:
        """For a picture's comment; `fault` is `Fault.to_json()` for requests with this very picture."""
        return {"see": asdict(self), "fault": fault}


def _box(label: str) -> Mapping[str, object]:
    return {"x1": 0.25, "y1": 0.25, "x2": 0.5, "y2": 0.75, "label": label, "conf": 0.9}


SCENES: Mapping[int, Seen] = {
    0: Seen(),
    1: Seen("human", ("count.single", "top_color.red"), count_hint=1, bboxes=(_box("person"),)),
    2: Seen("human", ("behavior.loitering", "count.multiple"), count_hint=2, bboxes=(_box("person"),)),
    3: Seen("animal", ("animal.dog",), count_hint=1, bboxes=(_box("dog"),)),
    4: Seen("vehicle", (), count_hint=1, bboxes=(_box("car"),)),
    5: Seen("hazard", ("hazard.smoke_like",), bboxes=(_box("smoke"),)),
    6: Seen("camera_issue", ("camera.occluded",)),
    7: Seen("unknown", ("reason.unknown_activity",), confidence=0.4),
    8: Seen("object_missing", ("object_missing.suspected",)),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A checked POST /v1/analyze."""

    camera_id: str
    captured_at: str
    schema_version: str
    picture: bytes
    prev_picture: bytes | None
    request_id: str | None
    return_bboxes: bool
    hints: Mapping[str, object]


def look_at(picture: bytes) -> tuple[Seen, Mapping[str, object] | None]:
    """What is seen, and the fault that the picture asks for. OSError when it is no picture."""
    with Image.open(io.BytesIO(picture)) as image:
        if image.format not in ("JPEG", "PNG"):
            raise OSError(f"a {image.format} is neither JPEG nor PNG")
        image.load()
    hint = hint_of(picture)
    if hint is None:
        return SCENES.get(scene_of(picture) or 0, Seen()), None
    seen, fault = hint.get("see"), hint.get("fault")
    if not isinstance(seen, dict) or not (fault is None or isinstance(fault, dict)):
        raise ValueError(f"a hint has 'see' and 'fault', not {hint}; make it with Seen.hint()")
    known = {field.name for field in fields(Seen)}
    if not seen.keys() <= known:
        raise ValueError(f"a hint can't say {sorted(seen.keys() - known)}; it can say {sorted(known)}")
    return Seen(**seen), fault


def answer(question: Question, seen: Seen, vocabulary: Mapping[str, object]) -> dict[str, object]:
    """The 200 answer, every optional field included."""
    detected = seen.primary_event != "none" if seen.detected is None else seen.detected
    said: dict[str, object] = {
        "schema_version": question.schema_version,
        "camera_id": question.camera_id,
        "captured_at": question.captured_at,
        "analyzed": True,
        "detected": detected,
        "primary_event": seen.primary_event,
        "tags": sorted(seen.tags),
        "severity": _severity(seen, question.hints, vocabulary) if seen.severity is None else seen.severity,
        "unknown_flag": _unknown(seen, detected) if seen.unknown_flag is None else seen.unknown_flag,
        "confidence": seen.confidence,
        "diff": _diff(question.picture, question.prev_picture),
        "processing_ms": 5,
        "model_info": {"name": "fake", "version": "1"},
        "warnings": list(seen.warnings),
    }
    if question.request_id is not None:
        said["request_id"] = question.request_id
    if seen.count_hint is not None:
        said["count_hint"] = seen.count_hint
    if question.return_bboxes:
        said["bboxes"] = [dict(box) for box in seen.bboxes]
    return said


def _severity(seen: Seen, hints: Mapping[str, object], vocabulary: Mapping[str, object]) -> int:
    tags = vocabulary.get("tags")
    defaults = {tag["id"]: int(tag["severity_default"]) for tag in tags} if isinstance(tags, list) else {}
    highest = max((defaults.get(tag, 0) for tag in seen.tags), default=0)
    if seen.primary_event == "human" and hints.get("time_band") == "night":
        return max(highest, NIGHT_HUMAN_SEVERITY)
    return highest


def _unknown(seen: Seen, detected: bool) -> bool:
    limit = UNKNOWN_HAZARD_BELOW if seen.primary_event == "hazard" else UNKNOWN_BELOW
    return detected and seen.confidence < limit


def _diff(picture: bytes, prev_picture: bytes | None) -> dict[str, object]:
    if prev_picture is None:
        return {"used_prev_image": False, "diff_ratio": 1.0, "luma_delta": 255.0}
    now, before = _small(picture), _small(prev_picture)
    changed = ImageChops.difference(now, before).histogram()[DIFF_LUMA + 1 :]
    delta = ImageStat.Stat(now).mean[0] - ImageStat.Stat(before).mean[0]
    return {
        "used_prev_image": True,
        "diff_ratio": sum(changed) / (DIFF_SIZE[0] * DIFF_SIZE[1]),
        "luma_delta": round(delta, 3),
    }


def _small(picture: bytes) -> Image.Image:
    with Image.open(io.BytesIO(picture)) as image:
        return image.convert("L").resize(DIFF_SIZE)
