"""What the browser does for the page: it shows what is pushed, and opens the UI while the server is away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from camserver.base.exits import Exit
from tests.e2e.installation import Installation, installation
from tests.e2e.ui.browser import play, require_browser
from tests.rig.ports import LOOPBACK, listening_socket, port_of
from tests.rig.processes import Launcher, Running


async def test_a_push_is_shown_and_the_ui_outlives_the_server(launcher: Launcher, tmp_path: Path) -> None:
    require_browser()
    house = installation(launcher, tmp_path / "data")
    switch = Switch(house, await house.ready())
    async with switched(switch) as switch_url:
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
            "CAMSERVER_SWITCH": switch_url,
        }
        await play("push.spec.ts", address)
        # With the same person: another server would only take its time.
        await play("away.spec.ts", address)
    assert await switch.running.stop() == Exit.OK
    await launcher.none_left()


class Switch:
    """Stops and starts an installation when the browser's test asks for it."""

    def __init__(self, house: Installation, running: Running) -> None:
        self.house, self.running = house, running

    async def stop(self, _request: web.Request) -> web.Response:
        assert await self.running.stop() == Exit.OK
        return web.Response()

    async def start(self, _request: web.Request) -> web.Response:
        self.running = await self.house.ready()
        return web.Response()


@asynccontextmanager
async def switched(switch: Switch) -> AsyncIterator[str]:
    """The address at which the switch is."""
    app = web.Application()
    app.add_routes([web.post("/stop", switch.stop), web.post("/start", switch.start)])
    runner = web.AppRunner(app)
    await runner.setup()
    sock = listening_socket()
    await web.SockSite(runner, sock).start()
    try:
        yield f"http://{LOOPBACK}:{port_of(sock)}"
    finally:
        await runner.cleanup()
