"""How old a picture is when Chromium shows it, by a clock in the picture: the whole product and its own player.

The camera is GStreamer's: it draws the time of day into a picture and encodes it at once. The page reads it off every
picture that it shows, on the same machine and so by the same clock. Encoding, the camera's network, the worker, the
streamer, decoding and the player's own patience are all in it.
`bench/live.py` takes `latency_rows`; alone: `make bench-live BENCH_ARGS="--only latency"`.
"""

import asyncio
import json
from pathlib import Path
from statistics import median

import pytest

from bench._queue_scene import percentile
from bench._report import QUICK, Row, figure, less_is_better, say
from tests.e2e.installation import installation, signed_in
from tests.e2e.ui.browser import missing, play
from tests.fakes.gstreamer import clock
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.rig.ports import free_port
from tests.rig.processes import Launcher

AIM_MS = 300.0
SAMPLES = 45 if QUICK else 300
SETTLING = 45


def latency_rows(folder: Path) -> list[Row]:
    lacking = missing()
    if lacking is not None:
        say(f"latency in Chromium is not measured: {lacking}")
        return []
    try:
        with gstreamer_pipelines({"/clock": clock.PIPELINE}) as camera:
            ages_ms = asyncio.run(watched(f"{camera}/clock", folder))
    except pytest.skip.Exception as error:
        say(f"latency in Chromium is not measured: {error}")
        return []
    return [
        less_is_better("latency in Chromium, median", median(ages_ms), AIM_MS, "the aim", "ms", 1.0),
        figure("latency in Chromium, slowest of twenty", percentile(ages_ms, 0.95), "ms"),
    ]


async def watched(camera_url: str, folder: Path) -> list[float]:
    launcher = Launcher(folder)
    house = installation(
        launcher,
        folder / "data",
        streamer={"port": free_port()},
        looks={"polling_interval_sec": 60},
        # Whatever else this machine does: somebody is to watch.
        admission={"cpu_reject_percent": 100, "memory_reject_percent": 100, "swap_reject_mb": 1_000_000},
    )
    figures = folder / "ages.json"
    try:
        up = await house.ready()
        async with signed_in(house, house.setup_token):
            pass  # the account that the page signs in with
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_CLOCK": camera_url,
            "CAMSERVER_SAMPLES": str(SAMPLES),
            "CAMSERVER_SETTLING": str(SETTLING),
            "CAMSERVER_FIGURES": str(figures),
        }
        await play("latency.spec.ts", address)
        await up.stop()
    finally:
        await launcher.close()
    ages: list[float] = json.loads(figures.read_text())
    return ages
