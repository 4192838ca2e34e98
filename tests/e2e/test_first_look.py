"""camserver as its first user meets it: start, add a camera, make the admin, see a picture and an event, stop."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from camserver.base.exits import Exit
from tests.e2e.installation import PASSWORD, Installation, installation, seen, signed_in, two_pictures
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.polling import poll_async
from tests.rig.ports import listening_socket, port_of
from tests.rig.processes import Launcher, Running
from tests.rig.small_disk import small_disk

DISK_BYTES = 100_000_000


@pytest.fixture
def fresh(launcher: Launcher, tmp_path: Path) -> Installation:
    return installation(launcher, tmp_path / "data")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installation, Running]]:
    """One that runs, for tests that leave it as they found it. It may not be ready yet."""
    folder = tmp_path_factory.mktemp("running")
    launcher = Launcher(folder)
    house = installation(launcher, folder / "data")
    yield house, house.up()
    asyncio.run(launcher.close())


async def test_from_an_empty_folder_to_the_first_event_and_on_after_a_restart(
    launcher: Launcher, tmp_path: Path
) -> None:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(launcher, tmp_path / "data", analyzer={"url": analyzer.url})
    up = await house.ready()
    await _add_cameras(house, two_pictures(tmp_path / "pictures", (320, 240)))
    assert house.link_file.stat().st_mode & 0o777 == 0o600
    token = house.setup_token
    async with signed_in(house, token) as browser:
        for camera_id in ("entrance", "moving"):
            await _expect_picture(browser, camera_id)
        page = await seen(browser, "/api/events", lambda body: bool(body["events"]))
        first = page["events"][-1]
        assert (first["camera_id"], first["primary_event"]) == ("entrance", "human")
    assert not house.link_file.exists()
    output = up.stdout_path.read_text() + up.stderr_path.read_text()
    assert token not in output
    assert PASSWORD not in output
    assert await _interrupted(up) == Exit.OK

    again = await house.ready()
    async with signed_in(house) as browser, browser.get("/api/events") as answer:
        assert first["event_uuid"] in {event["event_uuid"] for event in (await answer.json())["events"]}
    await again.until_logged("pipeline_ready", camera_id="moving")
    assert await again.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()


async def _add_cameras(house: Installation, entrance: str) -> None:
    assert "Added entrance" in await house.command("camera", "add", "entrance", entrance)
    await house.command("camera", "add", "moving", "test://moving")
    listed = await house.command("camera", "list")
    assert "entrance" in listed
    assert "moving" in listed


async def _expect_picture(browser: aiohttp.ClientSession, camera_id: str) -> None:
    look = await seen(browser, f"/api/cameras/{camera_id}/latest", lambda body: body["has_picture"])
    assert look["status"] == "ok"
    async with browser.get(f"/api/cameras/{camera_id}/latest.jpg") as answer:
        assert answer.status == 200
        assert (await answer.read()).startswith(b"\xff\xd8")


async def _interrupted(up: Running) -> int:
    """Ctrl-C. A process that needs longer than its own deadline, which is below 10 s, ends with another code."""
    up.send(signal.SIGINT)
    return await up.wait()


async def test_killing_up_leaves_no_process(fresh: Installation) -> None:
    up = await fresh.ready()
    assert len(fresh.launcher.alive()) > 3
    up.kill()
    await fresh.launcher.none_left()


async def test_a_killed_server_is_started_again(running: tuple[Installation, Running]) -> None:
    house, up = running
    await up.until_ready(f"{house.web_url}/readyz")
    first = await up.until_logged("epoch opened")
    house.kill("server")

    async def opened_again() -> bool:
        return any(line.get("event") == "epoch opened" and line != first for line in up.log())

    await poll_async(opened_again, "another epoch")
    await up.until_ready(f"{house.web_url}/readyz")


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


async def test_a_second_one_on_the_same_folder_is_refused(
    running: tuple[Installation, Running], launcher: Launcher
) -> None:
    house, up = running
    await up.until_ready(f"{house.web_url}/readyz")
    second = installation(launcher, house.data)
    # Whichever process meets the first one's lock says so: the server by its database, the worker by its spool.
    await _fails(second.up(), Exit.DATA_OWNED, str(house.data), "another", "stop")
    async with aiohttp.ClientSession() as session, session.get(f"{house.web_url}/readyz") as answer:
        assert answer.status == 200
