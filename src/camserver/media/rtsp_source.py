"""Looks at an RTSP camera: the newest keyframe of its video, decoded when a look is due.

Cameras that are looked at often are kept connected, where a look costs one decode; others are opened, looked at and
closed, which is cheaper from about five seconds on and lets the camera rest.
"""

from camserver.base.log import get_logger
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Hub, Miss
from camserver.media.shots import VideoShot

log = get_logger(__name__)

HELD_INTERVAL_MAX_MS = 5_000
# A camera that sends is let go within one packet; one that hangs, when its time-out is over.
CLOSE_SEC = 2.0


class RtspSource:
    """A `Source`. The hub is the camera's; others may consume from it too."""

    def __init__(self, hub: Hub, keyframes: Keyframes, interval_ms: int) -> None:
        self._hub = hub
        self._keyframes = keyframes
        self._is_held = interval_ms <= HELD_INTERVAL_MAX_MS

    @property
    def learned_gop_ms(self) -> int | None:
        return self._keyframes.gop_ms

    async def grab(self) -> VideoShot | Miss:
        if not self._hub.has(self._keyframes):
            self._keyframes.begin()
            self._hub.add(self._keyframes)
        try:
            taken = await self._keyframes.take()
        finally:
            # Also when the look timed out: a hanging connection is better begun anew than waited for again.
            if not self._is_held or not self._keyframes.has_video:
                self._let_go()
        return taken if isinstance(taken, Miss) else VideoShot(taken)

    async def close(self) -> None:
        self._let_go()
        if not await self._hub.until_closed(CLOSE_SEC):
            log.warning("the camera hangs; its connection ends by its time-out")

    def _let_go(self) -> None:
        self._hub.remove(self._keyframes)
        self._keyframes.let_go()
