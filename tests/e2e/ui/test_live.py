"""Live view in the browser: first picture, refusals, the end of the time, a camera that stalls, H.265 and sound."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from camserver.base.exits import Exit
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from tests.e2e.installation import installation
from tests.e2e.ui.browser import play, require_browser
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated
from tests.rig.video_files import sounding_file

# Room for one live view, and a machine that is never too busy for it.
ADMISSION: dict[str, object] = {
    "total_stream_units": 3,
    "reserved_baseline_units": 0,
    "max_ui_users": 2,
    "transcode_cost": 1,
    "cpu_reject_percent": 100,
    "memory_reject_percent": 100,
    "swap_reject_mb": 1_000_000,
}


@asynccontextmanager
async def remote_control(simulator: Simulator, camera: str) -> AsyncIterator[str]:
    """An address by which the browser's test stalls a camera (POST …/stalled/yes) and lets it go on (…/no)."""

    async def stall(request: web.Request) -> web.Response:
        simulator.camera(camera).faults.is_stalled = request.match_info["is_stalled"] == "yes"
        return web.Response()

    app = web.Application()
    app.router.add_post("/stalled/{is_stalled}", stall)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, LOOPBACK, port).start()
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        await runner.cleanup()


async def test_a_camera_is_watched_live_in_the_browser(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    house = installation(
        launcher,
        tmp_path / "data",
        admission=ADMISSION,
        streamer={"port": free_port()},
        looks={"polling_interval_sec": 2},
    )
    asked = CameraAsked("yard", "scene:moving")
    quiet = {"x265-params": "log-level=none:bframes=0:pools=none"}
    gate = sounding_file(tmp_path / "gate.mp4", "libx265", **quiet)
    async with (
        simulated(tmp_path / "cache", asked, with_login=False) as simulator,
        remote_control(simulator, "yard") as control,
    ):
        up = await house.ready()
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
            "CAMSERVER_CAMERA": simulator.url("yard", "main"),
            "CAMSERVER_CAMERA_SUB": simulator.url("yard", "sub"),
            "CAMSERVER_CONTROL": control,
            "CAMSERVER_SOUNDING": gate.as_uri(),
        }
        await play("live.spec.ts", address)
        assert await up.stop() == Exit.OK
    await launcher.none_left()
