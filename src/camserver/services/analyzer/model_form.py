"""How a model's inputs are made and its outputs are read: the `[onnx]` table of a model's TOML, checked.

The TOML stands beside a model's file (yard.onnx, yard.toml) or is the model.toml of a bundle. This module reads no
file.
"""

import tomllib
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from camserver.base.errors import BadInput
from camserver.services.analyzer.fitting import Fit

TOML_BYTES_MAX = 200_000
LABELS_MAX = 10_000

Side = Annotated[int, Field(ge=32, le=4096)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Label = Annotated[str, Field(min_length=1, max_length=100)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=LABELS_MAX)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


T = TypeVar("T", bound=BaseModel)


class Table(BaseModel):
    # A key that is written wrong would otherwise be a default that nobody chose.
    model_config = ConfigDict(extra="forbid", frozen=True)


class OnnxForm(Table):
    """Defaults are those of most YOLO exports."""

    output: Literal["yolov8", "yolov5", "yolox", "nms_inside"]
    width: Side = 640
    height: Side = 640
    layout: Literal["nchw", "nhwc"] = "nchw"
    colours: Literal["rgb", "bgr"] = "rgb"
    # A value is (pixel / scale - mean) / std, by channel in the order of `colours`.
    scale: Annotated[float, Field(gt=0, le=65_535)] = 255.0
    mean: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    std: tuple[Finite, Finite, Finite] = (1.0, 1.0, 1.0)
    fit: Fit = "centre"
    bar_grey: Annotated[int, Field(ge=0, le=255)] = 114
    output_name: str | None = None  # of several outputs
    boxes: Literal["xywh", "xyxy"] | None = None  # xywh: middle, width and height
    units: Literal["pixels", "share"] = "pixels"
    strides: Annotated[tuple[Annotated[int, Field(ge=1, le=256)], ...], Field(min_length=1, max_length=8)] = (
        8,
        16,
        32,
    )
    score_min: Annotated[float, Field(ge=0.01, le=1.0)] = 0.1
    iou_max: Share = 0.45
    found_max: Annotated[int, Field(ge=1, le=500)] = 100

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if 0.0 in self.std:
            raise ValueError("std must not hold 0")
        if self.output == "yolox" and any(
            side % stride for side in (self.width, self.height) for stride in self.strides
        ):
            raise ValueError("width and height must be multiples of every stride")
        return self

    @property
    def is_xywh(self) -> bool:
        return (self.boxes or ("xyxy" if self.output == "nms_inside" else "xywh")) == "xywh"


class ModelForm(Table):
    """The TOML beside a model's file."""

    labels: Labels | None = None
    labels_file: FileName | None = None
    onnx: OnnxForm

    @model_validator(mode="after")
    def _labelled(self) -> Self:
        if (self.labels is None) == (self.labels_file is None):
            raise ValueError("give either labels or labels_file")
        return self


def parse_form(content: bytes, name: str) -> ModelForm:
    """BadInput names the first key that is wrong."""
    return parse_table(ModelForm, content, name)


def parse_table(kind: type[T], content: bytes, name: str) -> T:
    if len(content) > TOML_BYTES_MAX:
        raise BadInput(f"{name} has more than {TOML_BYTES_MAX} bytes")
    try:
        document: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no TOML: {error}") from None
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BadInput(f"{name}: {field}: {first['msg']}") from None


def parse_labels(content: bytes, name: str) -> tuple[str, ...]:
    """A file of labels, one a line, in the order of the model's classes."""
    try:
        labels = [line.strip() for line in content.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise BadInput(f"{name} is no text in UTF-8") from None
    while labels and not labels[-1]:
        labels.pop()
    if not labels or len(labels) > LABELS_MAX:
        raise BadInput(f"{name} holds {len(labels)} labels; 1 to {LABELS_MAX} are possible")
    return tuple(label.lower() for label in labels)
