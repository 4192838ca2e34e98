"""The errand `clip`: a short film around an event, cut from the camera's ring buffer.

It waits until the time that is asked for has passed, then makes the film in a picture thread. Only a camera whose
connection is held has a ring with something in it; otherwise the answer says at once why the event has no clip
(domain.clips.NoClip). Films are made one after another: looks have the other threads.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from pydantic import JsonValue

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.clips import NoClip, Span
from camserver.media.mp4_clip import FilmedClip, film
from camserver.media.packets import Packet
from camserver.media.ring import Ring
from camserver.services.worker.camera import Camera
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.wire.errands import MP4
from camserver.wire.worker import Errand

log = get_logger(__name__)

LENGTH_MAX_MS = 120_000
# Packets of a moment are there a little after it.
ARRIVAL_MS = 500
_MOVED = "the camera has moved to another worker since"
_TOO_LARGE = (
    "a group of pictures is larger than the memory for it: more frequent keyframes or a larger ring would help"
)
_NOT_CONNECTED = "the camera was not connected then: clips need looks every few seconds"


def clip_handler(cameras: Cameras, clock: Clock, threads: Executor) -> Handler:
    filming = asyncio.Semaphore(1)

    async def handle(errand: Errand) -> ErrandDone:
        asked = _asked(errand)
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
            async with filming:
                clip = await _filmed(threads, packets, camera)
        except BadInput as error:
            log.warning("no clip could be made", camera_id=errand.camera_id, cause=error.message)
            return _none(NoClip.FAILED, error.message)
        return ErrandDone(True, "", _result(clip, ahead_ms), MP4, clip.mp4)

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


def _result(clip: FilmedClip, ahead_ms: int) -> dict[str, JsonValue]:
    return {
        "begin_at": clip.begin_boot_ms + ahead_ms,
        "end_at": clip.end_boot_ms + ahead_ms,
        "codec": clip.codec,
        "width": clip.width,
        "height": clip.height,
    }


def _asked(errand: Errand) -> Span:
    from_ms, to_ms = errand.params.get("from_ms"), errand.params.get("to_ms")
    if not isinstance(from_ms, int) or not isinstance(to_ms, int) or not 0 < to_ms - from_ms <= LENGTH_MAX_MS:
        raise BadInput(f"a clip is asked for from_ms to to_ms, at most {LENGTH_MAX_MS} ms apart")
    return Span(from_ms, to_ms)
