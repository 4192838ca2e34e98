"""A running analyzer on a real socket whose detector finds what a test tells it to, and requests to it."""

import asyncio
import contextlib
import io
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image

from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.domain.detections import Detection
from camserver.domain.vocabulary import SHIPPED_FILE, SHIPPED_VERSION, Vocabulary, parse_vocabulary
from camserver.services.analyzer import service
from camserver.services.analyzer.detector import Model
from tests.rig.pictures import jpeg
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, listening_socket, port_of

DOCUMENT: dict[str, Any] = json.loads(resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text("utf-8"))
CAPTURED_AT = "2026-01-01T00:00:00.000Z"
CAPTURED_AT_MS = 1_767_225_600_000
REQUEST_TIMEOUT_SEC = 60
# Bars in every shade: neither blurred nor dark nor glaring.
SHARP = jpeg(scene=0b10110010, size=(640, 360))
MODEL = Model("scripted", "script", "1")
PERSON = Detection("person", 0.9, 0.1, 0.1, 0.3, 0.8)


def shipped() -> Vocabulary:
    return parse_vocabulary(DOCUMENT)


@dataclass(slots=True)
class ScriptedDetector:
    """Finds `finds` in every picture; while `open` is cleared it works on the picture it has."""

    finds: Sequence[Detection] = ()
    error: Exception | None = None
    open: threading.Event = field(default_factory=threading.Event)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    model: Model = MODEL
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.open.set()

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        if not self._alone.acquire(blocking=False):
            raise AssertionError("two threads use one detector at once")
        try:
            self.sizes.append(picture.size)
            assert self.open.wait(REQUEST_TIMEOUT_SEC)
            if self.error is not None:
                raise self.error
            return self.finds
        finally:
            self._alone.release()


@dataclass(slots=True)
class RunningAnalyzer:
    url: str
    detectors: list[ScriptedDetector]
    http: aiohttp.ClientSession

    @property
    def detector(self) -> ScriptedDetector:
        return self.detectors[0]

    async def ask(self, method: str, path: str, **request: Any) -> tuple[int, Any, aiohttp.ClientResponse]:
        """Status, JSON and the response itself."""
        async with self.http.request(method, self.url + path, **request) as response:
            return response.status, await response.json(), response

    async def put_vocabulary(self, document: dict[str, Any] = DOCUMENT) -> None:
        body = {"schema_version": document["schema_version"], "schema": document}
        status, said, _ = await self.ask("PUT", "/v1/schema", json=body)
        assert status == 200, said

    async def analyze(self, picture: bytes | None = SHARP, **fields: str | bytes) -> tuple[int, Any]:
        status, said, _ = await self.ask("POST", "/v1/analyze", data=form(picture, **fields))
        return status, said


def form(picture: bytes | None = SHARP, **fields: str | bytes) -> aiohttp.FormData:
    """A request as the contract has it; a field given as "" is left out."""
    made = aiohttp.FormData()
    asked: dict[str, str | bytes] = {
        "camera_id": "cam_1",
        "captured_at": CAPTURED_AT,
        "schema_version": SHIPPED_VERSION,
    }
    for name, value in (asked | fields).items():
        if isinstance(value, bytes):
            made.add_field(name, io.BytesIO(value), filename="picture.jpg", content_type="image/jpeg")
        elif value:
            made.add_field(name, value)
    if picture is not None:
        made.add_field("infer_image", io.BytesIO(picture), filename="infer.jpg", content_type="image/jpeg")
    return made


def settings_in(folder: Path, **changes: Any) -> Settings:
    settings = load(None, {}, folder)
    return replace(settings, analyzer=replace(settings.analyzer, **changes))


@asynccontextmanager
async def running_analyzer(
    folder: Path, detectors: Sequence[ScriptedDetector] = (), fast: Sequence[ScriptedDetector] = (), **changes: Any
) -> AsyncIterator[RunningAnalyzer]:
    chosen = list(detectors) or [ScriptedDetector()]
    ready = Ready()
    ready.expect("analyzer")
    with listening_socket() as sock:
        settings = settings_in(folder, **changes)
        serving = asyncio.create_task(service.serve(chosen, StoreClock(), settings, ready, sock, fast=fast))
        try:
            await until(lambda: ready.is_ready or serving.done(), "the analyzer is ready")
            timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
            async with aiohttp.ClientSession(timeout=timeout) as http:
                yield RunningAnalyzer(f"http://{LOOPBACK}:{port_of(sock)}", chosen, http)
        finally:
            for detector in chosen:
                detector.open.set()
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
