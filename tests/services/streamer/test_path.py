"""From a simulated camera over its worker and the streamer to a viewer, and back to nothing."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from camserver.services.simulator.cameras import CameraAsked
from camserver.store import Store, open_store
from tests.rig.polling import until
from tests.rig.simulated import simulated
from tests.rig.templates import SqliteTemplate
from tests.rig.video_files import video_file
from tests.services.streamer.house import House, house


@pytest.fixture
async def sqlite_store(sqlite_template: SqliteTemplate) -> AsyncIterator[Store]:
    url = sqlite_template.fresh()
    store = await open_store(url)
    yield store
    await store.close()
    sqlite_template.discard(url)


@pytest.fixture
async def home(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[House]:
    async with house(sqlite_store, tmp_path / "data") as made:
        yield made


async def test_a_camera_is_watched_over_one_connection(home: House, tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=10, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        street = simulator.camera("street")
        await home.hang_camera("street", simulator.url("street", "main"))
        await home.held("street")
        lease_id = await home.admit("street")
        watcher = await home.watch("street", lease_id)
        await watcher.until_state("live")
        others = [await home.admit("street") for _ in range(3)]
        more = [await home.watch("street", one) for one in others]
        for one in (watcher, *more):
            await one.until_media(12)
            frames = one.frames()
            assert (frames[0].width, frames[0].height, frames[0].key_frame) == (320, 180, True)
            assert len(frames) >= 11
        # A new camera is probed once beside that.
        await until(lambda: len(street.clients) == 1, "one connection to the camera")
        status, jpeg = await home.snapshot(lease_id)
        assert (status, Image.open(io.BytesIO(jpeg)).size) == (200, (320, 180))
        for one in (watcher, *more):
            await one.socket.close()
        await home.nothing_left()
        await until(lambda: not street.clients, "the camera is let go")
        # The same again, warm or cold.
        again = await home.watch("street", lease_id)
        await again.until_media(3)
        await home.end(lease_id)
        await again.until_closed()
        await until(lambda: not street.clients, "the camera is let go")
