"""Small real ONNX models with known outputs, built for a test."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

# Of the format, not of the operators; every runtime of the last years reads it.
IR_VERSION = 8
OPSET = 13


def saying(
    output: NDArray[np.float32],
    shape: Sequence[int | str] = (1, 3, 64, 64),
    kind: int = TensorProto.FLOAT,
    extra_outputs: Sequence[str] = (),
) -> bytes:
    """A model that says `output` about every picture."""
    nodes = [
        helper.make_node("Constant", [], ["said"], value=numpy_helper.from_array(output)),
        helper.make_node("Cast", ["picture"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["mean", "mean"], ["nothing"]),
        helper.make_node("Add", ["said", "nothing"], ["output"]),
        *(helper.make_node("Identity", ["said"], [name]) for name in extra_outputs),
    ]
    return _model(nodes, shape, kind, ["output", *extra_outputs], output.shape)


def saying_apart(shape: Sequence[int] = (1, 3, 64, 64), **said: object) -> bytes:
    """A model that says each of these as an output of its own about every picture."""
    outputs = {name: np.array(values, np.float32) for name, values in said.items()}
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))
        for name, values in outputs.items()
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, values.shape) for name, values in outputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    content: bytes = model.SerializeToString()
    return content


def with_metadata(content: bytes, **metadata: str) -> bytes:
    model = onnx.load_model_from_string(content)
    helper.set_model_props(model, metadata)
    changed: bytes = model.SerializeToString()
    return changed


def measuring(channel: int, layout: str = "nchw", side: int = 64) -> bytes:
    """A model whose one find is as sure as the mean of a channel of its input, over the whole of it ([1, 1, 6])."""
    axis = 1 if layout == "nchw" else 3
    nodes = [
        helper.make_node("Constant", [], ["from"], value=_whole([channel])),
        helper.make_node("Constant", [], ["to"], value=_whole([channel + 1])),
        helper.make_node("Constant", [], ["axis"], value=_whole([axis])),
        helper.make_node("Constant", [], ["flat"], value=_whole([1, 1, 1])),
        helper.make_node("Slice", ["picture", "from", "to", "axis"], ["one"]),
        helper.make_node("ReduceMean", ["one"], ["mean"], keepdims=0),
        helper.make_node("Reshape", ["mean", "flat"], ["score"]),
        helper.make_node("Constant", [], ["box"], value=_floats([[[0, 0, side, side]]])),
        helper.make_node("Constant", [], ["class"], value=_floats([[[0]]])),
        helper.make_node("Concat", ["box", "score", "class"], ["output"], axis=2),
    ]
    shape = (1, 3, side, side) if layout == "nchw" else (1, side, side, 3)
    return _model(nodes, shape, TensorProto.FLOAT, ["output"], (1, 1, 6))


def written(folder: Path, content: bytes, described: str, name: str = "yard") -> Path:
    """The model's file with its TOML beside it."""
    path = folder / f"{name}.onnx"
    path.write_bytes(content)
    path.with_suffix(".toml").write_text(described)
    return path


def _model(
    nodes: list[onnx.NodeProto], shape: Sequence[int | str], kind: int, outputs: list[str], said: tuple[int, ...]
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("picture", kind, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, said) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _whole(values: list[int]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64))


def _floats(values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32))
