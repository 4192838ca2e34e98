"""What telemetry costs: CPU of the server's processes a look, without it, and with figures and 1 % of looks traced.

Two real servers (control, dispatcher, web and the writer of SQLite, each in processes of its own) that differ in
nothing but telemetry, fed in turns of a second by workers that speak the real protocol, with looks that are analyzed;
an analyzer that answers at once stands in for the model. So both meet the same machine, whatever else it does. What
counts is the CPU of each over the whole time, idle moments included, divided by the looks that it got. The collector
is a real HTTP server that decodes everything. Figures are sent every 10 s, six times as often as usual.

Beside that what the calls themselves take, a look of all eight steps, in one process that does nothing else.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uuid_utils
import uvloop

from bench._child import child
from bench._cpu import cpu_seconds
from bench._ingest_worker import Worker
from bench._report import QUICK, Row, figure, less_is_better, report, say
from camserver.base import traces
from camserver.base.traces import Span, Step
from camserver.clients.local_server import LocalServer
from tests.fakes.otlp import collecting
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher

PICTURE = os.urandom(50_000)
CAMERAS = 32
LOOKS_PER_SEC = 40.0
WARM_SEC = 2.0
TURN_SEC = 1.0
TURNS = 8 if QUICK else 30
RATIO = 0.01
MORE_MAX = 0.05
CALLS = 20_000


@dataclass(slots=True)
class Fed:
    """A server and the worker that feeds it."""

    pid: int
    worker: Worker
    looks: int = 0

    async def turn(self, seconds: float) -> None:
        """One look after the other, at a steady pace."""
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            await self.worker.send(0, 1)
            count += 1
            await asyncio.sleep(max(count / LOOKS_PER_SEC - passed, 0))
        self.looks += count


@asynccontextmanager
async def fed(endpoint: str | None, analyzer_port: int) -> AsyncIterator[Fed]:
    with TemporaryDirectory(prefix="camserver-bench-") as name:
        folder = Path(name)
        launcher = Launcher(folder)
        web, control = free_port(), free_port()
        settings: dict[str, dict[str, object]] = {
            "server": {"data_dir": str(folder / "data")},
            "web": {"port": web},
            "control": {"port": control},
            "analyzer": {"url": f"http://{LOOPBACK}:{analyzer_port}"},
            "jobs": {"camera_bound": 100_000},
            "log": {"level": "error"},
        }
        if endpoint is not None:
            settings["telemetry"] = {"endpoint": endpoint, "sample_ratio": RATIO, "metrics_every_sec": 10}
        try:
            server = launcher.camserver("server", settings=settings)
            await server.until_ready(f"http://{LOOPBACK}:{web}/readyz")
            api = LocalServer(f"http://{LOOPBACK}:{web}", folder / "data" / "secrets" / "local_admin_token")
            for number in range(CAMERAS):
                await api.add_camera(f"cam_{number}", f"cam_{number}", "test://still", None, None)
            token = (folder / "data" / "secrets" / "worker_token").read_text().strip()
            async with Worker(f"http://{LOOPBACK}:{control}", token, CAMERAS, PICTURE) as worker:
                yield Fed(server.pid, worker)
        finally:
            await launcher.close()


async def measured() -> tuple[float, float]:
    """CPU milliseconds a look, without and with."""
    port = free_port()
    with collecting() as collector, child("_dispatch_analyzer", port=port, parallel=16, took_ms=0) as answering:
        await asyncio.to_thread(answering.hear)
        async with fed(None, port) as off, fed(collector.url, port) as on:
            for one in (off, on):
                await one.turn(WARM_SEC)
                one.looks = 0
            before = [cpu_seconds(one.pid) for one in (off, on)]
            for number in range(TURNS):
                for one in (off, on) if number % 2 else (on, off):
                    await one.turn(TURN_SEC)
            used = [cpu_seconds(one.pid) - was for one, was in zip((off, on), before, strict=True)]
            assert collector.metrics, "no figures arrived"
            say(f"{off.looks} and {on.looks} looks, {len(collector.spans)} spans")
            return used[0] * 1000 / off.looks, used[1] * 1000 / on.looks


class _Taken:
    def add(self, span: Span) -> None:
        pass


def calls_us(ratio: float | None) -> float:
    """CPU of all steps of a look, in microseconds; None: switched off."""
    if ratio is not None:
        traces.switch_on(_Taken(), ratio, lambda: 1_000)
    uuids = [str(uuid_utils.uuid7()) for _ in range(CALLS)]
    ids: dict[str, traces.Value | None] = {"camera_id": "entrance", "tenant_id": 1, "generation": 7}
    began = time.process_time()
    for frame_uuid in uuids:
        for step in Step:
            traces.add(step, frame_uuid, traces.now_ns(), ids=ids)
    used = time.process_time() - began
    traces.switch_off()
    return used * 1e6 / CALLS


def main() -> None:
    off, on = uvloop.run(measured())
    rows: list[Row] = [
        less_is_better(
            "CPU of the server a look, traces of 1 % and figures", on, off * (1 + MORE_MAX), "off, and 5 %", "ms", 1.0
        ),
        figure("the same, off", off, "ms"),
        figure("more than off", (on / off - 1) * 100, "%"),
        figure("calls of a look's steps, off", calls_us(None), "us"),
        figure("calls of a look's steps, traces of 1 %", calls_us(RATIO), "us"),
        figure("calls of a look's steps, every look traced", calls_us(1.0), "us"),
    ]
    report("telemetry", rows)


if __name__ == "__main__":
    main()
