"""From settings or a bundle to detectors that have seen a picture. Work for a thread: it takes a second or more."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from camserver.base import assets
from camserver.base.errors import BadInput, CamError, ModelUnusable
from camserver.base.log import get_logger
from camserver.config import Settings
from camserver.services.analyzer.detector import Detector, Model
from camserver.services.analyzer.model_form import given_labels, parse_labels
from camserver.services.analyzer.models.bundle import Bundle, check_trusted
from camserver.services.analyzer.models.installed import InstalledModels, Pointer
from camserver.services.analyzer.models.manifest import FAST_MODEL_PATH, MODEL_PATH

log = get_logger(__name__)

TRIAL_SIZE = (640, 360)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Detectors of one model, and what is not as it was set up."""

    detectors: Sequence[Detector]
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> Model:
        return self.detectors[0].model


def _loaded(detectors: Sequence[Detector], warnings: tuple[str, ...] = ()) -> Loaded:
    model = detectors[0].model
    if not model.is_blind:
        return Loaded(detectors, warnings)
    blind = (
        f"the model {model.name} {model.version} leads to no event: none of its labels is a person, an animal, a "
        "vehicle or a hazard by the names in docs/guide/models.md; give it such labels in its TOML"
    )
    log.warning("about the model", warning=blind)
    return Loaded(detectors, (*warnings, blind))


def installed_models(settings: Settings) -> InstalledModels:
    return InstalledModels(settings.server.data_dir, settings.analyzer.bundle_max_bytes)


def load(settings: Settings, *, stand_in: bool = True) -> Loaded:
    """What the settings and `camserver models` say; ModelUnusable when there is nothing to run.

    `stand_in`: a model in use that can't be loaded is no reason to see nothing; the one that comes with camserver
    is taken.
    """
    chosen = settings.analyzer
    if chosen.model_path is not None:
        return _loaded(load_file(chosen.model_path, chosen.detector, chosen.workers, chosen.model_sha256))
    warnings: tuple[str, ...] = ()
    try:
        pointer = installed_models(settings).active()
        if pointer is not None:
            return _loaded(load_installed(settings, pointer, chosen.workers))
    except CamError as error:
        if not stand_in:
            raise
        warnings = (
            f"the model in use can't be loaded, the one that comes with camserver stands in: {error.message}",
        )
        log.error("the model in use can't be loaded", cause=error.message)
    if chosen.detector == "onnx" and not warnings:
        raise ModelUnusable(
            'analyzer.detector is "onnx", but no model is named; set analyzer.model_path, or install one with '
            "`camserver models install` and `camserver models use`"
        )
    path = assets.find(assets.MODEL, settings.server.data_dir)
    if path is None:
        raise ModelUnusable(" ".join((*warnings, assets.no_model(settings.server.data_dir))))
    return Loaded(load_shipped(path, chosen.workers), warnings)


def load_fast(settings: Settings) -> list[Detector]:
    """Those for requests that ask for less; empty when they get the same model as all others."""
    chosen = settings.analyzer
    if chosen.fast_model_path is None:
        return []
    return load_file(chosen.fast_model_path, "litert", chosen.workers, chosen.fast_model_sha256, FAST_MODEL_PATH)


def load_shipped(path: Path, count: int) -> list[Detector]:
    """The model that comes with camserver: the very one that its figures are about."""
    return load_file(path, "litert", count, assets.MODEL_SHA256)


def load_file(
    path: Path, runtime: str, count: int, sha256: str | None = None, named_by: str = MODEL_PATH
) -> list[Detector]:
    """Detectors of a file, which must have that hash if one is given; the first has seen a picture.

    `named_by`: the setting that names the file, which errors tell.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelUnusable(
            f"the analyzer's model {path} can't be used: {error.strerror or error}. Check "
            f"analyzer.{named_by}; `make setup` fetches the one that comes with camserver"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256.lower():
        raise ModelUnusable(
            f"the analyzer's model {path} can't be used: its sha256 is {found}, not {sha256.lower()}; it is "
            "damaged or another one. `make setup` repairs the one that comes with camserver; for another see "
            f"analyzer.{named_by.removesuffix('_path')}_sha256"
        )
    # Imported here: a runtime takes a while, and only one of them is needed.
    detectors: list[Detector]
    if runtime == "onnx" or path.suffix == ".onnx":
        from camserver.services.analyzer.onnx_detector import load_described

        detectors = [load_described(path, content) for _ in range(count)]
    else:
        from camserver.services.analyzer.litert_detector import LiteRtDetector

        detectors = [LiteRtDetector(path, content=content) for _ in range(count)]
    _try_out(detectors[0], str(path))
    return detectors


def load_installed(settings: Settings, pointer: Pointer, count: int) -> list[Detector]:
    """An installed model, its files and its signature checked once more, after a trial."""
    bundle = installed_models(settings).read(pointer)
    check_trusted(bundle, settings.analyzer.model_keys)
    return load_bundle(bundle, count)


def load_bundle(bundle: Bundle, count: int) -> list[Detector]:
    """Detectors of a bundle that was checked; the first has seen a picture."""
    detectors = [_detector(bundle) for _ in range(count)]
    _try_out(detectors[0], bundle.title)
    return detectors


def _try_out(detector: Detector, title: str) -> None:
    try:
        detector.detect(Image.effect_noise(TRIAL_SIZE, 64).convert("RGB"))
    except Exception as error:
        raise ModelUnusable(f"the model {title} fails when it is shown a picture: {error}") from error


def _detector(bundle: Bundle) -> Detector:
    manifest = bundle.manifest
    content = bundle.contents[manifest.model]
    model = Model(manifest.runtime, manifest.name, manifest.version)
    labels = _labels(bundle)
    if manifest.runtime == "litert":
        from camserver.services.analyzer.litert_detector import LiteRtDetector

        return LiteRtDetector(Path(manifest.name, manifest.model), content=content, labels=labels, model=model)
    from camserver.services.analyzer.onnx_detector import OnnxDetector

    assert manifest.onnx is not None  # or the manifest would not have been read
    return OnnxDetector(content, manifest.onnx, labels, model)


def _labels(bundle: Bundle) -> tuple[str, ...] | None:
    manifest = bundle.manifest
    if manifest.labels is not None:
        return given_labels(manifest.labels)
    if manifest.labels_file is None:
        return None
    try:
        return parse_labels(bundle.contents[manifest.labels_file], manifest.labels_file)
    except BadInput as error:
        raise ModelUnusable(f"the model {bundle.title} can't be used: {error.message}") from error
