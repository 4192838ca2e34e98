"""From a bundle or a file to a detector that sees."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from camserver.base import assets
from camserver.base.errors import ModelUnusable
from camserver.services.analyzer.litert_detector import LiteRtDetector
from camserver.services.analyzer.models.bundle import read_bundle
from camserver.services.analyzer.models.loading import load, load_bundle, load_fast
from camserver.services.analyzer.pictures import decode
from tests.rig.footage import asset, cyclist
from tests.services.analyzer.models.made import BYTES_MAX, Made
from tests.services.analyzer.onnx_models import saying, written
from tests.services.analyzer.rig import settings_in


def litert(folder: Path, more: str = "", **files: bytes) -> Path:
    """The shipped model as a bundle."""
    content = {"model.tflite": asset(assets.MODEL).read_bytes(), **files}
    folder.mkdir()
    for name, one in content.items():
        (folder / name).write_bytes(one)
    listed = "\n".join(f'"{name}" = "{hashlib.sha256(one).hexdigest()}"' for name, one in content.items())
    head = 'name = "lite"\nversion = "1"\nruntime = "litert"\nlicence = "Apache-2.0"\nmodel = "model.tflite"\n'
    (folder / "model.toml").write_text(f"{head}{more}\n[files]\n{listed}\n")
    return folder


@pytest.mark.parametrize(
    ("more", "files", "label"),
    [
        ("", {}, "person"),
        ('labels = ["Somebody", "Bike"]', {}, "somebody"),
        ('labels_file = "names"', {"names": b"Anybody\nBike\n"}, "anybody"),
    ],
)
def test_a_litert_bundle_brings_its_labels_inside_or_beside(
    tmp_path: Path, more: str, files: dict[str, bytes], label: str
) -> None:
    (detector,) = load_bundle(read_bundle(litert(tmp_path / "lite", more, **files), BYTES_MAX), 1)
    best = max(detector.detect(decode(cyclist(), "picture")), key=lambda one: one.score)
    assert best.label == label
    assert (detector.model.runtime, detector.model.name, detector.model.version) == ("litert", "lite", "1")


def test_labels_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    path = litert(tmp_path / "lite", 'labels_file = "names"', names=b"\xff\xfe")
    with pytest.raises(ModelUnusable, match="lite 1 can't be used: names is no text"):
        load_bundle(read_bundle(path, BYTES_MAX), 1)


def test_a_file_in_the_settings_wins_over_what_was_chosen(tmp_path: Path) -> None:
    content = saying(np.array([[16, 24, 48, 40, 0.9, 0]], np.float32))
    described = 'labels = ["person"]\n[onnx]\noutput = "nms_inside"\nwidth = 64\nheight = 64\n'
    path = written(tmp_path, content, described, "own")
    settings = settings_in(tmp_path / "data", detector="onnx", model_path=path, workers=2)
    loaded = load(settings)
    assert (loaded.model.name, len(loaded.detectors), loaded.warnings) == ("own", 2, ())


def test_an_output_that_does_not_fit_shows_before_the_model_is_used(tmp_path: Path) -> None:
    made = Made(files={"model.onnx": saying(np.zeros((1, 5), np.float32))})
    with pytest.raises(ModelUnusable, match="6 or 7 values a box"):
        load_bundle(made.bundle(tmp_path), 1)


def test_the_shipped_model_is_run_only_when_it_is_that_one(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert load(settings).model.name == "efficientdet-lite1"
    own = settings.server.data_dir / "assets"
    own.mkdir(parents=True)
    (own / assets.MODEL).write_bytes(asset(assets.MODEL).read_bytes() + b"\0")
    with pytest.raises(ModelUnusable, match=r"its sha256 is .*make setup"):
        load(settings)


def test_a_file_of_the_settings_is_held_against_its_hash(tmp_path: Path) -> None:
    path = asset(assets.MODEL)
    assert (
        load(settings_in(tmp_path, model_path=path, model_sha256=assets.MODEL_SHA256.upper())).model.name == path.stem
    )
    with pytest.raises(ModelUnusable, match=r"sha256.*analyzer\.model_sha256"):
        load(settings_in(tmp_path, model_path=path, model_sha256="0" * 64))


def test_so_is_the_file_for_requests_that_ask_for_less(tmp_path: Path) -> None:
    path = asset(assets.MODEL)
    (loaded,) = load_fast(settings_in(tmp_path, fast_model_path=path, fast_model_sha256=assets.MODEL_SHA256))
    assert loaded.model.name == path.stem
    with pytest.raises(ModelUnusable, match=r"sha256.*analyzer\.fast_model_sha256"):
        load_fast(settings_in(tmp_path, fast_model_path=path, fast_model_sha256="0" * 64))


@pytest.mark.parametrize("named_by", ["model_path", "fast_model_path"])
def test_a_file_that_is_not_there_is_told_with_its_own_setting(tmp_path: Path, named_by: str) -> None:
    settings = settings_in(tmp_path, **{named_by: tmp_path / "none.tflite"})
    with pytest.raises(ModelUnusable, match=rf"none\.tflite.*Check analyzer\.{named_by};"):
        load_fast(settings) if named_by == "fast_model_path" else load(settings)


def test_what_it_does_not_know_a_model_is_not_credited_with(tmp_path: Path) -> None:
    assert load(settings_in(tmp_path)).model.events == (
        "none",
        "camera_issue",
        "human",
        "animal",
        "object_missing",
        "vehicle",
        "unknown",
    )
    path = litert(tmp_path / "lite", 'labels = ["Smoke", "Something"]')
    (detector,) = load_bundle(read_bundle(path, BYTES_MAX), 1)
    assert detector.model.events == ("none", "hazard", "camera_issue", "object_missing", "unknown")


def test_a_model_that_fails_at_its_first_picture_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(LiteRtDetector, "detect", broken)
    with pytest.raises(ModelUnusable, match=r"fails when it is shown a picture: no such operator"):
        load(settings_in(tmp_path))


def test_a_model_that_leads_to_no_event_is_loaded_with_a_warning(tmp_path: Path) -> None:
    content = saying(np.array([[16, 24, 48, 40, 0.9, 0]], np.float32))
    path = written(tmp_path, content, 'labels = ["bolt"]\n[onnx]\noutput = "nms_inside"\n', "own")
    (warning,) = load(settings_in(tmp_path / "data", detector="onnx", model_path=path)).warnings
    assert "leads to no event" in warning
    assert "docs/guide/models.md" in warning
