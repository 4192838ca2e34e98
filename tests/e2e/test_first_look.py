"""camserver as its first user meets it: start, add a camera, make the admin, see a picture and an event, stop."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from camserver.base.exits import Exit
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of
from tests.rig.processes import Launcher, Running
from tests.rig.small_disk import small_disk

LOGIN, PASSWORD = "first-admin", "a-password-nobody-guesses-41"
REQUEST_TIMEOUT_SEC = 10
DISK_BYTES = 100_000_000


@dataclass(slots=True)
class Installation:
    """One data folder and its ports; `settings` is the user's whole configuration file."""

    launcher: Launcher
    data: Path
    settings: dict[str, dict[str, object]]

    @property
    def web_url(self) -> str:
        return f"http://{LOOPBACK}:{self.settings['web']['port']}"

    def up(self) -> Running:
        return self.launcher.camserver("up", settings=self.settings)

    async def ready(self) -> Running:
        running = self.up()
        await running.until_ready(f"{self.web_url}/readyz")
        return running

    async def command(self, *arguments: str) -> str:
        """Runs a camserver command to its end; what it printed."""
        running = self.launcher.camserver(*arguments, settings=self.settings)
        code = await running.wait()
        assert code == Exit.OK, running.output_tail()
        return running.stdout_path.read_text()


def installation(launcher: Launcher, data: Path, **more: dict[str, object]) -> Installation:
    settings: dict[str, dict[str, object]] = {
        "server": {"data_dir": str(data)},
        "web": {"port": free_port()},
        "control": {"port": free_port()},
        "analyzer": {"port": free_port()},
        "looks": {"polling_interval_sec": 1},
        "gate": {"rule": "threshold"},
        "log": {"format": "json"},
        **more,
    }
    return Installation(launcher, data, settings)


@pytest.fixture
def fresh(launcher: Launcher, tmp_path: Path) -> Installation:
    return installation(launcher, tmp_path / "data")


@asynccontextmanager
async def signed_in(house: Installation, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser whose user came by the set-up link and then signed in."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a bare address
    async with aiohttp.ClientSession(house.web_url, timeout=timeout, cookie_jar=jar) as browser:
        made = {"token": token, "login": LOGIN, "password": PASSWORD}
        async with browser.post("/api/setup", json=made) as answer:
            assert answer.status == 201, await answer.text()
        async with browser.post("/api/session", json={"login": LOGIN, "password": PASSWORD}) as answer:
            assert answer.status == 201, await answer.text()
        yield browser


async def seen(browser: aiohttp.ClientSession, path: str, is_it: Callable[[Any], bool]) -> Any:
    """The first answer of the API that shows what is waited for."""

    async def ask() -> Any:
        async with browser.get(path) as answer:
            if answer.status != 200:
                return None
            body = await answer.json()
            return body if is_it(body) else None

    return await poll_async(ask, f"GET {path}")


async def test_from_an_empty_folder_to_the_first_event(launcher: Launcher, tmp_path: Path) -> None:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(launcher, tmp_path / "data", analyzer={"url": analyzer.url})
    up = await house.ready()
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number, scene in enumerate((0, 1)):
        (pictures / f"{number}.jpg").write_bytes(jpeg(scene=scene, size=(320, 240)))
    assert "Added entrance" in await house.command("camera", "add", "entrance", f"file://{pictures}")
    await house.command("camera", "add", "moving", "test://moving")
    listed = await house.command("camera", "list")
    assert "entrance" in listed
    assert "moving" in listed
    link_file = house.data / "setup-link.txt"
    assert link_file.stat().st_mode & 0o777 == 0o600
    token = urlsplit(link_file.read_text().strip()).fragment.removeprefix("token=")
    async with signed_in(house, token) as browser:
        for camera_id in ("entrance", "moving"):
            look = await seen(browser, f"/api/cameras/{camera_id}/latest", lambda body: body["has_picture"])
            assert look["status"] == "ok"
            async with browser.get(f"/api/cameras/{camera_id}/latest.jpg") as answer:
                assert answer.status == 200
                assert (await answer.read()).startswith(b"\xff\xd8")
        page = await seen(browser, "/api/events", lambda body: bool(body["events"]))
        assert page["events"][-1]["camera_id"] == "entrance"
        assert page["events"][-1]["primary_event"] == "human"
    assert not link_file.exists()
    output = up.stdout_path.read_text() + up.stderr_path.read_text()
    assert token not in output
    assert PASSWORD not in output
    assert await _interrupted(up) == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()


async def _interrupted(up: Running) -> int:
    """Ctrl-C. A process that needs longer than its own deadline, which is below 10 s, ends with another code."""
    up.send(signal.SIGINT)
    return await up.wait()


async def test_what_was_recorded_is_there_after_a_restart(fresh: Installation) -> None:
    up = await fresh.ready()
    await fresh.command("camera", "add", "moving", "test://moving")
    await up.until_logged("pipeline_ready")
    assert await up.stop() == Exit.OK
    await fresh.launcher.none_left()
    again = await fresh.ready()
    assert "moving" in await fresh.command("camera", "list")
    await again.until_logged("pipeline_ready")


async def test_killing_up_leaves_no_process(fresh: Installation) -> None:
    up = await fresh.ready()
    assert len(fresh.launcher.alive()) > 3
    up.kill()
    await fresh.launcher.none_left()


async def test_a_killed_server_is_started_again(fresh: Installation) -> None:
    up = await fresh.ready()
    first = await up.until_logged("epoch opened")
    (server,) = [pid for pid in fresh.launcher.alive() if _argv(pid)[-1:] == ["server"] and _is_camserver(pid)]
    os.kill(server, signal.SIGKILL)

    async def opened_again() -> bool:
        return any(line.get("event") == "epoch opened" and line != first for line in up.log())

    await poll_async(opened_again, "another epoch")
    await up.until_ready(f"{fresh.web_url}/readyz")


def _argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    except FileNotFoundError:
        return []


def _is_camserver(pid: int) -> bool:
    """Not its guard, whose command line ends with the one it guards."""
    return _argv(pid)[1:3] == ["-m", "camserver"]


async def _fails(running: Running, code: Exit, *words: str) -> None:
    assert await running.wait() == code, running.output_tail()
    said = running.stderr_path.read_text().splitlines()[-1]
    for word in words:
        assert word in said
    assert "Traceback" not in running.output_tail()


@pytest.mark.parametrize("section", ["web", "control"])
async def test_a_port_in_use_is_named(fresh: Installation, section: str) -> None:
    with listening_socket() as taken:
        port = port_of(taken)
        fresh.settings[section]["port"] = port
        await _fails(fresh.up(), Exit.PORT_UNUSABLE, str(port), "in use", f"{section}.port")
    await fresh.launcher.none_left()


@contextmanager
def read_only_disk() -> Iterator[Path]:
    with small_disk(DISK_BYTES) as folder:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder


async def test_a_read_only_folder_is_named(launcher: Launcher) -> None:
    with read_only_disk() as folder:
        house = installation(launcher, folder / "data")
        await _fails(house.up(), Exit.DATA_UNUSABLE, str(folder), "read-only")
        await launcher.none_left()


async def test_a_second_one_on_the_same_folder_is_refused(fresh: Installation) -> None:
    await fresh.ready()
    second = installation(fresh.launcher, fresh.data)
    # Whichever process meets the first one's lock says so: the server by its database, the worker by its spool.
    await _fails(second.up(), Exit.DATA_OWNED, str(fresh.data), "another", "stop")
    async with aiohttp.ClientSession() as session, session.get(f"{fresh.web_url}/readyz") as answer:
        assert answer.status == 200
