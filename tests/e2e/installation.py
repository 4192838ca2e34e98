"""One installation of camserver for a test: its data folder, its ports, its commands, and people's browsers."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from camserver.base.exits import Exit
from tests.rig.pictures import jpeg
from tests.rig.polling import TIMEOUT_SEC, poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running

LOGIN, PASSWORD = "first-admin", "a-password-nobody-guesses-41"
# Room for one live view, and a machine that is never too busy for it.
ROOM_FOR_ONE: dict[str, object] = {
    "total_stream_units": 3,
    "reserved_baseline_units": 0,
    "max_ui_users": 2,
    # A camera may have but a main stream.
    "main_stream_cost": 1,
    "transcode_cost": 1,
    "cpu_reject_percent": 100,
    "memory_reject_percent": 100,
    "swap_reject_mb": 1_000_000,
}
REQUEST_TIMEOUT_SEC = 60  # nothing here is about speed


@dataclass(slots=True)
class Installation:
    """One data folder and its ports; `settings` is the user's whole configuration file."""

    launcher: Launcher
    data: Path
    settings: dict[str, dict[str, object]]

    @property
    def web_url(self) -> str:
        return f"http://{LOOPBACK}:{self.settings['web']['port']}"

    @property
    def link_file(self) -> Path:
        return self.data / "setup-link.txt"

    @property
    def setup_token(self) -> str:
        return urlsplit(self.link_file.read_text().strip()).fragment.removeprefix("token=")

    def up(self) -> Running:
        return self.launcher.camserver("up", settings=self.settings)

    async def ready(self) -> Running:
        running = self.up()
        await running.until_ready(f"{self.web_url}/readyz")
        return running

    def kill(self, part: str) -> None:
        """kill -9 of one of the processes that `up` runs; it starts another one."""
        (pid,) = [pid for pid in self.launcher.alive() if _is_camserver(pid) and _argv(pid)[-1:] == [part]]
        os.kill(pid, signal.SIGKILL)

    async def command(self, *arguments: str, stdin: str = "") -> str:
        """Runs a camserver command to its end; what it printed."""
        running = self.launcher.camserver(*arguments, settings=self.settings, stdin=stdin)
        code = await running.wait()
        assert code == Exit.OK, running.output_tail()
        return running.stdout_path.read_text()


def _argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    except FileNotFoundError:
        return []


def _is_camserver(pid: int) -> bool:
    """Not its guard, whose command line ends with the one it guards."""
    return _argv(pid)[1:3] == ["-m", "camserver"]


def installation(launcher: Launcher, data: Path, **more: dict[str, object]) -> Installation:
    settings: dict[str, dict[str, object]] = {
        "server": {"data_dir": str(data)},
        "web": {"port": free_port()},
        "control": {"port": free_port()},
        "streamer": {"port": 0},
        "analyzer": {"port": free_port()},
        "worker": {"allow_loopback": True},
        "looks": {"polling_interval_sec": 1},
        "gate": {"rule": "threshold"},
        "log": {"format": "json"},
        **more,
    }
    return Installation(launcher, data, settings)


def two_pictures(folder: Path, size: tuple[int, int]) -> str:
    """The address of a camera that shows one scene, then another with somebody in it for the fake analyzer."""
    folder.mkdir()
    for number in (0, 1):
        (folder / f"{number}.jpg").write_bytes(jpeg(scene=number, size=size))
    return f"file://{folder}"


@asynccontextmanager
async def signed_in(house: Installation, setup_token: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser whose user signed in; with a token, after they made their account by the set-up link."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a bare address
    async with aiohttp.ClientSession(house.web_url, timeout=timeout, cookie_jar=jar) as browser:
        if setup_token is not None:
            made = {"token": setup_token, "login": LOGIN, "password": PASSWORD}
            async with browser.post("/api/setup", json=made) as answer:
                assert answer.status == 201, await answer.text()
        async with browser.post("/api/session", json={"login": LOGIN, "password": PASSWORD}) as answer:
            assert answer.status == 201, await answer.text()
            browser.headers["X-CSRF-Token"] = (await answer.json())["csrf_token"]
        yield browser


async def seen(
    browser: aiohttp.ClientSession, path: str, is_it: Callable[[Any], bool], timeout_sec: float = TIMEOUT_SEC
) -> Any:
    """The first answer of the API that shows what is waited for."""

    async def ask() -> Any:
        async with browser.get(path) as answer:
            # A question that is wrong does not become right.
            assert answer.status != 400, await answer.text()
            if answer.status != 200:
                return None
            body = await answer.json()
            return body if is_it(body) else None

    return await poll_async(ask, f"GET {path}", timeout_sec)
