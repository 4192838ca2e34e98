"""Live view at the worker: pushes a camera's packets to the streamer that asked, over the camera's one connection.

A push is one task a camera and quality. It ends when the streamer closes its socket, when the camera is let go, or
when the line to the server is short: looks go first. What browsers don't play, and what is under a privacy mask, is
transcoded on its way; a masked camera's video is never passed on as it is.
"""

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from camserver.base.clock import Clock
from camserver.base.errors import CamError
from camserver.base.log import bind_ids, get_logger
from camserver.domain.live import Line, shed_until
from camserver.media.rtsp_lean.pump import shared_pump
from camserver.media.transcoding import VideoWork
from camserver.services.worker.camera import Camera
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.feed_line import connect
from camserver.services.worker.push import SHED, TICK_SEC, Push
from camserver.services.worker.transcodes import Transcodes
from camserver.services.worker.waiting import end
from camserver.wire.worker import Ack, LiveStart, LiveStop, LookParams

log = get_logger(__name__)

PUSHES_MAX = 128
# How far back the spool's size is compared with.
SPOOL_WINDOW = 10

PushKey: TypeAlias = tuple[str, str, bool, str]  # camera, quality, transcoded, streamer


class Lives:
    """All pushes of a worker."""

    def __init__(
        self,
        cameras: Cameras,
        clock: Clock,
        line_now: Callable[[], tuple[int, int]],
        tls: ssl.SSLContext | None = None,
        jitter: Callable[[], float] = random.random,
        transcodes: Transcodes | None = None,
    ) -> None:
        """`line_now`: the last renewal's round trip in ms, and the looks in the spool."""
        self._cameras = cameras
        self._clock = clock
        self._line_now = line_now
        self._tls = tls
        self._jitter = jitter
        self._room = Transcodes() if transcodes is None else transcodes
        self._room.live = lambda: self.transcodes
        self._pushes: dict[PushKey, asyncio.Task[None]] = {}
        self._spool: deque[int] = deque(maxlen=SPOOL_WINDOW)
        self._shed_until_boot_ms = 0
        self._begun = asyncio.Event()
        self.shed = 0

    def __len__(self) -> int:
        return len(self._pushes)

    @property
    def transcodes(self) -> int:
        return sum(key[2] for key in self._pushes)

    async def run(self) -> None:
        """Watches the line until cancelled, while anybody watches a camera."""
        while True:
            await self._begun.wait()
            self._spool.clear()
            while self._pushes:
                self._watch_line()
                await self._clock.sleep(TICK_SEC)
            self._begun.clear()

    def start(self, intent: LiveStart) -> Ack:
        """Begins to push, or says why not: a code, a colon and words."""
        why = self._why_not(intent)
        if why:
            log.warning("live_refused", camera_id=intent.camera_id, generation=intent.generation, cause=why)
            return Ack(intent_id=intent.intent_id, status="refused", details=why[:255])
        camera = self._cameras.camera(intent.camera_id, intent.generation)
        assert camera is not None
        key = (intent.camera_id, intent.quality, intent.transcode, intent.streamer_url)
        if (old := self._pushes.get(key)) is not None:
            old.cancel()
        with bind_ids(camera_id=intent.camera_id, generation=intent.generation, intent_id=intent.intent_id):
            task = asyncio.ensure_future(self._push(intent, camera))
        self._pushes[key] = task
        self._begun.set()
        task.add_done_callback(lambda done: self._ended(key, done))
        return Ack(intent_id=intent.intent_id, status="ok")

    def stop(self, intent: LiveStop) -> Ack:
        for key, task in tuple(self._pushes.items()):
            if key[:3] == (intent.camera_id, intent.quality, intent.transcode):
                task.cancel()
        return Ack(intent_id=intent.intent_id, status="ok")

    async def close(self) -> None:
        await end(*self._pushes.values())

    def _why_not(self, intent: LiveStart) -> str:
        camera = self._cameras.camera(intent.camera_id, intent.generation)
        if camera is None or not camera.hold.is_covered:
            return "moved: this worker does not hold the camera (any more)"
        params = camera.start.params
        if params.do_not_process:
            return "not_processed: the camera is not to be processed"
        if self._clock.boot_ms() < self._shed_until_boot_ms:
            return "shed: the line to the server is short; looks go first"
        if params.privacy_masks and not intent.transcode:
            return "masked: the camera has a privacy mask, so its video is not passed on as it is"
        if camera.stream(intent.quality).video is None and not intent.transcode:
            return "codec: the camera sends no video, only single pictures"
        if intent.transcode and self._transcodes(intent) >= self._room.limits.most:
            return f"transcode_full: {self._room.limits.most} cameras are transcoded at this worker already"
        if len(self._pushes) >= PUSHES_MAX:
            return f"shed: {PUSHES_MAX} cameras are watched at this worker already"
        return ""

    def _transcodes(self, intent: LiveStart) -> int:
        """How many there are beside the one that is asked for."""
        asked = (intent.camera_id, intent.quality, intent.transcode, intent.streamer_url)
        return sum(key[2] for key in self._pushes if key != asked) + self._room.films

    def _work(self, intent: LiveStart, params: LookParams) -> VideoWork | None:
        if not intent.transcode:
            return None
        limits = self._room.limits
        return VideoWork(limits.width_max, limits.fps_max, params.rotation, params.privacy_masks)

    def _ended(self, key: PushKey, task: "asyncio.Task[None]") -> None:
        if self._pushes.get(key) is task:
            del self._pushes[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a push crashed", exc_info=error, camera_id=key[0])

    def _watch_line(self) -> None:
        rtt_ms, looks = self._line_now()
        self._spool.append(looks)
        boot_ms = self._clock.boot_ms()
        was_shed = boot_ms < self._shed_until_boot_ms
        self._shed_until_boot_ms = shed_until(Line(rtt_ms, looks, self._spool[0]), self._shed_until_boot_ms, boot_ms)
        if boot_ms < self._shed_until_boot_ms and not was_shed and self._pushes:
            log.warning("live view is let go: the line is short", rtt_ms=rtt_ms, spool_looks=looks)
            self.shed += len(self._pushes)
            for task in self._pushes.values():
                task.cancel(msg=SHED)

    async def _push(self, intent: LiveStart, camera: Camera) -> None:
        try:
            line = await connect(intent.streamer_url, intent.ticket, self._tls)
        except CamError as error:
            log.warning("streamer can't be fed", cause=error.message)
            return
        try:
            with shared_pump().hurried():
                work = self._work(intent, camera.start.params)
                stream = camera.stream(intent.quality)
                await Push(camera, stream, line, self._clock, self._jitter, work).run()
        finally:
            line.close()
            log.info("live_ended", quality=intent.quality, close_code=line.close_code)
