"""The examples of docs/guide/models.md are what the code reads."""

import re
from pathlib import Path

from camserver.domain.detections import CARRIED, MEANINGS
from camserver.services.analyzer.model_form import OnnxForm, parse_form
from camserver.services.analyzer.models.manifest import parse_manifest

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "models.md").read_text()


def test_the_examples_can_be_read() -> None:
    yolov8, yolox, faces, manifest = (text.encode() for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    assert parse_form(yolov8, "yard.toml").onnx.output == "yolov8"
    assert parse_form(yolox, "yard.toml").onnx.colours == "bgr"
    packed = faces + b'[files]\n"320n.onnx" = "%s"\n' % (b"0" * 64)  # as `camserver models pack` writes it
    assert parse_manifest(packed).model == "320n.onnx"
    assert parse_manifest(manifest).name == "yard-yolo"


def first_column() -> set[str]:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w ]+)`", row)}


def test_every_key_and_every_label_that_means_something_is_in_a_table() -> None:
    assert first_column() == {*OnnxForm.model_fields, *MEANINGS, *CARRIED}
