"""A model without its last step finds what the whole one finds."""

from typing import Any

import flatbuffers  # type: ignore[import-untyped]  # it ships no types
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema  # type: ignore[import-untyped]  # it ships no types
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from PIL import Image

from camserver.base import assets
from camserver.media.jpeg_planes import Picture
from camserver.services.analyzer.anchor_boxes import SCORE_MIN
from camserver.services.analyzer.litert_cut import cut
from camserver.services.analyzer.litert_detector import LiteRtDetector
from camserver.services.analyzer.pictures import decode
from tests.rig.footage import asset, cyclist, frame, pedestrians


@pytest.fixture(scope="module")
def content() -> bytes:
    return asset(assets.MODEL).read_bytes()


@pytest.fixture(scope="module")
def detector(content: bytes) -> LiteRtDetector:
    return LiteRtDetector(asset(assets.MODEL), content=content)


# In the model's order, as far as a test asks for them.
LABELS = ("person", *(f"thing {number}" for number in range(1, 90)))


def noise() -> Image.Image:
    values = np.random.default_rng(5).integers(0, 256, (300, 400, 3), np.uint8)
    return Image.fromarray(values)


def pictures() -> dict[str, Picture]:
    shown: dict[str, Picture] = {"cyclist": decode(cyclist(), "picture"), "noise": noise()}
    shown["nothing"] = Image.new("RGB", (64, 64), (90, 90, 90))
    return shown | {f"people {n}": decode(frame(pedestrians(), n), "picture") for n in range(0, 400, 80)}


class Whole:
    """The model as it is."""

    def __init__(self, content: bytes) -> None:
        self._interpreter: Any = Interpreter(model_content=content, num_threads=1)
        self._interpreter.allocate_tensors()

    def found(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        (given,) = self._interpreter.get_input_details()
        self._interpreter.set_tensor(given["index"], values)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(one["index"])[0] for one in self._interpreter.get_output_details()]


def test_the_same_is_found(content: bytes, detector: LiteRtDetector) -> None:
    whole, things = Whole(content), 0
    for name, picture in pictures().items():
        given = detector.input_of(picture)
        boxes, _, scores, _ = whole.found(given.values)
        found = detector.detect_in(given)
        sure = scores >= SCORE_MIN
        places = [given.fitted.place(x1, y1, x2, y2) for y1, x1, y2, x2 in boxes[sure].tolist()]
        assert [one.score for one in found] == scores[sure].tolist(), name
        for one, place in zip(found, places, strict=True):
            assert (one.x1, one.y1, one.x2, one.y2) == pytest.approx(place, abs=2e-4)
        things += len(found)
    assert things > 50


def changed(content: bytes, **options: Any) -> bytes:
    """The model with other options of its last step."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    last = model.subgraphs[0].operators[-1]
    last.customOptions = list(flexbuffers.Dumps(flexbuffers.Loads(bytes(last.customOptions)) | options))
    return packed(model)


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize(
    "options", [{"use_regular_nms": True}, {"max_classes_per_detection": 2}, {"num_classes": 89}], ids=str
)
def test_a_last_step_of_another_kind_is_left_to_the_model(content: bytes, options: dict[str, Any]) -> None:
    assert cut(changed(content, **options)) is None


def test_a_model_that_is_left_whole_finds_the_same(content: bytes, detector: LiteRtDetector) -> None:
    """With two classes a box it says more of them; the best of each are those."""
    left = LiteRtDetector(asset(assets.MODEL), content=changed(content, max_classes_per_detection=2), labels=LABELS)
    picture = pictures()["cyclist"]
    best = max(detector.detect(decode(cyclist(), "picture")), key=lambda one: one.score)
    assert best in list(left.detect_in(left.input_of(picture)))


def test_a_model_without_that_step_is_left_as_it_is(content: bytes) -> None:
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph = model.subgraphs[0]
    graph.outputs = graph.operators[-1].inputs[:2]
    graph.operators = graph.operators[:-1]
    assert cut(packed(model)) is None


def test_floats_are_left_as_they_are(content: bytes) -> None:
    """Bytes are what is read; a model whose classes are floats from the beginning has none."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph = model.subgraphs[0]
    for code in model.operatorCodes:
        if code.builtinCode == schema.BuiltinOperator.DEQUANTIZE:
            code.builtinCode = schema.BuiltinOperator.CAST
            code.deprecatedBuiltinCode = schema.BuiltinOperator.CAST
    assert len(graph.operators) > 300
    assert cut(packed(model)) is None
