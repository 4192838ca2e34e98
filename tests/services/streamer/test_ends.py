"""Every way in which a viewing ends, over a real worker and a simulated camera: what is left of it is counted.

What could be left: viewers, streams and feeds of the streamer, connections to the camera, tasks, threads, child
processes, descriptors and temporary files.
"""

import asyncio
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from camserver.domain.live_links import stream_url
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.streamer import viewers
from camserver.store import Tx, cameras
from tests.rig.polling import poll_async, until
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file
from tests.services.streamer.house import House, Left, left_over
from tests.services.streamer.live_rig import Watcher
from tests.store.people_rows import admin_of
from tests.store.stage import statement

CAMERA, OTHER = "street", "yard"


async def ends_by_time(home: House, lease_id: str, watcher: Watcher) -> None:
    await home.store.write(
        statement,
        "UPDATE modal_leases SET expires_at = 1, valid_until = 1 WHERE lease_id = :lease_id",
        {"lease_id": lease_id},
    )
    assert (await watcher.until_closed(), watcher.end) == (4404, "ttl")


async def ends_without_heartbeat(home: House, lease_id: str, watcher: Watcher) -> None:
    await home.store.write(
        statement,
        "UPDATE modal_leases SET last_heartbeat = 1, valid_until = 1 WHERE lease_id = :lease_id",
        {"lease_id": lease_id},
    )
    assert (await watcher.until_closed(), watcher.end) == (4404, "heartbeat")


async def ends_by_release(home: House, lease_id: str, watcher: Watcher) -> None:
    await home.end(lease_id)
    assert await watcher.until_closed() == 4404


async def ends_with_its_tab(home: House, lease_id: str, watcher: Watcher) -> None:
    line = watcher.socket._conn
    assert line is not None
    assert line.transport is not None
    line.transport.abort()


async def ends_with_its_camera(home: House, lease_id: str, watcher: Watcher) -> None:
    mine = home.store.as_(admin_of(home.tenant_id))
    await mine.write(cameras.remove, OTHER, "", home.clock.now_ms())
    assert (await watcher.until_closed(), watcher.end) == (4410, "camera_gone")


async def ends_with_the_server(home: House, lease_id: str, watcher: Watcher) -> None:
    home.running["streamer"].cancel()
    assert (await watcher.until_closed(), watcher.end) == (1001, "server_stops")
    await asyncio.gather(home.running["streamer"], return_exceptions=True)


End = Callable[[House, str, Watcher], Awaitable[None]]
ENDS: tuple[tuple[str, End], ...] = (
    (CAMERA, ends_by_time),
    (CAMERA, ends_without_heartbeat),
    (CAMERA, ends_by_release),
    (CAMERA, ends_with_its_tab),
    (OTHER, ends_with_its_camera),
    (CAMERA, ends_with_the_server),
)


async def test_nothing_is_left_whichever_way_a_viewing_ends(
    home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
    asked = [CameraAsked(name, str(film)) for name in (CAMERA, OTHER)]
    async with simulated(tmp_path / "cache", *asked, with_login=False) as simulator:
        connected = {one.name: simulator.camera(one.name).clients for one in asked}
        for name in connected:
            await home.hang_camera(name, simulator.url(name, "main"))
            await home.held(name)

        async def watched(name: str, end: End) -> None:
            lease_id = await home.admit(name)
            watcher = await home.watch(name, lease_id)
            await watcher.until_media(3)
            # Pictures of a moment ago may have come before it is open again.
            await until(lambda: len(connected[name]) == 1, "the camera is open")
            await end(home, lease_id, watcher)
            await watcher.socket.close()
            await until(lambda: not connected[name], f"{end.__name__}: the camera is let go")

        await until(lambda: not any(connected.values()), "the first probes are over")
        # Whatever is loaded or opened once is there afterwards; so are the threads that wait for work.
        await watched(OTHER, ends_by_release)
        await watched(CAMERA, ends_with_its_tab)
        await asyncio.gather(*(asyncio.to_thread(threading.Event().wait, 0.01) for _ in range(64)))
        # Each of SQLite's readers opens the file with the first read that is not short.
        await asyncio.gather(*(home.store.read(slow) for _ in range(16)))
        await home.nothing_left()
        before = left_over()
        for name, end in ENDS:
            await watched(name, end)
            if end is not ends_with_the_server:
                await home.nothing_left()
            await no_more_than(before, end.__name__)
        assert list(temporary.iterdir()) == []


async def slow(tx: Tx) -> None:
    """A read; after one of them in a turn of the loop the others are threads'."""
    threading.Event().wait(0.05)


async def no_more_than(before: Left, what: str) -> None:
    try:
        await until(lambda: left_over() <= before, what)
    except TimeoutError:
        pytest.fail(f"{what} leaves {left_over()}, and before there was {before}")


async def test_nothing_is_left_of_a_viewer_that_stops_reading(
    home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its network takes next to nothing, and its patience is short, so that it need not be waited for."""
    monkeypatch.setattr(viewers, "SEND_BUFFER_BYTES", 4_096)
    monkeypatch.setattr(viewers, "STUCK_MS", 1_000)
    film = video_file(tmp_path / "film.mp4", size=(640, 360), fps=20, seconds=4, keyframes_apart=2, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked(CAMERA, str(film)), with_login=False) as simulator:
        street = simulator.camera(CAMERA)
        await home.hang_camera(CAMERA, simulator.url(CAMERA, "main"))
        await home.held(CAMERA)
        other = await home.watch(CAMERA, await home.admit(CAMERA))
        await other.until_media(3)
        url = stream_url(home.keys, home.origin, CAMERA, await home.admit(CAMERA))
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            deaf.connect(("127.0.0.1", home.streamer_port))
            target = url.partition(f":{home.streamer_port}")[2]
            head = [f"GET {target} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket"]
            head += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", ""]
            deaf.sendall("\r\n".join(head).encode())
            await poll_async(lambda: viewers_are(home, 2), "both are there")
            # Whoever reads is shown every picture meanwhile, over the one connection.
            while (await home.about())["viewers"] == 2:
                await other.until_media(len(other.media) + 5)
        assert len(street.clients) == 1
        await other.until_media(len(other.media) + 5)
        await other.socket.close()
        await home.nothing_left()
        await until(lambda: not street.clients, "the camera is let go")


async def viewers_are(home: House, count: int) -> bool:
    return bool((await home.about())["viewers"] == count)
