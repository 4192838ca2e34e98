"""Clips for browsers that do not play what the camera sent: made anew as H.264 on request, and kept in memory as long
as there is room.

One at a time, in a thread that steps back behind everything else; few wait, and whoever comes after is told to come
again. What many ask for at once is made once.
"""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from camserver.base.errors import NotFound, Unavailable
from camserver.objects.local import Objects
from camserver.services.web.kept_bytes import KeptBytes
from camserver.store.clips import ClipPlace

# About 20 clips.
KEPT_MAX_BYTES = 64_000_000
# Being made and waiting; each holds its clip in memory.
UNDER_WAY_MAX = 4
# A quarter of a minute of 3840x2160 takes half of that on a slow core.
TIME_MAX_SEC = 60.0
NICE = 5


class PlayableFilms:
    def __init__(self, objects: Objects, kept_max_bytes: int = KEPT_MAX_BYTES) -> None:
        self._objects = objects
        self._thread = ThreadPoolExecutor(1, "playable-film", initializer=_step_back)
        self._kept = KeptBytes[str](kept_max_bytes)
        self._under_way: dict[str, asyncio.Task[bytes | None]] = {}
        self._over = threading.Event()

    def close(self) -> None:
        self._over.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def made(self, place: ClipPlace) -> bytes | None:
        """The clip for every browser; None where it is that as it is.

        Unavailable when too many are made at this moment or it takes too long, BadInput when it can't be read.
        """
        found = self._kept.find(place.clip_uuid)
        if found is not None:
            return found
        task = self._under_way.get(place.clip_uuid)
        if task is None:
            if len(self._under_way) >= UNDER_WAY_MAX:
                raise Unavailable(
                    "too many clips are converted at this moment; wait some seconds, or download it as it is",
                    reason="converting_busy",
                    retry_after_sec=5,
                )
            task = self._under_way[place.clip_uuid] = asyncio.ensure_future(self._make(place))
            task.add_done_callback(lambda _: self._under_way.pop(place.clip_uuid, None))
        # Whoever goes away does not end it for the others; a player asks for the same again and again.
        return await asyncio.shield(task)

    async def _make(self, place: ClipPlace) -> bytes | None:
        try:
            mp4 = await self._objects.get(place.object_key)
        except NotFound:
            raise NotFound("this clip is gone", reason="picture_gone", kind="clip") from None
        made = await asyncio.get_running_loop().run_in_executor(self._thread, self._made_of, mp4)
        if made is not None:
            self._kept.keep(place.clip_uuid, made)
        return made

    def _made_of(self, mp4: bytes) -> bytes | None:
        # FFmpeg's libraries are loaded when they are first needed, which in most installations is never.
        from camserver.media.playable_film import playable_anew
        from camserver.media.transcoding import VideoWork

        end_sec = time.monotonic() + TIME_MAX_SEC
        return playable_anew(mp4, VideoWork(), lambda: not self._over.is_set() and time.monotonic() < end_sec)


def _step_back() -> None:
    """Of this thread alone: Linux has a priority for each."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
