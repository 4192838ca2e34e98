"""Clips as a worker makes them: from the ring of a camera that is held, masked, in time, and not lost by kill -9."""

import asyncio
import io
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import av
import pytest
from aiohttp import web

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.clips import NoClip
from camserver.media.packets import Packet
from camserver.media.ring import Ring, Rings
from camserver.media.sources import Source
from camserver.services.worker.camera import Surroundings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errand_clip import ARRIVAL_MS, TELLING_MS, clip_handler
from camserver.services.worker.errand_files import ErrandFiles
from camserver.services.worker.errands import ErrandDone, Errands
from camserver.services.worker.transcodes import TranscodeLimits, Transcodes
from camserver.services.worker.upload_client import UploadClient
from camserver.services.worker.waiting import end
from camserver.wire.errands import ErrandUpload
from camserver.wire.worker import Errand, Held, LookParams, Start
from tests.media.test_mp4_clip import recorded
from tests.media.video import encoded, flat
from tests.rig.polling import TIMEOUT_SEC, until
from tests.rig.processes import REPOSITORY
from tests.services.worker.build import FollowingClock, ToldSource, start_message
from tests.services.worker.control import TOKEN, ScriptedControl, failed
from tests.services.worker.video import ToldVideo

SIZE = (320, 180)
FRAME_MS = 100
RING_SEC = 30
LEFT_HALF = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))


def start_with(interval_sec: float = 5, kind: str = "test", **params: object) -> Start:
    start = start_message(interval_sec=interval_sec, kind=kind)
    values = start.params.model_dump() | params
    return start.model_copy(update={"params": LookParams.model_validate(values)})


def errand(
    from_ms: object,
    to_ms: object,
    camera_id: str = "cam_1",
    generation: int = 1,
    plays: list[str] | None = None,
    left_ms: int = 60_000,
) -> Errand:
    asked = {"from_ms": from_ms, "to_ms": to_ms} | ({} if plays is None else {"plays": plays})
    return Errand.model_validate(
        {
            "errand_id": "errand-1",
            "kind": "clip",
            "camera_id": camera_id,
            "generation": generation,
            "params": asked,
            "left_ms": left_ms,
        }
    )


class Stage:
    def __init__(self, clock: FollowingClock, given: Surroundings, source: Source | None = None) -> None:
        self.clock = clock
        self.given = replace(given, rings=Rings(100_000_000, RING_SEC, clock.boot_ms))
        self.video = ToldVideo(clock, SIZE)
        self.cameras = Cameras(self.given, 4, lambda wanted, boot_ms: source or self.video.source)
        self.transcodes = Transcodes(TranscodeLimits(most=1, width_max=160))
        self.handle = clip_handler(self.cameras, clock, given.pictures, self.transcodes)
        self._asked: list[asyncio.Task[ErrandDone]] = []

    async def start(self, start: Start) -> None:
        assert await self.cameras.start(start) is None
        self.cameras.renewed(Held(camera_id="cam_1", generation=1), self.clock.boot_ms() + 10_000_000)

    @property
    def ring(self) -> Ring:
        camera = self.cameras.camera("cam_1", 1)
        assert camera is not None
        assert camera.ring is not None
        return camera.ring

    async def connected(self, start: Start) -> None:
        """Held, its first look made, and its ring filled from now on."""
        await self.start(start)
        await self.video.connected()
        self.video.show()
        await until(lambda: self.given.spool.looks >= 1, "the first look")
        await until(lambda: self.video.source.hold, "it is held")

    async def play(self, seconds: int) -> None:
        """So many seconds of video, a keyframe in each of them, the last picture of now."""
        pictures = encoded([flat(40 + n % 100, SIZE) for n in range(seconds * 10)], keyframes_apart=10)
        for picture in pictures:
            await self.clock.advance(FRAME_MS)
            await self.tell(replace(picture, boot_ms=self.clock.boot_ms(), pts=None, dts=None))

    async def tell(self, packet: Packet) -> None:
        """Until the ring has seen it. A ring that is empty takes keyframes only."""
        self.video.packets.tell(packet)
        ring = self.ring
        await until(
            lambda: any(
                packet.boot_ms == one.boot_ms
                for piece in ring._pieces()
                for group in piece
                for one in tuple(group.packets)
            ),
            "the packet is in the ring",
        )

    def ask(self, from_ms: int, to_ms: int, **which: object) -> "asyncio.Task[ErrandDone]":
        async def done() -> ErrandDone:
            return await self.handle(errand(from_ms, to_ms, **which))  # type: ignore[arg-type]  # the names are its own

        self._asked.append(asyncio.ensure_future(done()))
        return self._asked[-1]

    async def ask_and_wait(self, from_ms: int, to_ms: int) -> "asyncio.Task[ErrandDone]":
        """Until it waits for the time to pass."""
        sleeping = self.clock.sleeping
        asked = self.ask(from_ms, to_ms)
        await self.clock.until_sleeping(sleeping + 1)
        return asked

    async def answer(self, from_ms: int, to_ms: int, **which: object) -> ErrandDone:
        """For what needs no waiting: the clock stands still."""
        return await asyncio.wait_for(self.ask(from_ms, to_ms, **which), TIMEOUT_SEC)

    async def close(self) -> None:
        await end(*self._asked)
        await self.cameras.close()


