"""The real detector on real pictures, and files that are no model."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from camserver.base import assets
from camserver.base.errors import ModelUnusable
from camserver.domain.detections import Detection, DetectionPolicy, Hints, interpret
from camserver.services.analyzer.litert_detector import LiteRtDetector
from camserver.services.analyzer.pictures import decode, gray_of, quality_of
from tests.rig.footage import asset, cyclist, frame, pedestrians
from tests.services.analyzer.rig import shipped

SURE = 0.5


@pytest.fixture(scope="module")
def detector() -> LiteRtDetector:
    return LiteRtDetector(asset(assets.MODEL))


def persons(found: list[Detection]) -> list[Detection]:
    return [one for one in found if one.label == "person" and one.score >= SURE]


def test_the_model_is_named_by_its_file_and_content(detector: LiteRtDetector) -> None:
    assert (detector.model.runtime, detector.model.name) == ("litert", "efficientdet-lite1")
    assert detector.model.version == "183afa66aad6"


def test_a_cyclist_is_found_where_she_is(detector: LiteRtDetector) -> None:
    found = list(detector.detect(decode(cyclist(), "picture")))
    (person,) = persons(found)
    # She fills the height of the picture, right of its middle.
    assert 0.5 < person.x1 < person.x2 < 0.85
    assert person.y2 - person.y1 > 0.8
    assert any(one.label == "bicycle" and one.touches(person) for one in found if one.score >= SURE)


@pytest.mark.parametrize("number", [0, 150, 300])
def test_pedestrians_are_found(detector: LiteRtDetector, number: int) -> None:
    picture = decode(frame(pedestrians(), number), "picture")
    found = list(detector.detect(picture))
    assert len(persons(found)) >= 3
    analysis = interpret(found, quality_of(gray_of(picture)), Hints(), shipped(), DetectionPolicy())
    assert (analysis.primary_event, analysis.unknown_flag) == ("human", False)
    assert "count.multiple" in analysis.tags


@pytest.mark.parametrize("size", [(640, 272), (272, 640), (2000, 40), (1, 1), (384, 384)])
def test_places_are_within_the_picture_whatever_its_shape(detector: LiteRtDetector, size: tuple[int, int]) -> None:
    for one in detector.detect(decode(cyclist(), "picture").resize(size)):
        assert 0 <= one.x1 < one.x2 <= 1
        assert 0 <= one.y1 < one.y2 <= 1
        assert 0 < one.score <= 1


def test_nothing_is_found_in_an_empty_picture(detector: LiteRtDetector) -> None:
    sure = [one for one in detector.detect(Image.new("RGB", (640, 360), (90, 90, 90))) if one.score >= SURE]
    assert sure == []


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "person\n")
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "No such file"),
        (b"", "labelmap"),
        (b"text", "labelmap"),
        (zipped("other.txt"), "labelmap"),
        (zipped("labelmap.txt"), "can't be used"),
    ],
)
def test_a_file_that_is_no_model_is_named_with_the_next_step(
    tmp_path: Path, content: bytes | None, cause: str
) -> None:
    path = tmp_path / "model.tflite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnusable) as caught:
        LiteRtDetector(path)
    for word in (str(path), cause, "make setup", "analyzer.model_path"):
        assert word in caught.value.message


def test_half_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.tflite"
    content = asset(assets.MODEL).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelUnusable):
        LiteRtDetector(path)


class Nonsense:
    """An interpreter whose numbers are none, but for the last."""

    def set_tensor(self, *_: object) -> None: ...

    def invoke(self) -> None: ...

    def get_tensor(self, index: int) -> np.ndarray:
        nan, inf = float("nan"), float("inf")
        boxes = [[nan, 0, 1, 1], [0, 0, inf, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
        said = [boxes, [0, 0, nan, inf, 0], [0.9, 0.9, 0.9, 0.9, 0.8], [5]]
        return np.array([said[index]], np.float32)


def test_numbers_that_are_none_are_left_out(detector: LiteRtDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detector, "_interpreter", Nonsense())
    monkeypatch.setattr(detector, "_outputs", [0, 1, 2, 3])
    monkeypatch.setattr(detector, "_anchor_boxes", None)
    (found,) = detector.detect(Image.new("RGB", (64, 64)))
    assert (found.label, round(found.score, 1)) == ("person", 0.8)
