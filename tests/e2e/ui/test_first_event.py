"""A person's first minutes in the browser: set-up, an empty wall, a camera, and an event that appears by itself."""

from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import installation, two_pictures
from tests.e2e.ui.browser import play, require_browser
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.processes import Launcher


async def test_the_first_event_appears_in_both_languages(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(launcher, tmp_path / "data", analyzer={"url": analyzer.url})
    up = await house.ready()
    address = {
        "CAMSERVER_URL": house.web_url,
        "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
        "CAMSERVER_ENTRANCE": two_pictures(tmp_path / "pictures", (640, 360)),
    }
    await play("first-event.spec.ts", address)
    # With the same person, cameras and events: another server would only take its time.
    await play("pages.spec.ts", address)
    assert await up.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()
