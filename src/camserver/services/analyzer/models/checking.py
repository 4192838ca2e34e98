"""What there is of models, and whether each can be used. Reading, checking and trying: work for a thread."""

from dataclasses import dataclass, replace
from pathlib import Path

from camserver.base import assets
from camserver.base.errors import CamError
from camserver.base.signing import fingerprint
from camserver.config import Settings
from camserver.services.analyzer.models.bundle import signer_of
from camserver.services.analyzer.models.installed import Pointer
from camserver.services.analyzer.models.loading import installed_models, load_bundle, load_file
from camserver.services.analyzer.models.manifest import SHIPPED


@dataclass(frozen=True, slots=True)
class Shown:
    """One model, as people are told of it."""

    name: str
    version: str
    runtime: str
    licence: str
    signed_by: str | None  # the fingerprint of a key of the settings
    in_use: bool
    problem: str | None  # why it can't be used; files and signature only, unless it was tried


def list_models(settings: Settings) -> list[Shown]:
    """All that are there, checked but not tried; the one that comes with camserver first."""
    models = installed_models(settings)
    try:
        active, wrong = models.active(), None
    except CamError as error:
        active, wrong = None, error.message
    shipped = _shipped(settings, active is None, wrong)
    return [shipped, *(_installed(settings, pointer, pointer == active) for pointer in models.all())]


def check_models(settings: Settings, name: str | None) -> list[Shown]:
    """Those of that name, or all: loaded and shown a picture."""
    chosen = [one for one in list_models(settings) if name is None or one.name == name]
    return [_tried(settings, one) for one in chosen]


def _shipped(settings: Settings, in_use: bool, wrong: str | None) -> Shown:
    path = assets.find(assets.MODEL, settings.server.data_dir)
    problem = wrong or (None if path is not None else assets.no_model(settings.server.data_dir))
    return Shown(SHIPPED, Path(assets.MODEL).stem, "litert", "Apache-2.0", None, in_use, problem)


def _installed(settings: Settings, pointer: Pointer, in_use: bool) -> Shown:
    keys = settings.analyzer.model_keys
    runtime = licence = "?"
    signed_by, problem = None, None
    try:
        bundle = installed_models(settings).read(pointer)
        runtime, licence = bundle.manifest.runtime, bundle.manifest.licence
        signed_by = fingerprint(signer_of(bundle, keys)) if keys else None
    except CamError as error:
        problem = error.message
    return Shown(pointer.name, pointer.version, runtime, licence, signed_by, in_use, problem)


def _tried(settings: Settings, shown: Shown) -> Shown:
    if shown.problem is not None:
        return shown
    try:
        if shown.name == SHIPPED:
            path = assets.find(assets.MODEL, settings.server.data_dir)
            assert path is not None  # or there would have been a problem
            load_file(path, "litert", 1)
        else:
            load_bundle(installed_models(settings).read(Pointer(shown.name, shown.version)), 1)
    except CamError as error:
        return replace(shown, problem=error.message)
    return shown
