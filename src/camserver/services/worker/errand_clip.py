"""The errand `clip`: a short film around an event, cut from the camera's ring buffer.

It waits until the time that is asked for has passed, then makes the film in a picture thread. Only a camera whose
connection is held has a ring with something in it; otherwise the answer says at once why the event has no clip
(domain.clips.NoClip). Films are made one after another: looks have the other threads.

Somebody who asks for the last seconds says what their browser plays (`plays`). What it does not play is transcoded,
as live view is: within the worker's `transcodes_max`, in a thread that steps back behind everything else, in time.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from pydantic import JsonValue

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Unavailable
from camserver.base.log import get_logger
from camserver.domain.clips import NoClip, Span
from camserver.media.mp4_clip import FilmedClip, film, is_encoded
from camserver.media.packets import Packet
from camserver.media.playable_film import film_transcoded, is_playable
from camserver.media.ring import Ring
from camserver.media.transcoding import VideoWork
from camserver.services.worker.camera import Camera
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.services.worker.transcodes import Transcodes
from camserver.wire.errands import MP4
from camserver.wire.worker import Errand

log = get_logger(__name__)

LENGTH_MAX_MS = 120_000
# Packets of a moment are there a little after it.
ARRIVAL_MS = 500
# What is left of an errand's time when a transcode is given up: whoever waits is told why.
TELLING_MS = 5_000
# Of the thread that transcodes a film: a camera that is looked at or watched comes first. Not lower: beside two busy
# threads a core it still gets a seventh of it, which is what half a minute of 1920x1080 needs to be done in time.
NICE = 5
_MOVED = "the camera has moved to another worker since"
_TOO_LARGE = (
    "a group of pictures is larger than the memory for it: more frequent keyframes or a larger ring would help"
)
_NOT_CONNECTED = "the camera was not connected then: clips need looks every few seconds"


def clip_handler(cameras: Cameras, clock: Clock, threads: Executor, transcodes: Transcodes) -> Handler:
    filming, transcoding = asyncio.Semaphore(1), asyncio.Semaphore(1)

    async def handle(errand: Errand) -> ErrandDone:
        asked, plays = _asked(errand), _played(errand)
        give_up_boot_ms = clock.boot_ms() + errand.left_ms - TELLING_MS
        camera = _held(cameras, errand)
        if camera is None:
            return _none(NoClip.MOVED, _MOVED)
        if camera.ring is None or camera.ring.is_empty:
            return _without_ring(camera)
        # A ring that is shorter than what is asked for keeps the beginning: there is what it is about.
        to_ms = min(asked.to_ms, asked.from_ms + round(camera.ring.seconds * 1000) - ARRIVAL_MS)
        await clock.sleep(max(to_ms + ARRIVAL_MS - clock.now_ms(), 0) / 1000)
        if (now := _held(cameras, errand)) is None:
            return _none(NoClip.MOVED, _MOVED)
        if not _shows_the_same(camera, now):
            return _none(NoClip.OFF, "what may be seen of the camera was changed meanwhile")
        # Begun anew meanwhile, the camera has another ring; the one from before has the beginning.
        ahead_ms = clock.now_ms() - clock.boot_ms()
        packets = camera.ring.cut(asked.from_ms - ahead_ms, to_ms - ahead_ms)
        if not packets:
            return _not_there(camera.ring)
        try:
            if _is_to_transcode(packets, camera, plays):
                async with transcoding:
                    made = await _transcoded(transcodes, packets, lambda: clock.boot_ms() < give_up_boot_ms)
                if isinstance(made, ErrandDone):
                    return made
                # It took a while; somebody may have masked something in it meanwhile.
                if (now := _held(cameras, errand)) is None or not _shows_the_same(camera, now):
                    return _none(NoClip.OFF, "what may be seen of the camera was changed meanwhile")
                clip = made
            else:
                async with filming:
                    clip = await _filmed(threads, packets, camera)
        except BadInput as error:
            log.warning("no clip could be made", camera_id=errand.camera_id, cause=error.message)
            return _none(NoClip.FAILED, error.message)
        note = _note(packets, camera, plays)
        about = {"note": note, "source_codec": packets[0].stream.codec if note else ""}
        return ErrandDone(True, "", {**_result(clip, ahead_ms), **about}, MP4, clip.mp4)

    return handle


def _held(cameras: Cameras, errand: Errand) -> Camera | None:
    return None if errand.camera_id is None else cameras.camera(errand.camera_id, errand.generation)


def _without_ring(camera: Camera) -> ErrandDone:
    if camera.ring is not None:
        return _not_there(camera.ring)
    params = camera.start.params
    if params.do_not_process or not params.clip_sec:
        return _none(NoClip.OFF, "clips of this camera are switched off")
    return _none(NoClip.NO_VIDEO, "the camera sends no video")


def _not_there(ring: Ring) -> ErrandDone:
    """Why a ring has nothing of that time."""
    if ring.is_too_large:
        return _none(NoClip.TOO_LARGE, _TOO_LARGE)
    return _none(NoClip.NOT_CONNECTED, _NOT_CONNECTED)


def _shows_the_same(before: Camera, now: Camera) -> bool:
    """Whether video from before may still be shown: somebody may just have masked something in it."""
    asked = [(one.rotation, one.privacy_masks, one.do_not_process) for one in (before.start.params, now.start.params)]
    return asked[0] == asked[1] and bool(now.start.params.clip_sec)


def _none(reason: NoClip, message: str) -> ErrandDone:
    return ErrandDone(False, message, {"reason": reason.value})


async def _filmed(threads: Executor, packets: Sequence[Packet], camera: Camera) -> FilmedClip:
    params = camera.start.params
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, film, packets, params.rotation, params.privacy_masks)


def _is_to_transcode(packets: Sequence[Packet], camera: Camera, plays: Collection[str] | None) -> bool:
    """Whether a browser would not play the film. What is turned or masked becomes H.264 anyway."""
    params = camera.start.params
    if plays is None or is_encoded(packets, params.rotation, params.privacy_masks):
        return False
    return not is_playable(packets, plays)


async def _transcoded(
    transcodes: Transcodes, packets: Sequence[Packet], is_in_time: Callable[[], bool]
) -> FilmedClip | ErrandDone:
    """The film, or why there is none. In a thread of its own, which ends with it, also when nobody waits any more."""
    with transcodes.film() as has_place:
        limits = transcodes.limits
        if not has_place:
            return _none(NoClip.TRANSCODE_FULL, f"this worker transcodes {limits.most} cameras already, its most")
        over = threading.Event()
        thread = ThreadPoolExecutor(1, "film-transcode", initializer=_step_back)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                thread,
                film_transcoded,
                packets,
                VideoWork(limits.width_max, limits.fps_max),
                lambda: not over.is_set() and is_in_time(),
            )
        except Unavailable as error:
            log.warning("a film is given up", cause=error.message)
            return _none(NoClip.TOO_SLOW, error.message)
        finally:
            over.set()
            thread.shutdown(wait=False)


def _step_back() -> None:
    """Of this thread alone: Linux has a priority for each."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def _note(packets: Sequence[Packet], camera: Camera, plays: Collection[str] | None) -> str:
    """Why the film is not as the camera sent it, by the names of live view."""
    params = camera.start.params
    if params.privacy_masks:
        return "transcoded_mask"
    return "transcoded_codec" if _is_to_transcode(packets, camera, plays) else ""


def _result(clip: FilmedClip, ahead_ms: int) -> dict[str, JsonValue]:
    return {
        "begin_at": clip.begin_boot_ms + ahead_ms,
        "end_at": clip.end_boot_ms + ahead_ms,
        "codec": clip.codec,
        "width": clip.width,
        "height": clip.height,
    }


def _played(errand: Errand) -> frozenset[str] | None:
    """The codecs that whoever asked can play, as FFmpeg names them; None: it was not said."""
    plays = errand.params.get("plays")
    return None if not isinstance(plays, list) else frozenset(one for one in plays if isinstance(one, str))


def _asked(errand: Errand) -> Span:
    from_ms, to_ms = errand.params.get("from_ms"), errand.params.get("to_ms")
    if not isinstance(from_ms, int) or not isinstance(to_ms, int) or not 0 < to_ms - from_ms <= LENGTH_MAX_MS:
        raise BadInput(f"a clip is asked for from_ms to to_ms, at most {LENGTH_MAX_MS} ms apart")
    return Span(from_ms, to_ms)
