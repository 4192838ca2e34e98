"""What an analyzer said about one picture, after it was checked against contract and vocabulary."""

from camserver.base.records import record


@record
class Box:
    """Where something is, in 0..1 of the picture's width and height; x1 < x2, y1 < y2."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str | None = None
    conf: float | None = None


@record
class Analysis:
    """One answer. `tags` are ids of the vocabulary `schema_version`, sorted and unique."""

    schema_version: str
    detected: bool
    primary_event: str
    tags: tuple[str, ...]
    severity: int  # 0..3
    unknown_flag: bool
    confidence: float | None = None  # 0..1
    count_hint: int | None = None
    boxes: tuple[Box, ...] = ()
    model_name: str | None = None
    model_version: str | None = None
    processing_ms: int | None = None
    warnings: tuple[str, ...] = ()
