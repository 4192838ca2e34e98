"""The analyzer: says what a picture shows, in the words of the vocabulary it was given.

It keeps the analyzer contract (`wire.analyzer`, `wire.analyzer_service`) and nothing else: besides the vocabulary it
remembers nothing from one picture to the next, so any number of them may run. It never reaches the store.
"""

import asyncio
import faulthandler
import os
import socket as sockets
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from camserver.base import asgi
from camserver.base.clock import Clock
from camserver.base.errors import Fatal
from camserver.base.log import get_logger
from camserver.base.memory import keep_freed
from camserver.base.ready import Ready
from camserver.clients.analyzer import AnalyzerClient
from camserver.config import Settings
from camserver.services.analyzer.app import Routes
from camserver.services.analyzer.crew import Crew
from camserver.services.analyzer.detector import Detector, InForce
from camserver.services.analyzer.line import Line
from camserver.services.analyzer.models.loading import load, load_fast
from camserver.services.analyzer.models.swapping import Swapping
from camserver.services.analyzer.models.updating import Updating
from camserver.services.analyzer.remote import RemoteAnalyzer, RemoteDetector
from camserver.services.analyzer.vocabulary_file import VocabularyFile

log = get_logger(__name__)

FOLDER = "analyzer"  # in data_dir
WATCH_EVERY_SEC = 1.0
END_WITHIN_SEC = 5.0


# What runs beside the requests, until the analyzer stops.
Beside = Callable[[Line, InForce], Coroutine[Any, Any, None]]


async def run(clock: Clock, settings: Settings, ready: Ready, socket: sockets.socket) -> None:
    """Runs the analyzer on a listening socket until cancelled."""
    keep_freed()
    if settings.analyzer.detector == "remote":
        await _pass_on(clock, settings, ready, socket)
        return
    # Before the model is loaded, so that a choice in between is not missed.
    swapping = Swapping(settings, clock)
    loaded = await asyncio.to_thread(load, settings)
    fast = await asyncio.to_thread(load_fast, settings)
    beside: list[Beside] = [lambda line, _: watch(line, clock)]
    if settings.analyzer.needs_own_model:
        beside.append(lambda line, in_force: swapping.run(line.replace, in_force))
        if settings.analyzer.bundle_url is not None:
            beside.append(lambda _, in_force: Updating(settings, clock).run(in_force))
    in_force = InForce(loaded.model, loaded.warnings, setup_warnings=_setup_warnings(settings))
    await serve(loaded.detectors, clock, settings, ready, socket, fast=fast, in_force=in_force, beside=beside)


def _setup_warnings(settings: Settings) -> tuple[str, ...]:
    """Settings that contradict each other, and what follows."""
    chosen = settings.analyzer
    if chosen.bundle_url is None or chosen.needs_own_model:
        return ()
    by = "analyzer.detector" if chosen.detector == "remote" else "analyzer.model_path"
    warning = (
        f"no newer model is looked for at analyzer.bundle_url, because {by} says what is used; remove one of them"
    )
    log.warning("about the settings", warning=warning)
    return (warning,)


async def _pass_on(clock: Clock, settings: Settings, ready: Ready, socket: sockets.socket) -> None:
    chosen = settings.analyzer
    vocabularies = _vocabulary_file(settings)
    client = AnalyzerClient(
        str(chosen.remote_url),
        analyze_timeout_sec=chosen.analyze_timeout_sec,
        schema_timeout_sec=chosen.schema_timeout_sec,
        health_timeout_sec=chosen.health_timeout_sec,
    )
    try:
        remote = RemoteAnalyzer(client, lambda: vocabularies.held)
        in_force, loop = await remote.in_force(), asyncio.get_running_loop()
        detectors = [RemoteDetector(remote, in_force.model, loop) for _ in range(chosen.workers)]
        beside: list[Beside] = [
            lambda line, _: watch(line, clock),
            lambda _, in_force: remote.run(clock, in_force),
        ]
        in_force.setup_warnings = _setup_warnings(settings)
        await serve(
            detectors, clock, settings, ready, socket, in_force=in_force, vocabularies=vocabularies, beside=beside
        )
    finally:
        await client.close()


async def watch(line: Line, clock: Clock) -> None:
    """Ends this process when a picture is worked on for ever: the thread that does can't be stopped, and the process
    is started again. What every thread was doing is then written to stderr."""
    while line.stuck_sec is None:
        await clock.sleep(WATCH_EVERY_SEC)
    log.error("a picture is worked on for ever, the analyzer ends and is to be started again", sec=line.stuck_sec)
    # Whoever closes the line waits for that thread in vain.
    faulthandler.dump_traceback_later(END_WITHIN_SEC, exit=True)
    raise Fatal(f"a picture was worked on for {line.stuck_sec or 0:.0f} s; the analyzer has to be started again")


def usable_cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0))


def _vocabulary_file(settings: Settings) -> VocabularyFile:
    return VocabularyFile(settings.server.data_dir / FOLDER / "vocabulary.json")


async def serve(
    detectors: Sequence[Detector],
    clock: Clock,
    settings: Settings,
    ready: Ready,
    socket: sockets.socket,
    *,
    fast: Sequence[Detector] = (),
    in_force: InForce | None = None,
    vocabularies: VocabularyFile | None = None,
    beside: Sequence[Beside] = (),
) -> None:
    """Runs the analyzer with these detectors, as many pictures at once as there are."""
    vocabularies = vocabularies or _vocabulary_file(settings)
    await asyncio.to_thread(vocabularies.load)
    chosen = settings.analyzer
    line = Line(
        Crew(detectors, fast),
        chosen.waiting_max,
        chosen.analyze_timeout_sec,
        clock,
        has_spare_core=len(detectors) < usable_cores(),
    )
    in_force = in_force or InForce(detectors[0].model)
    model = in_force.model
    log.info("analyzer ready", model=model.name, version=model.version, at_once=len(detectors))
    routes = Routes(clock, line, vocabularies, settings.detections, in_force)
    try:
        # What runs beside the requests and breaks ends the analyzer, which is started again: nothing dies unseen.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(line, in_force)) for one in beside]
            await asgi.serve(routes.app(), socket, lambda: ready.set("analyzer"))
            for task in tasks:
                task.cancel()
    finally:
        await line.close()
