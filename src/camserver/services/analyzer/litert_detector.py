"""An EfficientDet-Lite model (or one of the same form) run by LiteRT on the CPU.

The form: one input, uint8 [1, S, S, 3] in RGB; four outputs, boxes [1, N, 4] as ymin, xmin, ymax, xmax in 0..1,
classes [1, N], scores [1, N] and their number. The model's file is a zip as well and holds its labels.
"""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]  # it ships no types
from numpy.typing import NDArray
from PIL import Image

from camserver.base.errors import ModelUnusable
from camserver.domain.detections import Detection
from camserver.services.analyzer.detector import Model

LABELS_FILE = "labelmap.txt"
LABELS_BYTES_MAX = 100_000
# Names nothing in the list of labels.
NO_LABEL = "???"
# The middle of what the model was trained on; bars of it say nothing.
BAR_COLOUR = (127, 127, 127)
VERSION_CHARS = 12
_OUTPUT_DIMENSIONS = [3, 2, 2, 1]
_FORM = "an object detection model with labels, such as EfficientDet-Lite"


class LiteRtDetector:
    """One interpreter. ModelUnusable says what is wrong with the file."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _unusable(path, error.strerror or type(error).__name__) from error
        self._labels = _read_labels(path)
        try:
            self._interpreter = Interpreter(model_content=content, num_threads=1)
            self._interpreter.allocate_tensors()
            self._input, self._side = _check_input(self._interpreter.get_input_details())
            self._outputs = _check_outputs(self._interpreter.get_output_details())
        except (ValueError, RuntimeError) as error:
            raise _unusable(path, str(error)) from error
        version = hashlib.sha256(content).hexdigest()[:VERSION_CHARS]
        self._model = Model("litert", path.stem, version)

    @property
    def model(self) -> Model:
        return self._model

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        square, width_share, height_share = _letterboxed(picture, self._side)
        self._interpreter.set_tensor(self._input, np.asarray(square)[np.newaxis])
        self._interpreter.invoke()
        boxes, classes, scores, _ = (self._interpreter.get_tensor(index)[0] for index in self._outputs)
        found = []
        for box, number, score in zip(boxes, classes, scores, strict=True):
            label = self._label(int(number))
            place = _place(box, width_share, height_share)
            if label is not None and place is not None and 0.0 < score <= 1.0:
                found.append(Detection(label, float(score), *place))
        return found

    def _label(self, number: int) -> str | None:
        label = self._labels[number] if 0 <= number < len(self._labels) else NO_LABEL
        return None if label == NO_LABEL else label


def _letterboxed(picture: Image.Image, side: int) -> tuple[Image.Image, float, float]:
    """The picture in a square with its shape kept, and which share of width and height it fills.

    Stretched to the square, people become too wide to be recognized as well.
    """
    scale = side / max(picture.size)
    width, height = (max(round(length * scale), 1) for length in picture.size)
    square = Image.new("RGB", (side, side), BAR_COLOUR)
    square.paste(picture.resize((width, height), Image.Resampling.BILINEAR), (0, 0))
    return square, width / side, height / side


def _place(
    box: NDArray[np.float32], width_share: float, height_share: float
) -> tuple[float, float, float, float] | None:
    """x1, y1, x2, y2 in the picture, at most its own edges; None when nothing of it is left."""
    y1, x1, y2, x2 = (float(edge) for edge in box)
    edges = [x1 / width_share, y1 / height_share, x2 / width_share, y2 / height_share]
    left, top, right, bottom = (round(min(max(edge, 0.0), 1.0), 4) for edge in edges)
    return (left, top, right, bottom) if left < right and top < bottom else None


def _read_labels(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(LABELS_FILE) as file:
            text = file.read(LABELS_BYTES_MAX).decode()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise _unusable(path, f"it holds no {LABELS_FILE} ({error})") from error
    return [line.strip().lower() for line in text.splitlines()]


def _check_input(details: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """The input's index and the length of its side."""
    shape = tuple(int(length) for length in details[0]["shape"])
    if len(details) != 1 or len(shape) != 4 or shape[1] != shape[2] or shape[3] != 3:
        raise ValueError(f"its input has the shape {shape}, not (1, S, S, 3)")
    if details[0]["dtype"] is not np.uint8:
        raise ValueError("its input is not of bytes")
    return int(details[0]["index"]), shape[1]


def _check_outputs(details: Sequence[dict[str, Any]]) -> list[int]:
    dimensions = [len(detail["shape"]) for detail in details]
    if dimensions != _OUTPUT_DIMENSIONS:
        raise ValueError(f"its outputs have {dimensions} dimensions, not {_OUTPUT_DIMENSIONS}")
    return [int(detail["index"]) for detail in details]


def _unusable(path: Path, cause: str) -> ModelUnusable:
    return ModelUnusable(
        f"the analyzer's model {path} can't be used: {cause}. `make setup` repairs the one that comes with "
        f"camserver; analyzer.model_path may name another, {_FORM} in LiteRT form"
    )
