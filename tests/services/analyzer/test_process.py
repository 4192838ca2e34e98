"""`camserver analyzer` as a process of its own, with the real model."""

import asyncio
import io
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from PIL import Image

from camserver.base import assets
from camserver.base.exits import Exit
from tests.rig.footage import asset, cyclist
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running
from tests.services.analyzer.rig import DOCUMENT, REQUEST_TIMEOUT_SEC, RunningAnalyzer

ROUNDS = 15
AT_ONCE = 8
# What the allocator keeps for itself between rounds, and far below one leaked picture of each request.
GROWTH_BYTES_MAX = 80_000_000


class Process:
    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.launcher = launcher
        self.settings: dict[str, dict[str, Any]] = {
            "server": {"data_dir": str(folder / "data")},
            "analyzer": {"port": free_port(), "model_path": str(asset(assets.MODEL))},
            "log": {"format": "json"},
        }

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.settings['analyzer']['port']}"

    def start(self) -> Running:
        return self.launcher.camserver("analyzer", settings=self.settings)

    async def ready(self) -> Running:
        running = self.start()
        await running.until_ready(f"{self.url}/healthz")
        return running


@pytest.fixture
def process(launcher: Launcher, tmp_path: Path) -> Process:
    return Process(launcher, tmp_path)


def client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC))


async def test_it_sees_stops_and_still_knows_its_vocabulary_when_killed(process: Process) -> None:
    first = await process.ready()
    async with client() as http:
        analyzer = RunningAnalyzer(process.url, [], http)
        await analyzer.put_vocabulary()
        status, said = await analyzer.analyze(cyclist())
        assert (status, said["primary_event"], said["count_hint"]) == (200, "human", 1)
        assert said["model_info"]["name"] == "efficientdet-lite1"
    first.kill()
    await process.launcher.none_left()
    second = await process.ready()
    async with client() as http:
        analyzer = RunningAnalyzer(process.url, [], http)
        status, said, _ = await analyzer.ask("GET", "/v1/schema")
        assert (status, said["schema"]) == (200, DOCUMENT)
        assert (await analyzer.analyze(cyclist()))[0] == 200
    assert await second.stop() == Exit.OK


async def test_it_stands_behind_everything_else_and_never_loads_the_store(process: Process) -> None:
    process.settings["analyzer"]["nice"] = 7
    running = await process.ready()
    one = camserver_process(running)
    assert one.nice() == 7 + psutil.Process().nice()
    loaded = {Path(region.path).name for region in one.memory_maps()}
    assert not any(name.startswith(("_sqlite3", "libsqlite3")) for name in loaded)


def camserver_process(running: Running) -> psutil.Process:
    """The process itself, not its guard."""
    found = [one for one in map(psutil.Process, running_pids(running)) if one.cmdline()[1:3] == ["-m", "camserver"]]
    (process,) = found
    return process


def running_pids(running: Running) -> list[int]:
    own = psutil.Process(running.pid)
    return [own.pid, *(child.pid for child in own.children(recursive=True))]


async def test_memory_does_not_grow_with_requests(process: Process) -> None:
    running = await process.ready()
    one = camserver_process(running)
    out = io.BytesIO()
    Image.effect_noise((1600, 900), 60).convert("RGB").save(out, "JPEG", quality=85)
    large, small = out.getvalue(), cyclist()
    async with client() as http:
        analyzer = RunningAnalyzer(process.url, [], http)
        await analyzer.put_vocabulary()

        async def a_round() -> int:
            asked = [analyzer.analyze(large, prev_infer_image=small) for _ in range(AT_ONCE // 2)]
            asked += [analyzer.analyze(b"broken" * 100_000) for _ in range(AT_ONCE // 2)]
            answers = await asyncio.gather(*asked)
            assert [status for status, _ in answers] == [200] * (AT_ONCE // 2) + [400] * (AT_ONCE // 2)
            return int(one.memory_info().rss)

        warm_bytes = max([await a_round() for _ in range(4)])
        assert await last_of(a_round, ROUNDS) < warm_bytes + GROWTH_BYTES_MAX


async def last_of(work: Any, times: int) -> int:
    for _ in range(times - 1):
        await work()
    return int(await work())


async def test_a_missing_model_is_named_with_the_next_step(process: Process, tmp_path: Path) -> None:
    process.settings["analyzer"]["model_path"] = str(tmp_path / "none.tflite")
    running = process.start()
    assert await running.wait() == Exit.MODEL_UNUSABLE
    said = running.stderr_path.read_text().splitlines()[-1]
    for word in ("none.tflite", "make setup", "analyzer.model_path"):
        assert word in said
