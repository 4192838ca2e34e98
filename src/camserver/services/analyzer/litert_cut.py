"""A LiteRT model without its last step, and what the step needs to be done by `anchor_boxes` instead.

The step is TFLite_Detection_PostProcess after a sigmoid and the turning of bytes into floats, as EfficientDet-Lite
ends. A model that ends otherwise is left as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import flatbuffers  # type: ignore[import-untyped]  # it ships no types
import numpy as np
from ai_edge_litert import schema_py_generated as schema  # type: ignore[import-untyped]  # it ships no types
from flatbuffers import flexbuffers

from camserver.services.analyzer.anchor_boxes import AnchorBoxes, Scale

LAST_STEP: Final = b"TFLite_Detection_PostProcess"
_FILE_ID: Final = b"TFL3"
_DIVISORS: Final = ("y_scale", "x_scale", "h_scale", "w_scale")


@dataclass(frozen=True, slots=True)
class Cut:
    """`content` is a model with two outputs: what is said of each anchor's box, and of its classes."""

    content: bytes
    anchor_boxes: AnchorBoxes


class _OtherForm(Exception):
    pass


def cut(content: bytes) -> Cut | None:
    """None when the model ends in another way. A file that is no model may raise anything."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    try:
        (graph,) = model.subgraphs
        return _cut(model, graph)
    except (_OtherForm, ValueError, KeyError):
        return None


def _cut(model: Any, graph: Any) -> Cut:
    last = graph.operators[-1]
    if model.operatorCodes[last.opcodeIndex].customCode != LAST_STEP:
        raise _OtherForm
    boxes_float, scores_float, anchors = last.inputs
    made_by = {int(tensor): step for step in graph.operators for tensor in step.outputs}

    def before(tensor: int, code: int) -> tuple[Any, int]:
        """The step of that kind that makes it, and out of what."""
        step = made_by[int(tensor)]
        if _code(model, step) != code:
            raise _OtherForm
        return step, int(step.inputs[0])

    boxes_step, boxes = before(boxes_float, schema.BuiltinOperator.DEQUANTIZE)
    floats_step, scores = before(scores_float, schema.BuiltinOperator.DEQUANTIZE)
    sigmoid, classes = before(scores, schema.BuiltinOperator.LOGISTIC)
    options = flexbuffers.Loads(bytes(last.customOptions))
    _check(options, graph.tensors[classes])
    read = AnchorBoxes(
        anchors=_constant(model, graph.tensors[anchors]),
        of_boxes=_scale(graph.tensors[boxes]),
        of_classes=_scale(graph.tensors[classes]),
        of_scores=_scale(graph.tensors[scores]),
        box_divisors=tuple(options[name] for name in _DIVISORS),
        iou_max=options["nms_iou_threshold"],
        found_max=options["max_detections"],
    )
    without = (last, boxes_step, floats_step, sigmoid)
    graph.operators = [step for step in graph.operators if not any(step is one for one in without)]
    graph.outputs = [boxes, classes]
    # They name the outputs that are gone.
    model.signatureDefs = []
    return Cut(_packed(model), read)


def _check(options: Mapping[str, Any], classes: Any) -> None:
    """That the step takes one class a box and compares boxes whatever their class, and knows no empty class."""
    is_plain = options["max_classes_per_detection"] == 1 and not options["use_regular_nms"]
    if not is_plain or options["num_classes"] != classes.shape[-1]:
        raise _OtherForm


def _code(model: Any, step: Any) -> int:
    # Files of before a kind had two bytes know the first one only.
    code = model.operatorCodes[step.opcodeIndex]
    return max(int(code.builtinCode), int(code.deprecatedBuiltinCode))


def _scale(tensor: Any) -> Scale:
    found = tensor.quantization
    if tensor.type != schema.TensorType.INT8 or len(found.scale) != 1:
        raise _OtherForm
    return Scale(float(found.scale[0]), int(found.zeroPoint[0]))


def _constant(model: Any, tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    if tensor.type != schema.TensorType.FLOAT32:
        raise _OtherForm
    return np.frombuffer(bytes(model.buffers[tensor.buffer].data), np.float32).reshape(tensor.shape)


def _packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), _FILE_ID)
    return bytes(builder.Output())
