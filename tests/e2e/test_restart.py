"""Restarting the server while people use it: its port stays open, as systemd keeps it, and nobody is refused."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp

from camserver.base.exits import Exit
from tests.e2e.installation import installation
from tests.rig.polling import until
from tests.rig.processes import REPOSITORY, Launcher, toml

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
