"""What there is of models, and whether each can be used. Reading, checking and trying: work for a thread."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from camserver.base import assets
from camserver.base.errors import CamError
from camserver.base.signing import fingerprint
from camserver.clients.analyzer import AnalyzerClient
from camserver.config import Settings
from camserver.services.analyzer.models.bundle import signer_of
from camserver.services.analyzer.models.installed import Pointer
from camserver.services.analyzer.models.loading import installed_models, load_bundle, load_file, load_shipped
from camserver.services.analyzer.models.manifest import FAST_MODEL_PATH, MODEL_PATH, REMOTE, SHIPPED


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
    chosen: bool = False  # by `camserver models use`; not in use when it can't be used


def list_models(settings: Settings) -> list[Shown]:
    """All that are there, checked but not tried: those of the settings, the one that comes with camserver, others."""
    named = _named(settings)
    by_settings = not settings.analyzer.needs_own_model
    models = installed_models(settings)
    try:
        active, wrong = models.active(), None
    except CamError as error:
        active, wrong = None, error.message
    installed = [_installed(settings, one, one == active and not by_settings) for one in models.all()]
    # The one that comes with camserver stands in for one that can't be used.
    sees = any(one.in_use and one.problem is None for one in installed)
    installed = [replace(one, in_use=one.in_use and sees, chosen=one.in_use) for one in installed]
    return [*named, _shipped(settings, not by_settings and not sees, wrong), *installed]


def _named(settings: Settings) -> list[Shown]:
    """What the settings name, which goes before what was chosen."""
    chosen = settings.analyzer
    named: list[Shown] = []
    if chosen.detector == "remote":
        named.append(Shown(REMOTE, str(chosen.remote_url), "remote", "?", None, True, None))
    elif chosen.model_path is not None:
        named.append(_file(MODEL_PATH, chosen.model_path, chosen.detector))
    if chosen.fast_model_path is not None and chosen.detector != "remote":
        named.append(_file(FAST_MODEL_PATH, chosen.fast_model_path, "litert"))
    return named


def _file(name: str, path: Path, runtime: str) -> Shown:
    problem = None if path.is_file() else f"there is no file {path}; check analyzer.{name}"
    return Shown(name, path.name, "onnx" if path.suffix == ".onnx" else runtime, "?", None, True, problem)


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
        chosen = settings.analyzer
        if shown.name == SHIPPED:
            path = assets.find(assets.MODEL, settings.server.data_dir)
            assert path is not None  # or there would have been a problem
            load_shipped(path, 1)
        elif shown.name == MODEL_PATH and chosen.model_path is not None:
            load_file(chosen.model_path, chosen.detector, 1, chosen.model_sha256)
        elif shown.name == FAST_MODEL_PATH and chosen.fast_model_path is not None:
            load_file(chosen.fast_model_path, "litert", 1, chosen.fast_model_sha256, FAST_MODEL_PATH)
        elif shown.name == REMOTE:
            asyncio.run(_ask(settings))
        else:
            load_bundle(installed_models(settings).read(Pointer(shown.name, shown.version)), 1)
    except CamError as error:
        return replace(shown, problem=error.message)
    return shown


async def _ask(settings: Settings) -> None:
    """Whether the other analyzer says what it is."""
    chosen = settings.analyzer
    client = AnalyzerClient(
        str(chosen.remote_url),
        analyze_timeout_sec=chosen.analyze_timeout_sec,
        schema_timeout_sec=chosen.schema_timeout_sec,
        health_timeout_sec=chosen.health_timeout_sec,
    )
    try:
        await client.capabilities()
    finally:
        await client.close()
