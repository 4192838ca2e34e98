"""A first day in the browser, from the set-up to an exported case; then the event's clip, in the same house."""

from pathlib import Path

from camserver.base.exits import Exit
from camserver.services.simulator.cameras import CameraAsked
from tests.e2e.installation import ROOM_FOR_ONE, installation
from tests.e2e.test_clips import street
from tests.e2e.ui.browser import play, require_browser
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.ports import free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated


async def test_a_first_day_and_a_clip_in_the_browser(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": analyzer.url},
        admission=ROOM_FOR_ONE,
        streamer={"port": free_port()},
        looks={"polling_interval_sec": 2},
    )
    asked = CameraAsked("street", str(street(tmp_path / "street.mp4")))
    async with simulated(tmp_path / "cache", asked, with_login=False) as simulator:
        up = await house.ready()
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_SETUP_LINK": (house.data / "setup-link.txt").read_text().strip(),
            "CAMSERVER_CAMERA": simulator.url("street", "main"),
        }
        await play("journey.spec.ts", address)
        await play("clip.spec.ts", address)
        assert await up.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()
