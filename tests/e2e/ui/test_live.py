"""Live view in the browser: first picture, refusals, the end of the time, a camera that stalls, H.265, sound, and
cameras of others (GStreamer, go2rtc)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from camserver.base.exits import Exit
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from tests.e2e.installation import ROOM_FOR_ONE, Installation, installation
from tests.e2e.ui.browser import play, require_browser
from tests.fakes.go2rtc.server import go2rtc
from tests.fakes.gstreamer import clock
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_rtsp_go2rtc import here_or_skipped
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated
from tests.rig.video_files import sounding_file, video_file


@asynccontextmanager
async def remote_control(simulator: Simulator, camera: str, house: Installation) -> AsyncIterator[str]:
    """An address by which the browser's test stalls a camera (POST …/stalled/yes), lets it go on (…/stalled/no) and
    kills the worker (…/worker/killed)."""

    async def stall(request: web.Request) -> web.Response:
        simulator.camera(camera).faults.is_stalled = request.match_info["is_stalled"] == "yes"
        return web.Response()

    async def kill(request: web.Request) -> web.Response:
        house.kill("worker")
        return web.Response()

    app = web.Application()
    app.router.add_post("/stalled/{is_stalled}", stall)
    app.router.add_post("/worker/killed", kill)
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
        admission=ROOM_FOR_ONE,
        # Nothing here is about what is seen.
        analyzer={"url": "http://127.0.0.1:9"},
        streamer={"port": free_port()},
        looks={"polling_interval_sec": 2},
    )
    # A keyframe every half a second: each view that is opened waits for one.
    film = video_file(tmp_path / "film.mp4", size=(640, 360), fps=16, seconds=4, keyframes_apart=8, bf="0")
    quiet = {"x265-params": "log-level=none:bframes=0:pools=none"}
    gate = sounding_file(tmp_path / "gate.mp4", "libx265", **quiet)
    with (
        here_or_skipped(),
        gstreamer_pipelines({"/clock": clock.PIPELINE}) as other,
        go2rtc({"clock": f"{other}/clock"}, tmp_path) as relay,
    ):
        async with (
            simulated(tmp_path / "cache", CameraAsked("yard", str(film)), with_login=False) as simulator,
            remote_control(simulator, "yard", house) as control,
        ):
            up = await house.ready()
            address = {
                "CAMSERVER_URL": house.web_url,
                "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
                "CAMSERVER_CAMERA": simulator.url("yard", "main"),
                "CAMSERVER_CAMERA_SUB": simulator.url("yard", "sub"),
                "CAMSERVER_CLOCK": f"{other}/clock",
                "CAMSERVER_RELAYED": f"{relay}/clock",
                "CAMSERVER_CONTROL": control,
                "CAMSERVER_SOUNDING": gate.as_uri(),
            }
            await play("live.spec.ts", address)
            await play("latency.spec.ts", address)
            assert await up.stop() == Exit.OK
    await launcher.none_left()
