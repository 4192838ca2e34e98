"""The worker's path from camera to disk, without a server: sources, gate, JPEGs, rings for clips, spool.

    {"cameras": [{"id": …, "url": …, "sub": …, "gate": …}], "interval_sec": 5, "with_lag": true, "spool": "/tmp/x"}

is the first line on its standard input. It prints a line when it is loaded; told to go on, another when every camera
was looked at: what is due from then on is due by the grid. Then each line begins a measurement, and the next one ends
it: the answer is a line of JSON. Looks leave the spool as if a server had acknowledged them.
"""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvloop

from bench._cameras import PASSWORD, USER
from camserver.base import log as logs
from camserver.base.clock import StoreClock, boot_id
from camserver.base.memory import keep_freed
from camserver.base.secrets import Secret
from camserver.config.sections import WorkerSettings
from camserver.domain.gate import GatePolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.looks import LookPolicy
from camserver.media.addresses import AddressPolicy
from camserver.media.ring import Rings
from camserver.services.worker.camera import LookCounts, Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.reports import Reports
from camserver.services.worker.service import PICTURE_THREADS
from camserver.services.worker.spool import Spool
from camserver.wire.worker import Held, LookParams, Source, Start
from tests.rig.polling import until

SPOOL_MAX_BYTES = 500_000_000
LEASE_MS = 10**9
# Waking up costs CPU that is no look's, so not more often than a p99 needs.
LAG_EVERY_SEC = 0.05
ASKED_MAX_BYTES = 10_000_000


class Bench:
    def __init__(self, asked: dict[str, Any], told: asyncio.StreamReader) -> None:
        self._asked = asked
        self._told = told
        self._spool = Spool(Path(asked["spool"]), SPOOL_MAX_BYTES, free_floor_bytes=0)
        self._counts = LookCounts()
        self._clock = StoreClock()
        self._passed = 0
        self._lags_sec: list[float] = []

    async def run(self) -> None:
        await self._spool.open()
        pictures = ThreadPoolExecutor(PICTURE_THREADS, thread_name_prefix="pictures")
        cameras = Cameras(self._surroundings(pictures), len(self._asked["cameras"]))
        print("loaded", flush=True)
        await self._told.readline()
        beside = [asyncio.create_task(self._acknowledge())]
        if self._asked["with_lag"]:
            # It costs CPU itself, so it is left out where there is little else to do.
            beside.append(asyncio.create_task(self._measure_lag()))
        for one in self._asked["cameras"]:
            refused = await cameras.start(self._start(one))
            assert refused is None, refused
            cameras.renewed(Held(camera_id=one["id"], generation=1), self._clock.boot_ms() + LEASE_MS)
        await until(lambda: self._all_are_going(cameras), "a look at every camera")
        print("warm", flush=True)
        while await self._told.readline():
            before, self._lags_sec, self._passed = (self._counts.ok, self._counts.failed), [], 0
            await self._told.readline()
            print(json.dumps(self._measured(*before)), flush=True)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await cameras.close()
        await self._spool.close()

    def _all_are_going(self, cameras: Cameras) -> bool:
        """Some are looked at twice before others are at all, so the number of looks does not tell."""
        held = (cameras.camera(one["id"], 1) for one in self._asked["cameras"])
        return all(camera is not None and camera.is_going for camera in held)

    def _measured(self, ok: int, failed: int) -> dict[str, float]:
        lags_ms = sorted(lag_sec * 1000 for lag_sec in self._lags_sec) or [0.0]
        return {
            "looks": self._counts.ok - ok,
            "failed": self._counts.failed - failed,
            "passed": self._passed,
            "lag_p50_ms": lags_ms[len(lags_ms) // 2],
            "lag_p99_ms": lags_ms[len(lags_ms) * 99 // 100],
            "lag_max_ms": lags_ms[-1],
        }

    async def _acknowledge(self) -> None:
        """Takes looks out of the spool, as the uploader does when the server has them."""
        while True:
            entry = self._spool.take(self._clock.boot_ms(), fresh_first=True)
            if entry is None:
                self._spool.came.clear()
                await self._spool.came.wait()
                continue
            look = await self._spool.load(entry)
            assert look is not None
            self._passed += look.header.verdict != "skip"
            await self._spool.acknowledged(entry)

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_sec = loop.time()
            await asyncio.sleep(LAG_EVERY_SEC)
            self._lags_sec.append(loop.time() - began_sec - LAG_EVERY_SEC)

    def _surroundings(self, pictures: ThreadPoolExecutor) -> Surroundings:
        fields = WorkerSettings.__dataclass_fields__
        ring_max_bytes: Any = fields["ring_max_bytes"].default
        ring_sec: Any = fields["ring_sec"].default
        return Surroundings(
            self._clock,
            boot_id(),
            self._spool,
            Reports(self._clock),
            pictures,
            GatePolicy(),
            LeasePolicy(),
            self._counts,
            AddressPolicy(allow_loopback=True),
            looks=LookPolicy(),
            rings=Rings(ring_max_bytes, ring_sec, self._clock.boot_ms),
        )

    def _start(self, camera: dict[str, Any]) -> Start:
        def source(url: str) -> Source:
            return Source(type="rtsp", url=url, user=USER, password=Secret(PASSWORD))

        looks = LookPolicy()
        return Start(
            intent_id="bench",
            camera_id=camera["id"],
            generation=1,
            source=source(camera["url"]),
            sub=source(camera["sub"]) if camera["sub"] else None,
            params=LookParams(
                polling_interval_sec=self._asked["interval_sec"],
                infer_width=looks.infer_width,
                diff_width=looks.diff_width,
                connect_timeout_sec=30,
                force_infer_every_n=GatePolicy().force_infer_every_n,
                device=camera["id"],
            ),
            next_seq=1,
            gate_state=camera["gate"],
        )


async def main() -> None:
    told = asyncio.StreamReader(limit=ASKED_MAX_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(told), os.fdopen(0, "rb"))
    await Bench(json.loads(await told.readline()), told).run()


if __name__ == "__main__":
    logs.configure("bench", "json", "error")
    keep_freed()
    uvloop.run(main())
