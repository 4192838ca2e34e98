"""Live view of other people's cameras: GStreamer's, and go2rtc in front of one; with B-frames, and as H.265.

With sound of every kind, and transcoded where it can't be shown as it is.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from camserver.media.fragments import VIDEO_TRACK
from camserver.store import Store
from tests.fakes.go2rtc.server import go2rtc
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_rtsp_go2rtc import here_or_skipped, shade
from tests.rig.video_files import sounding_file, video_file
from tests.services.streamer.house import House, house
from tests.services.streamer.live_rig import Watcher, heard

SECONDS = 30


@pytest.fixture
async def home(sqlite_store: Store, tmp_path: Path) -> AsyncIterator[House]:
    # Those servers take their time where every core is busy.
    async with house(sqlite_store, tmp_path / "data", CAMSERVER_LOOKS_CONNECT_TIMEOUT_SEC="30") as made:
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


PICTURES = "videotestsrc is-live=true pattern=white ! video/x-raw,width=320,height=192,framerate=10/1"
TONE = "audiotestsrc is-live=true volume=0.5 ! audioconvert ! audioresample"
H264 = "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 pt=96"
SOUNDS = {
    "pcmu": "audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay1 pt=0",
    "pcma": "audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay1 pt=8",
    "opus": "audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay name=pay1 pt=97",
}
LEFT_HALF = [[(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)]]


def loudest(watcher: Watcher) -> float:
    return max((float(np.abs(frame.to_ndarray()).max()) for frame in heard(b"".join(watcher.media))), default=0.0)


async def until_loud(watcher: Watcher) -> None:
    await watcher.until_media(20)
    while loudest(watcher) < 0.2:
        await watcher.until_media(len(watcher.media) + 10)


async def test_they_are_heard_by_those_who_want_to(home: House, tmp_path: Path) -> None:
    film = sounding_file(tmp_path / "sounding.mp4")
    read = f"filesrc location={film} ! qtdemux name=demux"
    parsed = "demux.video_0 ! queue ! h264parse ! rtph264pay name=pay0 pt=96 demux.audio_0 ! queue ! aacparse"
    mounts = {f"/{name}": f"( {PICTURES} ! {H264} {TONE} ! {sound} )" for name, sound in SOUNDS.items()}
    mounts["/aac"] = f"( {read} {parsed} ! rtpmp4gpay name=pay1 pt=98 )"
    with gstreamer_pipelines(mounts) as cameras:
        for path in mounts:
            await home.hang_camera(path[1:], cameras + path)
        for path in mounts:
            camera_id = path[1:]
            codec = "opus" if camera_id == "opus" else "aac"
            listener = await home.watch(camera_id, await home.admit(camera_id), hears=True)
            await until_loud(listener)
            assert listener.sounds[-1] == codec, camera_id
            assert ("opus" if codec == "opus" else "mp4a.40.2") in listener.inits[-1]["mime"], camera_id
            await listener.socket.close()
        await home.nothing_left()


def track_of(fragment: bytes) -> int:
    return int.from_bytes(fragment.partition(b"tfhd")[2][4:8], "big")


async def test_one_whose_sound_is_off_is_not_asked_for_it(home: House, tmp_path: Path) -> None:
    await home.hang_camera("hushed", sounding_file(tmp_path / "hushed.mp4", seconds=6).as_uri(), live_sound=0)
    await home.held("hushed")
    listener = await home.watch("hushed", await home.admit("hushed"), hears=True)
    await listener.until_media(12)
    assert listener.sounds == []
    assert "mp4a" not in listener.inits[0]["mime"]
    # Somebody allows it while it is watched, and takes that back.
    await home.change("hushed", live_sound=None)
    while listener.sounds != ["aac"]:
        assert await listener.next()
    listener.media = []
    await until_loud(listener)
    await home.change("hushed", live_sound=0)
    while listener.sounds[-1]:
        assert await listener.next()
    listener.media = []
    await listener.until_media(12)
    assert "mp4a" not in listener.inits[-1]["mime"]
    init, *fragments = listener.media
    assert b"soun" not in init
    assert {track_of(one) for one in fragments} == {VIDEO_TRACK}
    await listener.socket.close()
    await home.nothing_left()


async def test_they_are_transcoded_where_they_must_be(home: House, tmp_path: Path) -> None:
    quiet = {"x265-params": "log-level=none:bframes=0:pools=none"}
    files = {
        "hevc": video_file(tmp_path / "hevc.mp4", "libx265", seconds=6, shade=shade, **quiet),
        "mjpeg": video_file(tmp_path / "mjpeg.avi", "mjpeg", seconds=6, shade=shade, strict="-1"),
        "masked": sounding_file(tmp_path / "masked.mp4", seconds=6),
    }
    for camera_id, path in files.items():
        await home.hang_camera(camera_id, path.as_uri())
    await home.hang_camera("single", "test://moving")  # one picture at a time
    await home.held("single")
    # Known to be needed: one transcode for all who watch.
    first = await home.watch("hevc", await home.admit("hevc", transcode=True))
    await first.until_media(8)
    second = await home.watch("hevc", await home.admit("hevc", transcode=True))
    await second.until_media(8)
    for watcher in (first, second):
        assert (watcher.inits[0]["note"], watcher.inits[0]["source_codec"]) == ("transcoded_codec", "hevc")
        assert watcher.inits[0]["codec"] == "h264"
        assert len(watcher.frames()) >= 6
        await watcher.socket.close()
    # Found out by the worker, and by somebody's browser.
    for camera_id, source in (("mjpeg", "mjpeg"), ("single", "mjpeg"), ("hevc", "hevc")):
        lease_id = await home.admit(camera_id)
        watcher = await home.watch(camera_id, lease_id)
        if camera_id == "hevc":
            await watcher.until_media(2)
            await watcher.socket.send_str('{"type":"unplayable"}')
        while not watcher.inits or not watcher.inits[-1]["note"]:
            assert await watcher.next()
        assert watcher.inits[-1]["source_codec"] == source
        assert await home.is_transcoded(lease_id)
        await watcher.until_state("live")
        await watcher.socket.close()
    await home.nothing_left()
    # A mask that is drawn while somebody watches: from then on nothing under it is shown.
    await home.held("masked")
    lease_id = await home.admit("masked")
    watcher = await home.watch("masked", lease_id, hears=True)
    await watcher.until_media(8)
    assert watcher.frames()[-1].to_ndarray(format="gray")[:, :150].min() > 100
    await home.mask("masked", LEFT_HALF)
    while watcher.inits[-1]["note"] != "transcoded_mask":
        assert await watcher.next()
    seen = len(watcher.media)
    await watcher.until_media(seen + 12)
    watcher.media = watcher.media[seen:] if watcher.media[seen][4:8] == b"ftyp" else watcher.media[seen - 1 :]
    for frame in watcher.frames():
        gray = frame.to_ndarray(format="gray")
        assert gray[:, :155].max() < 30
        assert gray[:, 170:].min() > 100
    assert await home.snapshot(lease_id) == await home.snapshot(lease_id)
    await until_loud(watcher)
    await watcher.socket.close()
    await home.nothing_left()
