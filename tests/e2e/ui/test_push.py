"""Notifications in the browser: the page's worker shows what is pushed and opens its page."""

from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import installation
from tests.e2e.ui.browser import play, require_browser
from tests.rig.processes import Launcher


async def test_a_push_is_shown_and_opens_its_page(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    house = installation(launcher, tmp_path / "data")
    up = await house.ready()
    address = {"CAMSERVER_URL": house.web_url, "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip()}
    await play("push.spec.ts", address)
    assert await up.stop() == Exit.OK
    await launcher.none_left()