Staging = Callable[..., Stage]


@pytest.fixture
async def stage(moved: FollowingClock, given_to_cameras: Surroundings) -> AsyncIterator[Staging]:
    made: list[Stage] = []

    def build(source: Source | None = None) -> Stage:
        made.append(Stage(moved, given_to_cameras, source))
        return made[-1]

    yield build
    for one in made:
        await one.close()


def pictures_of(mp4: bytes) -> list[av.VideoFrame]:
    with av.open(io.BytesIO(mp4), "r") as container:
        return list(container.decode(video=0))


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def reason_of(done: ErrandDone) -> object:
    assert not done.ok
    assert done.message
    return done.result["reason"]


async def test_a_clip_begins_before_and_ends_after_the_moment(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(4)
    moment = on.clock.now_ms()
    asked = on.ask(moment - 2_000, moment + 3_000)
    await on.play(3)
    assert not asked.done()
    await on.clock.advance(ARRIVAL_MS)
    done = await asyncio.wait_for(asked, TIMEOUT_SEC)
    assert (done.ok, done.content_type) == (True, "video/mp4")
    begin_at, end_at = done.result["begin_at"], done.result["end_at"]
    assert isinstance(begin_at, int)
    # From the keyframe before, and those are a second apart.
    assert moment - 3_000 < begin_at <= moment - 2_000
    assert end_at == moment + 3_000
    assert (done.result["codec"], done.result["width"], done.result["height"]) == ("h264", *SIZE)
    assert len(pictures_of(done.body)) == (end_at - begin_at) // FRAME_MS + 1


async def test_a_span_longer_than_the_ring_keeps_the_beginning(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(2)
    moment = on.clock.now_ms()
    asked = on.ask(moment - 1_000, moment + 60_000)
    await on.play(RING_SEC - 1)
    done = await asyncio.wait_for(asked, TIMEOUT_SEC)
    begin_at = done.result["begin_at"]
    assert isinstance(begin_at, int)
    assert begin_at <= moment - 1_000
    assert done.result["end_at"] == moment + (RING_SEC - 1) * 1000 - ARRIVAL_MS


async def test_what_is_masked_is_not_in_the_clip(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with(privacy_masks=(LEFT_HALF,)))
    await on.play(2)
    done = await on.answer(on.clock.now_ms() - 1_000, on.clock.now_ms() - ARRIVAL_MS)
    frames = [frame.to_ndarray(format="gray") for frame in pictures_of(done.body)]
    assert frames
    assert all(frame[:, :150].mean() < 20 < frame[:, 170:].mean() for frame in frames)


async def test_a_mask_that_was_made_meanwhile_holds_for_what_came_before(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(2)
    asked = await on.ask_and_wait(on.clock.now_ms() - 1_000, on.clock.now_ms() + 1_000)
    on.video = ToldVideo(on.clock, SIZE)
    await on.start(start_with(privacy_masks=(LEFT_HALF,)))
    await on.clock.advance(2_000)
    assert reason_of(await asyncio.wait_for(asked, TIMEOUT_SEC)) == NoClip.OFF


async def test_a_camera_that_begins_anew_meanwhile_still_has_its_clip(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(2)
    asked = await on.ask_and_wait(on.clock.now_ms() - 1_000, on.clock.now_ms() + 1_000)
    on.video = ToldVideo(on.clock, SIZE)
    await on.start(start_with(interval_sec=4))
    await on.clock.advance(2_000)
    done = await asyncio.wait_for(asked, TIMEOUT_SEC)
    assert done.ok
    assert len(pictures_of(done.body)) >= 10


async def test_a_camera_that_is_let_go_meanwhile_has_none(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(1)
    asked = await on.ask_and_wait(on.clock.now_ms() - 1_000, on.clock.now_ms() + 1_000)
    on.cameras.lost(Held(camera_id="cam_1", generation=1), "moved")
    await on.clock.advance(2_000)
    assert reason_of(await asyncio.wait_for(asked, TIMEOUT_SEC)) == NoClip.MOVED


async def test_what_is_not_in_the_ring_any_more(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    await on.play(1)
    long_ago = on.clock.now_ms() - 100_000
    assert reason_of(await on.answer(long_ago, long_ago + 10_000)) == NoClip.NOT_CONNECTED


async def test_video_that_does_not_fit_into_its_memory_is_told_apart(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with())
    ring = on.ring
    ring._rings.max_bytes = 10
    on.video.show()
    await until(lambda: ring.is_too_large, "a picture that does not fit")
    assert reason_of(await on.answer(on.clock.now_ms() - 1_000, on.clock.now_ms())) == NoClip.TOO_LARGE


async def test_why_there_is_none_is_said_at_once(stage: Staging, moved: FollowingClock) -> None:
    """The clock stands still: nothing waits for the time that is asked for."""
    span = (moved.now_ms(), moved.now_ms() + 10_000)
    still = stage(ToldSource(moved.now_ms))
    await still.start(start_with())
    assert reason_of(await still.answer(*span)) == NoClip.NO_VIDEO
    for other in ({"camera_id": "cam_2"}, {"generation": 2}):
        assert reason_of(await still.answer(*span, **other)) == NoClip.MOVED
    patrol = stage()
    await patrol.start(start_with(interval_sec=3600))
    assert reason_of(await patrol.answer(*span)) == NoClip.NOT_CONNECTED
    for switched_off in ({"clip_sec": 0.0}, {"do_not_process": True}):
        off = stage()
        await off.start(start_with(**switched_off))
        assert reason_of(await off.answer(*span)) == NoClip.OFF


@pytest.mark.parametrize("span", [(0, 0), (10, 5), (0, 120_001), ("0", 5), (None, 5)])
async def test_a_span_that_makes_no_sense(stage: Staging, span: tuple[object, object]) -> None:
    with pytest.raises(BadInput, match="from_ms"):
        await stage().handle(errand(*span))


async def test_video_that_can_t_be_read_is_no_clip(stage: Staging) -> None:
    on = stage()
    await on.connected(start_with(privacy_masks=(LEFT_HALF,)))
    on.ring.clear()
    broken = replace(on.video.picture(50), data=b"\0\0\0\1 no picture")
    await on.tell(broken)
    now_ms = on.clock.now_ms()
    await on.clock.advance(ARRIVAL_MS)
    assert reason_of(await on.answer(now_ms - 5_000, now_ms)) == NoClip.FAILED


async def h265_in(on: Stage, **params: object) -> int:
    """Two seconds of H.265 are in the ring; the moment of the last picture."""
    await on.connected(start_with(**params))
    on.ring.clear()
    for picture in recorded("libx265", **{"x265-params": "log-level=none:pools=none:bframes=0"})[:20]:
        await on.clock.advance(FRAME_MS)
        await on.tell(replace(picture, boot_ms=on.clock.boot_ms(), pts=None, dts=None))
    now_ms = on.clock.now_ms()
    await on.clock.advance(ARRIVAL_MS)
    return now_ms


def film_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("film-transcode")]


async def test_h265_is_transcoded_for_a_browser_that_does_not_play_it(stage: Staging) -> None:
    on = stage()
    now_ms = await h265_in(on)
    done = await on.answer(now_ms - 1_900, now_ms, plays=["h264"])
    assert (done.ok, done.result["codec"], done.result["width"]) == (True, "h264", 160)
    assert (done.result["note"], done.result["source_codec"]) == ("transcoded_codec", "hevc")
    assert len(pictures_of(done.body)) == 20
    assert on.transcodes.films == 0
    await until(lambda: not film_threads(), "its thread is gone")
    # Whoever plays it, or says nothing, gets it as it was sent.
    for plays in (["h264", "hevc"], None):
        done = await on.answer(now_ms - 1_900, now_ms, plays=plays)
        assert (done.result["codec"], done.result["note"], done.result["source_codec"]) == ("hevc", "", "")


async def test_h265_under_a_mask_is_masked_in_the_film(stage: Staging) -> None:
    on = stage()
    now_ms = await h265_in(on, privacy_masks=(LEFT_HALF,))
    done = await on.answer(now_ms - 900, now_ms, plays=["h264"])
    assert (done.result["codec"], done.result["note"], done.result["source_codec"]) == (
        "h264",
        "transcoded_mask",
        "hevc",
    )
    frames = [frame.to_ndarray(format="gray") for frame in pictures_of(done.body)]
    assert frames
    assert all(frame[:, :70].mean() < 20 < frame[:, 90:].mean() for frame in frames)


async def test_without_a_place_to_transcode_there_is_no_film(stage: Staging) -> None:
    on = stage()
    now_ms = await h265_in(on)
    on.transcodes.live = lambda: 1
    assert reason_of(await on.answer(now_ms - 1_000, now_ms, plays=["h264"])) == NoClip.TRANSCODE_FULL
    # It takes no place where nothing is to be transcoded.
    assert (await on.answer(now_ms - 1_000, now_ms, plays=["h264", "hevc"])).ok
    on.transcodes.live = lambda: 0
    assert (await on.answer(now_ms - 1_000, now_ms, plays=["h264"])).ok


async def test_a_transcode_that_takes_too_long_is_given_up_and_said(stage: Staging) -> None:
    on = stage()
    now_ms = await h265_in(on)
    assert reason_of(await on.answer(now_ms - 1_000, now_ms, plays=["h264"], left_ms=TELLING_MS)) == NoClip.TOO_SLOW
    assert on.transcodes.films == 0
    await until(lambda: not film_threads(), "its thread is gone")


async def test_a_clip_survives_kill_9_between_making_and_sending(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    async def away(_: ErrandUpload) -> web.StreamResponse:
        return failed(503, "unavailable")

    control.answer_errand = away
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.services.worker.clip_maker", str(tmp_path), control.url, cwd=REPOSITORY
    )
    try:
        first = await control.until_errand("errand-1")
    finally:
        maker.kill()
        await maker.wait()
    assert len(left_in(tmp_path)) == 1
    control.answer_errand = control.record_errand
    async with aiohttp.ClientSession() as session:
        client = UploadClient(session, control.url, "worker-1", Secret(TOKEN))
        errands = Errands({}, client, ErrandFiles(tmp_path), moved)
        await errands.open()
        second = await control.until_errand("errand-1", 2)
        await until(lambda: not left_in(tmp_path), "its file is gone")
        await errands.close()
    assert second == first
    assert len(pictures_of(second.body)) == 20
