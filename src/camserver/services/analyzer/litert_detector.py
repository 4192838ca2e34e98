"""An EfficientDet-Lite model (or one of the same form) run by LiteRT on the CPU.

The form: one input, uint8 [1, S, S, 3] in RGB; four outputs, boxes [1, N, 4] as ymin, xmin, ymax, xmax in 0..1,
classes [1, N], scores [1, N] and their number. The model's file is a zip as well and holds its labels, unless they
are given. Where the last step of a model is known it is done here, with the same finds in less time.
"""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]  # it ships no types
from PIL import Image

from camserver.base.errors import ModelUnusable
from camserver.domain.detections import Detection
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer.anchor_boxes import AnchorBoxes, Found
from camserver.services.analyzer.detector import Model, ModelInput
from camserver.services.analyzer.fitting import Fit, fit
from camserver.services.analyzer.litert_cut import cut

LABELS_FILE = "labelmap.txt"
LABELS_BYTES_MAX = 100_000
# Names nothing in the list of labels.
NO_LABEL = "???"
# The middle of what the model was trained on; bars of it say nothing.
BAR_GREY = 127
VERSION_CHARS = 12
_OUTPUT_DIMENSIONS = [3, 2, 2, 1]
_FORM = "an object detection model with labels, such as EfficientDet-Lite"


class LiteRtDetector:
    """One interpreter. ModelUnusable says what is wrong with the file.

    `content`, `labels` and `model` are given when the file is part of a bundle; it is then not read again.
    """

    def __init__(
        self,
        path: Path,
        how: Fit = "corner",
        *,
        content: bytes | None = None,
        labels: Sequence[str] | None = None,
        model: Model | None = None,
    ) -> None:
        if content is None:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise _unusable(path, error.strerror or type(error).__name__) from error
        self._how = how
        self._labels = _read_labels(path, content) if labels is None else tuple(labels)
        try:
            self._interpreter, self._anchor_boxes = _interpreter_of(content)
            self._interpreter.allocate_tensors()
            self._input, self._side = _check_input(self._interpreter.get_input_details())
            self._outputs = _check_outputs(self._interpreter.get_output_details(), self._anchor_boxes)
        except (ValueError, RuntimeError) as error:
            raise _unusable(path, str(error)) from error
        model = model or Model("litert", path.stem, hashlib.sha256(content).hexdigest()[:VERSION_CHARS])
        self._model = model.labelled(self._labels)

    @property
    def model(self) -> Model:
        return self._model

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        return self.detect_in(self.input_of(picture))

    def input_of(self, picture: Picture) -> ModelInput:
        fitted = fit(picture, (self._side, self._side), self._how, BAR_GREY)
        return ModelInput(fitted.pixels[np.newaxis], fitted)

    def detect_in(self, given: ModelInput) -> Sequence[Detection]:
        fitted = given.fitted
        self._interpreter.set_tensor(self._input, given.values)
        self._interpreter.invoke()
        found = self._found()
        # A damaged model, or one of another form, may say numbers that are none.
        usable = np.isfinite(found.boxes).all(axis=1) & np.isfinite(found.classes)
        usable &= (found.scores > 0.0) & (found.scores <= 1.0)
        columns = (found.boxes[usable].tolist(), found.classes[usable].tolist(), found.scores[usable].tolist())
        detections = []
        for (y1, x1, y2, x2), number, score in zip(*columns, strict=True):
            label = self._label(int(number))
            place = None if label is None else fitted.place(x1, y1, x2, y2)
            if label is not None and place is not None:
                detections.append(Detection(label, score, *place))
        return detections

    def _found(self) -> Found:
        told = [self._interpreter.get_tensor(index)[0] for index in self._outputs]
        if self._anchor_boxes is not None:
            boxes, classes = told
            return self._anchor_boxes.read(boxes, classes)
        boxes, classes, scores, _ = told
        return Found(boxes, classes, scores)

    def _label(self, number: int) -> str | None:
        label = self._labels[number] if 0 <= number < len(self._labels) else NO_LABEL
        return None if label == NO_LABEL else label


def _interpreter_of(content: bytes) -> tuple[Any, AnchorBoxes | None]:
    """The model without its last step and how that is done instead, or the whole model."""
    # Says whether the file is a model at all; what is none must not be cut.
    whole = Interpreter(model_content=content, num_threads=1)
    shorter = cut(content)
    if shorter is None:
        return whole, None
    return Interpreter(model_content=shorter.content, num_threads=1), shorter.anchor_boxes


def _read_labels(path: Path, content: bytes) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(LABELS_FILE) as file:
            text = file.read(LABELS_BYTES_MAX).decode()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise _unusable(path, f"it holds no {LABELS_FILE} ({error})") from error
    return tuple(line.strip().lower() for line in text.splitlines())


def _check_input(details: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """The input's index and the length of its side."""
    shape = tuple(int(length) for length in details[0]["shape"])
    if len(details) != 1 or len(shape) != 4 or shape[1] != shape[2] or shape[3] != 3:
        raise ValueError(f"its input has the shape {shape}, not (1, S, S, 3)")
    if details[0]["dtype"] is not np.uint8:
        raise ValueError("its input is not of bytes")
    return int(details[0]["index"]), shape[1]


def _check_outputs(details: Sequence[dict[str, Any]], anchor_boxes: AnchorBoxes | None) -> list[int]:
    dimensions = [len(detail["shape"]) for detail in details]
    if anchor_boxes is None and dimensions != _OUTPUT_DIMENSIONS:
        raise ValueError(f"its outputs have {dimensions} dimensions, not {_OUTPUT_DIMENSIONS}")
    return [int(detail["index"]) for detail in details]


def _unusable(path: Path, cause: str) -> ModelUnusable:
    return ModelUnusable(
        f"the analyzer's model {path} can't be used: {cause}. `make setup` repairs the one that comes with "
        f"camserver; analyzer.model_path may name another, {_FORM} in LiteRT form"
    )
