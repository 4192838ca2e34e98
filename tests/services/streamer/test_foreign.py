"""Live view of other people's cameras: GStreamer's, and go2rtc in front of one; with B-frames, and as H.265."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.store import Store, open_store
from tests.fakes.go2rtc.server import go2rtc
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_rtsp_go2rtc import here_or_skipped, shade
from tests.rig.templates import SqliteTemplate
from tests.rig.video_files import video_file
from tests.services.streamer.house import House, house

SECONDS = 30


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


async def test_they_are_shown_as_they_send(home: House, tmp_path: Path) -> None:
    plain = video_file(tmp_path / "plain.mp4", seconds=SECONDS, shade=shade, bf="0")
    reordered = video_file(tmp_path / "reordered.mp4", seconds=SECONDS, shade=shade, bf="2")
    quiet = {"x265-params": "log-level=none:bframes=0"}
    hevc = video_file(tmp_path / "hevc.mp4", "libx265", seconds=SECONDS, shade=shade, **quiet)
    read = "filesrc location={} ! qtdemux"
    mounts = {
        "/plain": f"( {read.format(plain)} ! h264parse ! rtph264pay name=pay0 pt=96 )",
        "/reordered": f"( {read.format(reordered)} ! h264parse ! rtph264pay name=pay0 pt=96 )",
        "/hevc": f"( {read.format(hevc)} ! h265parse ! rtph265pay name=pay0 pt=97 )",
    }
    with (
        here_or_skipped(),
        gstreamer_pipelines(mounts) as cameras,
        go2rtc({"behind": f"{cameras}/plain"}, tmp_path) as relay,
    ):
        addresses = {
            "plain": f"{cameras}/plain",
            "reordered": f"{cameras}/reordered",
            "hevc": f"{cameras}/hevc",
            "relayed": f"{relay}/behind",
        }
        for camera_id, url in addresses.items():
            await home.hang_camera(camera_id, url)
        for camera_id in addresses:
            watcher = await home.watch(camera_id, await home.admit(camera_id))
            await watcher.until_media(16)
            frames = watcher.frames()
            assert len(frames) >= 12, camera_id
            times = [frame.pts for frame in frames]
            assert times == sorted(set(times)), camera_id
            assert watcher.inits[0]["codec"] == ("hevc" if camera_id == "hevc" else "h264")
            assert (frames[0].width, frames[0].height) == (320, 180)
            await watcher.socket.close()
        await home.nothing_left()
