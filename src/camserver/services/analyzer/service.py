"""The analyzer: says what a picture shows, in the words of the vocabulary it was given.

It keeps the analyzer contract (`wire.analyzer`, `wire.analyzer_service`) and nothing else: besides the vocabulary it
remembers nothing from one picture to the next, so any number of them may run. It never reaches the store.
"""

import asyncio
import socket as sockets
from collections.abc import Sequence
from pathlib import Path

from camserver.base import asgi, assets
from camserver.base.clock import Clock
from camserver.base.errors import ModelUnusable
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.config import Settings
from camserver.services.analyzer.app import Routes
from camserver.services.analyzer.detector import Detector
from camserver.services.analyzer.line import Line
from camserver.services.analyzer.vocabulary_file import VocabularyFile

log = get_logger(__name__)

FOLDER = "analyzer"  # in data_dir


async def run(clock: Clock, settings: Settings, ready: Ready, socket: sockets.socket) -> None:
    """Runs the analyzer on a listening socket until cancelled."""
    chosen = settings.analyzer
    path = chosen.model_path or assets.find(assets.MODEL, settings.server.data_dir)
    if path is None:
        raise ModelUnusable(assets.no_model(settings.server.data_dir))
    detectors = await asyncio.to_thread(_load, path, chosen.workers)
    await serve(detectors, clock, settings, ready, socket)


async def serve(
    detectors: Sequence[Detector], clock: Clock, settings: Settings, ready: Ready, socket: sockets.socket
) -> None:
    """Runs the analyzer with these detectors, as many pictures at once as there are."""
    vocabularies = VocabularyFile(settings.server.data_dir / FOLDER / "vocabulary.json")
    await asyncio.to_thread(vocabularies.load)
    line = Line(detectors, settings.analyzer.waiting_max, clock)
    model = detectors[0].model
    log.info("analyzer ready", model=model.name, version=model.version, at_once=len(detectors))
    routes = Routes(clock, line, vocabularies, settings.detections, model)
    try:
        await asgi.serve(routes.app(), socket, lambda: ready.set("analyzer"))
    finally:
        await line.close()


def _load(path: Path, count: int) -> list[Detector]:
    # Imported here: the runtime takes a while, and its absence shall be said by name.
    from camserver.services.analyzer.litert_detector import LiteRtDetector

    return [LiteRtDetector(path) for _ in range(count)]
