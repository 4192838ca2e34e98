"""User-supplied ONNX models: real ones, small, that say what is known beforehand."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image

from camserver.base.errors import ModelUnusable
from camserver.domain.coco_labels import COCO80
from camserver.services.analyzer.onnx_detector import OnnxDetector, load_described
from tests.services.analyzer.onnx_models import measuring, saying, saying_apart, with_metadata, written

TWO = 'labels = ["Person", "car"]\n'
WIDE = Image.new("RGB", (128, 64), (200, 100, 50))


def described(output: str, more: str = "", head: str = TWO) -> str:
    return f'{head}[onnx]\noutput = "{output}"\nwidth = 64\nheight = 64\n{more}'


def loaded(folder: Path, said: object, text: str) -> OnnxDetector:
    return load_described(written(folder, saying(np.array(said, np.float32)), text))


def seen(detector: OnnxDetector, picture: Image.Image = WIDE) -> list[tuple[str, float, tuple[float, ...]]]:
    return [(one.label, round(one.score, 2), (one.x1, one.y1, one.x2, one.y2)) for one in detector.detect(picture)]


# The wide picture stands between bars: it fills the height from a quarter to three quarters.
MIDDLE = (0.25, 0.25, 0.75, 0.75)


def test_yolov8_has_a_column_for_each_box(tmp_path: Path) -> None:
    columns = np.array([[32, 32, 32, 16, 0.9, 0.1], [32, 32, 32, 16, 0.05, 0.02]]).T[np.newaxis]
    assert seen(loaded(tmp_path, columns, described("yolov8"))) == [("person", 0.9, MIDDLE)]


def test_yolov8_may_have_a_row_for_each_box_too(tmp_path: Path) -> None:
    rows = np.array([[[32, 32, 32, 16, 0.9, 0.1], [32, 32, 32, 16, 0.05, 0.02], [0] * 6]])
    assert seen(loaded(tmp_path, rows, described("yolov8"))) == [("person", 0.9, MIDDLE)]


# Twice the same: what a transformer says twice is two.
SHARES = [[0.5, 0.5, 0.5, 0.25]] * 2


def test_detr_says_shares_and_no_doubles(tmp_path: Path) -> None:
    rows = [[[*SHARES[0], 0.9, 0.1], [*SHARES[1], 0.8, 0.3]]]
    assert seen(loaded(tmp_path, rows, described("detr"))) == [("person", 0.9, MIDDLE), ("person", 0.8, MIDDLE)]


def test_detr_may_say_boxes_and_logits_apart(tmp_path: Path) -> None:
    content = saying_apart(pred_boxes=[SHARES], logits=[[[2.0, -3.0], [-9.0, 0.0]]])
    names = 'boxes_name = "pred_boxes"\nscores_name = "logits"\nsigmoid = true'
    detector = load_described(written(tmp_path, content, described("detr", names)))
    assert seen(detector) == [("person", 0.88, MIDDLE), ("car", 0.5, MIDDLE)]
    with pytest.raises(ModelUnusable, match="boxes_name and scores_name"):
        load_described(written(tmp_path, content, described("detr")))
    with pytest.raises(ModelUnusable, match="with 1 labels"):
        load_described(written(tmp_path, content, described("detr", names, 'labels = ["person"]\n')))


@pytest.mark.parametrize("counted", [True, False])
def test_boxes_scores_and_classes_may_come_apart(tmp_path: Path, counted: bool) -> None:
    """As of models with suppression inside; what is behind their number is left over from before."""
    apart = {
        "det_boxes": [[[16, 24, 48, 40], [16, 24, 48, 40], [0, 0, 64, 64]]],
        "det_scores": [[0.9, 0.6, 0.5]],
        "det_classes": [[1, 0, 0]],
        **({"num_dets": [[2]]} if counted else {}),
    }
    found = seen(load_described(written(tmp_path, saying_apart(**apart), described("nms_split"))))
    assert found[:2] == [("car", 0.9, MIDDLE), ("person", 0.6, MIDDLE)]
    assert len(found) == (2 if counted else 3)


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    names = 'boxes_name = "b"\nscores_name = "s"\nclasses_name = "c"\ncount_name = "n"'
    for content in (
        saying_apart(b=[[[0, 0, 1, 1]]], s=[[0.5, 0.5]], c=[[0]], n=[[1]]),
        saying_apart(b=[[[0, 0, 1, 1]]], s=[[0.5]], c=[[0]], n=[[7]]),
        saying_apart(b=[[[0, 0, 1]]], s=[[0.5]], c=[[0]], n=[[1]]),
    ):
        with pytest.raises(ModelUnusable):
            load_described(written(tmp_path, content, described("nms_split", names)))


@pytest.mark.parametrize("names", ["{0: 'Person', 1: 'car'}", "['Person', 'car']"])
def test_labels_may_stand_in_the_models_file(tmp_path: Path, names: str) -> None:
    content = with_metadata(saying(np.array([[16, 24, 48, 40, 0.9, 1]], np.float32)), names=names)
    assert seen(load_described(written(tmp_path, content, described("nms_inside", head="")))) == [
        ("car", 0.9, MIDDLE)
    ]


@pytest.mark.parametrize(
    "names", ["", "{1: 'person'}", "[1]", "[]", "__import__('os')", "(" * 5000, "{'a': 'b'}", "5", "[" * 300_000]
)
def test_labels_in_the_models_file_that_can_not_be_read_are_said(tmp_path: Path, names: str) -> None:
    content = with_metadata(saying(np.array([[16, 24, 48, 40, 0.9, 1]], np.float32)), names=names)
    with pytest.raises(ModelUnusable, match="give labels"):
        load_described(written(tmp_path, content, described("nms_inside", head="")))


def test_the_labels_of_coco_are_known_by_name(tmp_path: Path) -> None:
    row = [[16, 24, 48, 40, 0.9, 79], [16, 24, 48, 40, 0.8, 3]]
    found = seen(loaded(tmp_path, row, described("nms_inside", head='labels = "coco80"\n')))
    assert [one[0] for one in found] == ["toothbrush", "motorcycle"]
    assert (len(COCO80), len(set(COCO80))) == (80, 80)


def test_yolov5_multiplies_how_sure_it_is_of_anything_with_the_class(tmp_path: Path) -> None:
    rows = [[[32, 32, 32, 16, 0.5, 0.2, 0.8], [32, 32, 32, 16, 0.1, 0.9, 0.1]]]
    assert seen(loaded(tmp_path, rows, described("yolov5"))) == [("car", 0.4, MIDDLE)]


def test_yolox_counts_from_the_cells_of_its_grids(tmp_path: Path) -> None:
    rows = np.zeros((1, 4 + 1, 7))
    # Cell (1, 0) of the grid of 32 pixels, then the only cell of the grid of 64.
    rows[0, 1] = [0.0, 1.0, 0.0, np.log(0.5), 1.0, 0.7, 0.0]
    rows[0, 4] = [0.5, 0.5, np.log(0.5), np.log(0.25), 1.0, 0.0, 0.6]
    detector = loaded(tmp_path, rows, described("yolox", "strides = [32, 64]"))
    assert seen(detector) == [("person", 0.7, (0.25, 0.25, 0.75, 0.75)), ("car", 0.6, MIDDLE)]


@pytest.mark.parametrize("row", [[16, 24, 48, 40, 0.9, 1], [0, 16, 24, 48, 40, 1, 0.9]])
@pytest.mark.parametrize("batch", [True, False])
def test_a_model_with_suppression_inside_is_taken_at_its_word(tmp_path: Path, row: list[float], batch: bool) -> None:
    rows = [row, row]
    found = seen(loaded(tmp_path, [rows] if batch else rows, described("nms_inside")))
    assert found == [("car", 0.9, MIDDLE)] * 2


def test_boxes_may_be_corners_in_shares(tmp_path: Path) -> None:
    rows = [[[0.25, 0.375, 0.75, 0.625, 1.0, 0.8, 0.0]]]
    more = 'boxes = "xyxy"\nunits = "share"'
    assert seen(loaded(tmp_path, rows, described("yolov5", more))) == [("person", 0.8, MIDDLE)]


def test_doubles_of_a_class_are_one_find_and_those_of_two_classes_are_two(tmp_path: Path) -> None:
    rows = [[[32, 32, 32, 16, 1, 0.9, 0], [33, 32, 32, 16, 1, 0.8, 0], [32, 32, 32, 16, 1, 0, 0.7]]]
    found = seen(loaded(tmp_path, rows, described("yolov5")))
    assert found == [("person", 0.9, MIDDLE), ("car", 0.7, MIDDLE)]
    apart = seen(loaded(tmp_path, rows, described("yolov5", "iou_max = 1.0")))
    assert [label for label, _, _ in apart] == ["person", "person", "car"]


def test_no_more_is_found_than_asked_for(tmp_path: Path) -> None:
    rows = [[[4 * n, 32, 2, 2, 1, 0.5 + n / 100, 0] for n in range(1, 16)]]
    found = seen(loaded(tmp_path, rows, described("yolov5", "found_max = 3")))
    assert [score for _, score, _ in found] == [0.65, 0.64, 0.63]


def test_what_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    rows = [
        [nan, 24, 48, 40, 0.9, 0],
        [16, 24, inf, 40, 0.9, 0],
        [16, 24, 48, 40, 1.5, 0],
        [16, 24, 48, 40, nan, 0],
        [16, 24, 48, 40, 0.9, 2],
        [16, 24, 48, 40, 0.9, -1],
        [16, 24, 48, 40, 0.9, nan],
        [40, 40, 20, 20, 0.9, 0],
        [900, 900, 999, 999, 0.9, 0],
        [16, 24, 48, 40, 0.9, 0],
    ]
    assert seen(loaded(tmp_path, rows, described("nms_inside"))) == [("person", 0.9, MIDDLE)]


@pytest.mark.parametrize(
    ("fit", "place"),
    [("centre", MIDDLE), ("corner", (0.25, 0.75, 0.75, 1.0)), ("stretch", (0.25, 0.375, 0.75, 0.625))],
)
def test_places_are_those_of_the_picture_however_it_is_fitted(
    tmp_path: Path, fit: str, place: tuple[float, ...]
) -> None:
    detector = loaded(tmp_path, [[16, 24, 48, 40, 0.9, 0]], described("nms_inside", f'fit = "{fit}"'))
    assert seen(detector) == [("person", 0.9, place)]


@pytest.mark.parametrize(
    ("channel", "layout", "more", "score"),
    [
        (0, "nchw", "", 200 / 255),
        (2, "nchw", "", 50 / 255),
        (0, "nchw", 'colours = "bgr"', 50 / 255),
        (1, "nhwc", 'layout = "nhwc"', 100 / 255),
        (1, "nchw", "scale = 1\nmean = [0, 60, 0]\nstd = [1, 80, 1]", 40 / 80),
    ],
)
def test_the_model_sees_the_picture_as_described(
    tmp_path: Path, channel: int, layout: str, more: str, score: float
) -> None:
    text = described("nms_inside", f'fit = "stretch"\n{more}')
    detector = load_described(written(tmp_path, measuring(channel, layout), text))
    (found,) = detector.detect(WIDE)
    assert found.score == pytest.approx(score, abs=1e-3)


def test_bars_are_of_the_described_grey(tmp_path: Path) -> None:
    detector = load_described(written(tmp_path, measuring(0), described("nms_inside", "bar_grey = 0")))
    (found,) = detector.detect(WIDE)
    assert found.score == pytest.approx(100 / 255, abs=1e-3)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.FLOAT])
@pytest.mark.parametrize("shape", [(1, 3, 64, 64), ("batch", 3, "height", "width")])
def test_inputs_of_other_types_and_open_sizes(tmp_path: Path, kind: int, shape: tuple[int | str, ...]) -> None:
    content = saying(np.array([[16, 24, 48, 40, 0.9, 0]], np.float32), shape, kind)
    assert seen(load_described(written(tmp_path, content, described("nms_inside"))))


@pytest.mark.parametrize(
    ("shape", "imgsz"),
    [
        ((1, 3, 64, 96), None),
        (("batch", 3, "height", "width"), "[64, 96]"),
        ((1, 3, 64, 96), "[320, 320]"),  # what the input says is what is true
    ],
)
def test_the_size_is_the_models_own_unless_it_is_given(
    tmp_path: Path, shape: tuple[int | str, ...], imgsz: str | None
) -> None:
    content = saying(np.array([[24, 16, 72, 48, 0.9, 0]], np.float32), shape)
    content = content if imgsz is None else with_metadata(content, imgsz=imgsz)
    detector = load_described(written(tmp_path, content, f'{TWO}[onnx]\noutput = "nms_inside"\n'))
    assert detector.input_of(WIDE).values.shape == (1, 3, 64, 96)
    assert seen(detector, Image.new("RGB", (96, 64))) == [("person", 0.9, MIDDLE)]


@pytest.mark.parametrize(("imgsz", "side"), [(None, 640), ("no size", 640), ("[64]", 640), ("[64, 64]", 64)])
def test_a_size_that_is_nowhere_is_the_usual_one(tmp_path: Path, imgsz: str | None, side: int) -> None:
    content = saying(np.array(ROW, np.float32), ("batch", 3, "height", "width"))
    content = content if imgsz is None else with_metadata(content, imgsz=imgsz)
    detector = load_described(written(tmp_path, content, f'{TWO}[onnx]\noutput = "nms_inside"\n'))
    assert detector.input_of(WIDE).values.shape == (1, 3, side, side)


def test_a_size_in_the_models_file_that_the_grids_do_not_divide_is_refused(tmp_path: Path) -> None:
    content = saying(np.array([[[1] * 7] * 3], np.float32), (1, 3, 40, 40))
    with pytest.raises(ModelUnusable, match="multiples of every stride"):
        load_described(written(tmp_path, content, f'{TWO}[onnx]\noutput = "yolox"\n'))


def test_labels_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("Dog\nCat\n\n")
    text = described("nms_inside", head='labels_file = "names.txt"\n')
    assert seen(loaded(tmp_path, [[16, 24, 48, 40, 0.9, 1]], text))[0][0] == "cat"


def test_the_model_is_named_by_its_file_and_content(tmp_path: Path) -> None:
    model = loaded(tmp_path, [[16, 24, 48, 40, 0.9, 1]], described("nms_inside")).model
    assert (model.runtime, model.name, len(model.version)) == ("onnx", "yard", 12)


ROW = [[16, 24, 48, 40, 0.9, 1]]


@pytest.mark.parametrize(
    ("said", "text", "cause"),
    [
        (ROW, "labels = [", "no TOML"),
        (ROW, described("nms_inside", "hight = 64"), "hight"),
        (ROW, described("yolov9"), "onnx.output"),
        (ROW, described("nms_inside", head=""), "labels"),
        (ROW, described("nms_inside", head='labels_file = "none.txt"\n'), "none.txt"),
        (ROW, described("nms_inside", head='labels_file = "../x.txt"\n'), "labels_file"),
        (ROW, described("nms_inside", "std = [1, 0, 1]"), "std"),
        (ROW, described("nms_inside").replace("width = 64", "width = 96"), "[1, 3, 64, 96]"),
        (ROW, described("nms_inside", 'layout = "nhwc"'), "[1, 64, 64, 3]"),
        ([[1] * 7], described("yolov8"), "6 values a box"),
        (ROW, described("detr", 'boxes_name = "output"'), "boxes_name and scores_name"),
        (ROW, described("yolov8", 'boxes_name = "output"'), "nms_split and detr"),
        (ROW, described("nms_split"), "no output det_boxes"),
        (ROW, described("nms_split", 'output_name = "output"'), "output_name"),
        ([[1] * 7], described("detr"), "6 values a box"),
        (ROW, described("nms_inside", 'output_name = "other"'), "it has output"),
        ([[[1] * 7] * 3], described("yolox", "strides = [32]"), "grids"),
        (ROW, described("yolox", "strides = [24]"), "stride"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, said: object, text: str, cause: str) -> None:
    with pytest.raises(ModelUnusable) as refused:
        loaded(tmp_path, said, text)
    assert cause in refused.value.message
    assert "docs/guide/models.md" in refused.value.message


def test_of_several_outputs_one_is_named(tmp_path: Path) -> None:
    content = saying(np.array(ROW, np.float32), extra_outputs=["more"])
    with pytest.raises(ModelUnusable, match="output, more; name what is read with output_name"):
        load_described(written(tmp_path, content, described("nms_inside")))
    text = described("nms_inside", 'output_name = "more"')
    assert seen(load_described(written(tmp_path, content, text)))


@pytest.mark.parametrize("content", [b"", b"no model", saying(np.array(ROW, np.float32))[:-20]])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelUnusable, match=r"yard"):
        load_described(written(tmp_path, content, described("nms_inside")))


@pytest.mark.parametrize("missing", ["yard.onnx", "yard.toml"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = written(tmp_path, saying(np.array(ROW, np.float32)), described("nms_inside"))
    (tmp_path / missing).unlink()
    with pytest.raises(ModelUnusable) as refused:
        load_described(path)
    assert missing in refused.value.message
    assert "No such file" in refused.value.message
