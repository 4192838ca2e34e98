"""Restarting the server while people use it: its port stays open, as systemd keeps it, and nobody is refused.

And stopping one whose database does not answer.
"""

import asyncio
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from camserver.base.exits import Exit
from tests.e2e.installation import installation
from tests.rig.cutter import Cutter, Way
from tests.rig.polling import until
from tests.rig.processes import REPOSITORY, Launcher, toml
from tests.rig.templates import PostgresTemplate

HOLDER = REPOSITORY / "tests" / "rig" / "socket_holder.py"
PATIENCE_SEC = 180.0
VISITORS = 4
RESTARTS = 2


class Visitors:
    """People who ask all the time, each request on a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.answered = 0
        self.failed: list[str] = []

    async def ask(self) -> None:
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SEC)
        while True:
            connector = aiohttp.TCPConnector(force_close=True)
            async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
                try:
                    async with session.get(self._url) as answer:
                        await answer.read()
                        if answer.status != 200:
                            self.failed.append(f"HTTP {answer.status}")
                except aiohttp.ClientError as error:
                    self.failed.append(repr(error))
            self.answered += 1


async def test_nobody_is_refused_while_the_server_is_restarted(launcher: Launcher, tmp_path: Path) -> None:
    house = installation(launcher, tmp_path / "data")
    config = tmp_path / "camserver.toml"
    config.write_text(toml(house.settings))
    port = str(house.settings["web"]["port"])
    command = [sys.executable, "-m", "camserver", "--config", str(config), "server"]
    server = launcher.start("holder", [sys.executable, str(HOLDER), port, "web.port", "--", *command])
    await server.until_ready(f"{house.web_url}/readyz", PATIENCE_SEC)
    visitors = Visitors(f"{house.web_url}/healthz")
    asking = [asyncio.create_task(visitors.ask()) for _ in range(VISITORS)]
    try:
        for number in range(1, RESTARTS + 1):
            before = visitors.answered
            await until(lambda before=before: visitors.answered > before + VISITORS, "visitors", PATIENCE_SEC)  # type: ignore[misc]
            server.send(signal.SIGUSR1)

            def came_back(number: int = number) -> bool:
                return server.stdout_path.read_text().count("restarted") == number

            await until(came_back, "the server is started again", PATIENCE_SEC)
            after = visitors.answered
            await until(lambda after=after: visitors.answered > after + VISITORS, "answers again", PATIENCE_SEC)  # type: ignore[misc]
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    assert not visitors.failed
    assert await server.stop() == Exit.OK


async def test_a_server_whose_database_does_not_answer_stops_in_order(
    launcher: Launcher, tmp_path: Path, postgres_template: PostgresTemplate
) -> None:
    """A network that is dark says nothing of it: what is under way would be waited for, for a minute."""
    url = urlsplit(postgres_template.fresh())
    async with Cutter(url.port or 0) as net:
        behind = url._replace(netloc=url.netloc.replace(str(url.port), str(net.port))).geturl()
        house = installation(launcher, tmp_path / "data", store={"url": behind})
        server = launcher.camserver("server", settings=house.settings)
        await server.until_ready(f"{house.web_url}/readyz", PATIENCE_SEC)
        before = net.passed_bytes[Way.UP]
        net.hold(Way.DOWN)
        await until(lambda: net.passed_bytes[Way.UP] > before, "the database is asked something")
        assert await server.stop() == Exit.OK
        assert any(line["event"] == "stopped" for line in server.log())
