"""A YOLO-style ONNX model run by ONNX Runtime on the CPU, read as its TOML says (`model_form`)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it ships no types
from numpy.typing import NDArray
from PIL import Image

from camserver.base.errors import BadInput, ModelUnusable
from camserver.domain.detections import Detection
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer import onnx_outputs
from camserver.services.analyzer.detector import Model, ModelInput
from camserver.services.analyzer.fitting import fit
from camserver.services.analyzer.litert_detector import VERSION_CHARS
from camserver.services.analyzer.model_form import (
    TOML_BYTES_MAX,
    OnnxForm,
    given_labels,
    labels_inside,
    parse_form,
    parse_labels,
)

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_ERRORS_ONLY = 3
# As exporters of models with suppression inside call it.
NUMBER_OF_FINDS = "num_dets"


class OnnxDetector:
    """One session. ModelUnusable says what is wrong with the model or with how it is described.

    Without labels they are those that the model's file holds itself.
    """

    def __init__(self, content: bytes, form: OnnxForm, labels: Sequence[str] | None, model: Model) -> None:
        options = onnxruntime.SessionOptions()
        # As many pictures at once as there are detectors; each gets one core.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            inputs, metadata = self._session.get_inputs(), self._session.get_modelmeta().custom_metadata_map
            self._form = form = form.sized(inputs[0].shape if inputs else (), metadata.get("imgsz"))
            self._input, self._type = _check_input(inputs, form)
            self._outputs = _choose_outputs([str(one.name) for one in self._session.get_outputs()], form)
            self._labels = labels_inside(metadata.get("names")) if labels is None else tuple(labels)
            self._model = model.labelled(self._labels)
            # What the description gets wrong about the output shows in the first one, so it is made now.
            self.detect(Image.new("RGB", (form.width, form.height)))
        except Exception as error:  # the runtime's errors share no base but this
            raise unusable(model.name, _first_line(error)) from error

    @property
    def model(self) -> Model:
        return self._model

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        return self.detect_in(self.input_of(picture))

    def input_of(self, picture: Picture) -> ModelInput:
        form = self._form
        fitted = fit(picture, (form.width, form.height), form.fit, form.bar_grey)
        return ModelInput(_values(fitted.pixels, form, self._type), fitted)

    def detect_in(self, given: ModelInput) -> Sequence[Detection]:
        form, fitted = self._form, given.fitted
        outputs = self._session.run(self._outputs, {self._input: given.values})
        found = onnx_outputs.read([np.asarray(one, np.float32) for one in outputs], form, len(self._labels))
        detections = []
        for box, score, number in zip(found.boxes, found.scores, found.classes, strict=True):
            place = fitted.place(*(float(edge) for edge in box))
            if place is not None:
                detections.append(Detection(self._labels[number], float(score), *place))
        return detections


def load_described(path: Path, content: bytes | None = None) -> "OnnxDetector":
    """A model's file, unless its content was read before, with its TOML beside it."""
    try:
        content = path.read_bytes() if content is None else content
        beside = path.with_suffix(".toml")
        with beside.open("rb") as file:
            described = parse_form(file.read(TOML_BYTES_MAX + 1), beside.name)
        if described.labels_file is None:
            labels = given_labels(described.labels)
        else:
            with (path.parent / described.labels_file).open("rb") as file:
                labels = parse_labels(file.read(TOML_BYTES_MAX), described.labels_file)
    except OSError as error:
        raise unusable(str(path), f"{error.filename}: {error.strerror}") from error
    except BadInput as error:
        raise unusable(str(path), error.message) from error
    version = hashlib.sha256(content).hexdigest()[:VERSION_CHARS]
    return OnnxDetector(content, described.onnx, labels, Model("onnx", path.stem, version))


def unusable(name: str, cause: str) -> ModelUnusable:
    return ModelUnusable(
        f"the analyzer's ONNX model {name} can't be used: {cause}. docs/guide/models.md says how to describe it"
    )


def _values(pixels: NDArray[np.uint8], form: OnnxForm, kind: type[np.generic]) -> NDArray[Any]:
    """What the model is given. The layout is changed while it is bytes, a quarter of the work."""
    if form.colours == "bgr":
        pixels = pixels[:, :, ::-1]
    by_channel = (3, 1, 1) if form.layout == "nchw" else (1, 1, 3)
    ordered = np.ascontiguousarray(pixels.transpose(2, 0, 1) if form.layout == "nchw" else pixels)[np.newaxis]
    if kind is np.uint8:
        return ordered
    values = ordered.astype(np.float32)
    values /= np.float32(form.scale)
    if form.mean != (0.0, 0.0, 0.0) or form.std != (1.0, 1.0, 1.0):
        values -= np.array(form.mean, np.float32).reshape(by_channel)
        values /= np.array(form.std, np.float32).reshape(by_channel)
    return values if kind is np.float32 else values.astype(kind)


def _check_input(inputs: Sequence[Any], form: OnnxForm) -> tuple[str, type[np.generic]]:
    if len(inputs) != 1:
        raise ValueError(f"it has {len(inputs)} inputs, not one")
    kind = _TYPES.get(inputs[0].type)
    if kind is None:
        raise ValueError(f"its input is a {inputs[0].type}; possible are {', '.join(_TYPES)}")
    wanted = [1, 3, form.height, form.width] if form.layout == "nchw" else [1, form.height, form.width, 3]
    shape = inputs[0].shape
    # A dimension that the model leaves open is a name or nothing.
    fits = len(shape) == 4 and all(
        side == want for side, want in zip(shape, wanted, strict=True) if isinstance(side, int)
    )
    if not fits:
        raise ValueError(f"its input has the shape {shape}, but its TOML makes it {wanted}")
    return str(inputs[0].name), kind


def _choose_outputs(names: Sequence[str], form: OnnxForm) -> list[str]:
    """Those that are read, in the order that `onnx_outputs` reads them in."""
    if form.output == "nms_split":
        wanted = [
            form.boxes_name or "det_boxes",
            form.scores_name or "det_scores",
            form.classes_name or "det_classes",
        ]
        if form.count_name is not None or NUMBER_OF_FINDS in names:
            wanted.append(form.count_name or NUMBER_OF_FINDS)
    elif form.boxes_name is not None and form.scores_name is not None:
        wanted = [form.boxes_name, form.scores_name]
    elif form.output_name is not None:
        wanted = [form.output_name]
    elif len(names) > 1:
        by = "boxes_name and scores_name" if form.output == "detr" else "output_name"
        raise ValueError(f"it has the outputs {', '.join(names)}; name what is read with {by}")
    else:
        wanted = [names[0]]
    for name in wanted:
        if name not in names:
            raise ValueError(f"it has no output {name}; it has {', '.join(names)}")
    return wanted


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:500] if lines else type(error).__name__
