"""From a simulated camera over its worker and the streamer to a viewer, and back to nothing."""

import io
from pathlib import Path

import pytest
from PIL import Image

from camserver.domain import live as domain_live
from camserver.domain.timeline import Pause
from camserver.services.simulator.cameras import CameraAsked, Client, Shows
from camserver.services.streamer import snapshots
from tests.rig.effort import times
from tests.rig.polling import until
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file
from tests.services.streamer.house import House, left_over


async def test_a_camera_is_watched_over_one_connection(
    home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        # By the worker: a streamer has nothing that decodes.
        monkeypatch.delattr(snapshots, "_jpeg")
        monkeypatch.setattr(snapshots, "WORKER_SEC", 60.0)
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


async def test_a_viewer_is_told_what_is_wrong_and_goes_on_when_it_is_not(home: House, tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=10, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        street = simulator.camera("street")
        await home.hang_camera("street", simulator.url("street", "main"))
        await home.held("street")
        watcher = await home.watch("street", await home.admit("street"))
        await watcher.until_state("live")
        # Away for a while.
        street.faults.is_offline = True
        street.cut_all()
        await watcher.until_state("refused")
        street.faults.is_offline = False
        await watcher.until_state("live")
        # There, but silent.
        street.faults.is_stalled = True
        await watcher.until_state("stalled")
        street.faults.is_stalled = False
        await watcher.until_state("live")
        # Another size on the same connection: another init segment, on the same socket.
        assert [init["width"] for init in watcher.inits] == [320]
        await street.show(Shows.SMALL)
        while len(watcher.inits) < 2:
            assert await watcher.next()
        assert [init["width"] for init in watcher.inits] == [320, 160]
        count = len(watcher.media)
        await watcher.until_media(count + 5)
        # Its worker dies and comes back.
        await home.restart_worker()
        await watcher.until_state("moving")
        await watcher.until_state("live")
        await watcher.socket.close()
        await home.nothing_left()


async def test_a_device_that_says_it_is_full_is_waited_for(home: House, tmp_path: Path) -> None:
    """Said once, however often it is tried, until there is room again."""
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=10, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        street = simulator.camera("street")
        await home.hang_camera("street", simulator.url("street", "main"))
        await home.held("street")
        watcher = await home.watch("street", await home.admit("street"))
        await watcher.until_state("live")
        told = len(watcher.statuses)
        street.faults.is_full = True
        street.cut_all()
        await watcher.until_state("waiting", "device_full")
        tried = street.faults.refused_full
        await until(lambda: street.faults.refused_full >= tried + 3, "it is tried again")
        street.faults.is_full = False
        await watcher.until_state("live")
        states = [(one["state"], one["reason"]) for one in watcher.statuses[told:]]
        # The connection that was cut is said first, as what it is.
        assert [one for one in states if one[0] != "refused"] == [("waiting", "device_full"), ("live", "")], states
        assert len(states) <= 3, states
        await watcher.socket.close()
        await home.nothing_left()


async def test_a_worker_whose_line_is_short_lets_go_and_says_so(
    home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks go first: whoever watches is told, waits on the same socket, and watches on when there is room again."""
    short = [False]
    monkeypatch.setattr(domain_live, "is_short", lambda line: short[0])
    monkeypatch.setattr(domain_live, "SHED_MS", 1_000)
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        street = simulator.camera("street")
        await home.hang_camera("street", simulator.url("street", "main"))
        await home.held("street")
        watchers = [await home.watch("street", await home.admit("street")) for _ in range(3)]
        for one in watchers:
            await one.until_state("live")
        short[0] = True
        for one in watchers:
            told = len(one.statuses)
            await one.until_state("waiting", "shed")
            assert len(one.statuses) == told + 1, one.statuses
        await until(lambda: not street.clients, "the camera is let go")
        # Nobody who comes meanwhile gets more.
        late = await home.watch("street", await home.admit("street"))
        await late.until_state("waiting", "shed")
        short[0] = False
        for one in (*watchers, late):
            await one.until_state("live")
            await one.until_media(len(one.media) + 2)
            await one.socket.close()
        await home.nothing_left()


async def test_on_a_device_that_bears_one_stream_whoever_watches_comes_first(home: House, tmp_path: Path) -> None:
    """Two cameras of one recorder, which are looked at in turn until somebody watches one of them."""
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
    asked = [CameraAsked(name, str(film)) for name in ("street", "yard")]
    async with simulated(tmp_path / "cache", *asked, with_login=False) as simulator:
        counted = Counted()
        for camera in asked:
            simulator.camera(camera.name).clients = counted
            urls = [simulator.url(camera.name, stream) for stream in ("main", "sub")]
            await home.hang_camera(camera.name, *urls, device="nvr", streams_max=1, polling_interval_sec=1)
        for camera in asked:
            await home.held(camera.name)
        small = await home.watch("street", await home.admit("street", "sub"))
        await small.until_state("live")
        # The patrol is told why it sees nothing of the other one.
        fault = await home.stream_fault("yard", lambda fault: fault.over_at is None)
        assert fault.fault == "watched_live"
        assert "somebody watches live" in fault.message
        # So is somebody who wants another stream of the device, and then has it when it is free.
        large = await home.watch("street", await home.admit("street", "main"))
        await large.until_state("waiting", "device_full")
        await small.until_media(len(small.media) + 3)
        assert large.media == []
        await small.socket.close()
        await large.until_state("live")
        await large.until_media(3)
        await large.socket.close()
        await home.nothing_left()
        # Then the patrol goes on by itself.
        over = await home.stream_fault("yard", lambda fault: fault.over_at is not None)
        assert counted.most == 1
        # And what was left out meanwhile is explained.
        assert (await home.pauses("yard"))[-1] == Pause(over.at, over.over_at or 0, "watched_live")


class Counted(set[Client]):
    """Connections to a camera, and how many there were at most."""

    most = 0

    def add(self, element: Client) -> None:
        super().add(element)
        self.most = max(self.most, len(self))


async def test_nothing_is_left_after_many_have_come_and_gone(home: House, tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
    cameras = [CameraAsked(f"cam_{number}", str(film)) for number in range(3)]
    async with simulated(tmp_path / "cache", *cameras, with_login=False) as simulator:
        for camera in cameras:
            await home.hang_camera(camera.name, simulator.url(camera.name, "main"))
        for camera in cameras:
            await home.held(camera.name)
        connected = [simulator.camera(camera.name).clients for camera in cameras]
        await until(lambda: not any(connected), "the first probes are over")
        await round_of_viewers(home, [camera.name for camera in cameras])
        await until(lambda: not any(connected), "the cameras are let go")
        before = left_over()
        for _ in range(times(3, thorough=60)):
            await round_of_viewers(home, [camera.name for camera in cameras])
        await until(lambda: not any(connected), "the cameras are let go")
        await until(lambda: left_over() <= before, f"no more than before: {before}")


async def round_of_viewers(home: House, cameras: list[str]) -> None:
    """Two viewers of each camera: one goes, of the other the viewing ends; and one that reads by segments."""
    leaving, ended = [], []
    for camera_id in cameras:
        leaving.append(await home.watch(camera_id, await home.admit(camera_id)))
        lease_id = await home.admit(camera_id)
        ended.append((lease_id, await home.watch(camera_id, lease_id)))
    for watcher in (*leaving, *(watcher for _, watcher in ended)):
        await watcher.until_media(3)
    for watcher in leaving:
        await watcher.socket.close()
    for lease_id, watcher in ended:
        await home.end(lease_id)
        assert await watcher.until_closed() == 4404
    await home.nothing_left()
