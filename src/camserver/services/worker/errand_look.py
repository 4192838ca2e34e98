"""The errand `look`: the newest picture of a camera, now, for somebody who waits for it.

It is a look like any other, kept and sent, only outside the camera's grid. Whoever asked is likely to ask again, so
the camera stays connected for a while.
"""

from camserver.base.clock import Clock
from camserver.domain.looks import WATCHED_MS
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.wire.errands import JPEG
from camserver.wire.worker import Errand


def look_handler(cameras: Cameras, clock: Clock) -> Handler:
    async def handle(errand: Errand) -> ErrandDone:
        camera = cameras.camera(errand.camera_id, errand.generation) if errand.camera_id is not None else None
        if camera is None:
            return ErrandDone(False, "this worker does not hold the camera any more; try again")
        camera.watch(clock.boot_ms() + WATCHED_MS)
        looked = await camera.look_now()
        if not looked.jpeg:
            return ErrandDone(False, looked.message, {"captured_at": looked.captured_at, "seq": looked.seq})
        width, height = looked.size
        result = {"captured_at": looked.captured_at, "seq": looked.seq, "width": width, "height": height}
        return ErrandDone(True, "", result, JPEG, looked.jpeg)

    return handle
