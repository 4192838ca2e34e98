"""The analyzer as it is started, with the models that are installed in its data folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from camserver.base.ready import Ready
from camserver.config import Settings
from camserver.services.analyzer import service
from camserver.services.analyzer.models.installed import Pointer
from camserver.services.analyzer.models.loading import installed_models
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, listening_socket, port_of
from tests.services.analyzer.models.made import Made
from tests.services.analyzer.rig import REQUEST_TIMEOUT_SEC, RunningAnalyzer


def install(settings: Settings, made: Made, folder: Path) -> Pointer:
    return installed_models(settings).add(made.bundle(folder))


def use(settings: Settings, pointer: Pointer | None) -> None:
    installed_models(settings).use(pointer)


@asynccontextmanager
async def started(settings: Settings, clock: ManualClock) -> AsyncIterator[RunningAnalyzer]:
    ready = Ready()
    ready.expect("analyzer")
    with listening_socket() as sock:
        serving = asyncio.create_task(service.run(clock, settings, ready, sock))
        try:
            await until(lambda: ready.is_ready or serving.done(), "the analyzer is ready")
            if serving.done():
                await serving
            timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
            async with aiohttp.ClientSession(timeout=timeout) as http:
                running = RunningAnalyzer(f"http://{LOOPBACK}:{port_of(sock)}", [], http)
                await running.put_vocabulary()
                yield running
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def capabilities(analyzer: RunningAnalyzer) -> dict[str, Any]:
    _, said, _ = await analyzer.ask("GET", "/v1/capabilities")
    assert isinstance(said, dict)
    return said


async def model_of(analyzer: RunningAnalyzer) -> str:
    model = (await capabilities(analyzer))["model"]
    return f"{model['name']} {model['version']}"
