"""How a model's inputs are made and its outputs are read: the `[onnx]` table of a model's TOML, checked.

The TOML stands beside a model's file (yard.onnx, yard.toml) or is the model.toml of a bundle. This module reads no
file.
"""

import ast
import tomllib
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from camserver.base.errors import BadInput
from camserver.domain.coco_labels import COCO80
from camserver.services.analyzer.fitting import Fit

TOML_BYTES_MAX = 200_000
LABELS_MAX = 10_000

Side = Annotated[int, Field(ge=32, le=4096)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Label = Annotated[str, Field(min_length=1, max_length=100)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=LABELS_MAX)] | Literal["coco80"]
OutputName = Annotated[str, Field(min_length=1, max_length=200)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


T = TypeVar("T", bound=BaseModel)


class Table(BaseModel):
    # A key that is written wrong would otherwise be a default that nobody chose.
    model_config = ConfigDict(extra="forbid", frozen=True)


class OnnxForm(Table):
    """Defaults are those of most YOLO exports."""

    output: Literal["yolov8", "yolov5", "yolox", "detr", "nms_inside", "nms_split"]
    # Where neither is given, they are those of the model's file; these are for one that leaves them open.
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
    output_name: OutputName | None = None  # of several outputs
    # Of models that say boxes, scores and classes each for itself.
    boxes_name: OutputName | None = None
    scores_name: OutputName | None = None
    classes_name: OutputName | None = None
    count_name: OutputName | None = None
    sigmoid: bool = False  # scores are still logits
    boxes: Literal["xywh", "xyxy"] | None = None  # xywh: middle, width and height
    units: Literal["pixels", "share"] | None = None
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
        split = (self.boxes_name, self.scores_name, self.classes_name, self.count_name)
        if self.output == "nms_split" and self.output_name is not None:
            raise ValueError(
                "nms_split has no output_name; it has boxes_name, scores_name, classes_name and count_name"
            )
        if self.output == "detr" and (split[:2].count(None) == 1 or split[2:] != (None, None)):
            raise ValueError("detr has either one output, or boxes_name and scores_name")
        if self.output not in ("detr", "nms_split") and any(split):
            raise ValueError("boxes_name, scores_name, classes_name and count_name are for nms_split and detr")
        return self

    def sized(self, shape: Sequence[object], imgsz: str | None) -> Self:
        """With width and height as the model's file has them, unless they were given: those of its input, or where
        that leaves them open, those that exporters write down beside it (`imgsz`, height and width)."""
        if not self.model_fields_set.isdisjoint(("width", "height")):
            return self
        sides = shape[2:4] if self.layout == "nchw" else shape[1:3]
        if not _are_sides(sides):
            sides = _literal(imgsz)
        if not _are_sides(sides):
            return self
        given = {**self.model_dump(exclude_unset=True), "height": sides[0], "width": sides[1]}
        try:
            return self.model_validate(given)
        except ValidationError as error:
            raise ValueError(f"its file says {sides[1]}x{sides[0]} pixels: {_first_of(error)}") from None

    @property
    def is_decided(self) -> bool:
        """Whether the model itself has sorted out doubles."""
        return self.output in ("detr", "nms_inside", "nms_split")

    @property
    def is_xywh(self) -> bool:
        return (self.boxes or ("xyxy" if self.output.startswith("nms") else "xywh")) == "xywh"

    @property
    def is_share(self) -> bool:
        return (self.units or ("share" if self.output == "detr" else "pixels")) == "share"


class ModelForm(Table):
    """The TOML beside a model's file. Without labels they are those that the model's file holds itself."""

    labels: Labels | None = None
    labels_file: FileName | None = None
    onnx: OnnxForm

    @model_validator(mode="after")
    def _labelled(self) -> Self:
        if self.labels is not None and self.labels_file is not None:
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
        raise BadInput(f"{name}: {_first_of(error)}") from None


def _first_of(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"{field}: {first['msg']}"


def given_labels(labels: list[str] | str | None) -> tuple[str, ...] | None:
    """As they are used: in lower case, and a list that is known by its name in full."""
    if labels is None:
        return None
    return COCO80 if isinstance(labels, str) else tuple(label.lower() for label in labels)


def labels_inside(text: str | None) -> tuple[str, ...]:
    """Those that exporters write into the file: `names`, a list or a table by number. ValueError when it is none."""
    if text is None:
        raise ValueError("no labels are given, and its file holds none (names); give labels or labels_file")
    names = _literal(text)
    if isinstance(names, dict):
        names = [names.get(number) for number in range(len(names))]
    if not isinstance(names, list) or not 0 < len(names) <= LABELS_MAX or not all(isinstance(n, str) for n in names):
        raise ValueError(
            "no labels are given, and those in its file (names) can't be read; give labels or labels_file"
        )
    return tuple(name.strip().lower() for name in names)


def _are_sides(sides: object) -> TypeGuard[Sequence[int]]:
    """Whether it is a height and a width. A side that a model leaves open is a name or nothing."""
    return isinstance(sides, Sequence) and len(sides) == 2 and all(isinstance(side, int) for side in sides)


def _literal(text: str | None) -> Any:
    """What a model's file says in the notation of Python; None when it is none."""
    if text is None or len(text) > TOML_BYTES_MAX:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


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
