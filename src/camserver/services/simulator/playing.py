"""Plays a clip for ever, at its own pace, to everybody who listens.

All listeners of a stream get the same packets at the same time, as from a camera; one who comes in the middle waits
for the next keyframe. The time of the stream only grows: each turn of the clip goes on where the last one ended,
after a moment's rest, without which somebody who looks once a minute might see the same picture for ever. What is
played can be another clip from one moment to the next, in the same stream.
"""

import asyncio
import bisect
import random
from typing import Protocol

from camserver.base.log import get_logger
from camserver.media.clips import CLOCK_HZ, AccessUnit, Clip
from camserver.services.simulator.rtp import Packer

log = get_logger(__name__)

# Further behind than this, as after the machine slept, the past is left out.
BEHIND_MAX_SEC = 2.0
# The rest between two turns, as a part of the clip.
REST_PART = 40


class Listener(Protocol):
    def hear(self, packets: list[bytes], is_keyframe: bool) -> None:
        """The RTP packets of one access unit; must return at once."""


class Playback:
    def __init__(self, clip: Clip) -> None:
        self._packer = Packer(random.getrandbits(32), random.getrandbits(16))
        self._origin_sec = asyncio.get_running_loop().time()
        self._base = random.getrandbits(31)  # timestamps begin anywhere (RFC 3550)
        self._take(clip)
        self._listeners: set[Listener] = set()
        self._playing: asyncio.Task[None] | None = None

    @property
    def ssrc(self) -> int:
        return self._packer.ssrc

    def show(self, clip: Clip) -> None:
        """Plays another clip from now on, to those who listen already too."""
        now_sec = asyncio.get_running_loop().time()
        # The new one begins where the old one was, and a little later, so that no time comes twice.
        self._base += int((now_sec - self._origin_sec + 1) * CLOCK_HZ)
        self._origin_sec = now_sec
        self._take(clip)
        if self._playing is not None:
            self._playing.cancel()
            self._playing = asyncio.ensure_future(self._play())

    def _take(self, clip: Clip) -> None:
        self.clip = clip
        self._due = [unit.dts for unit in clip.units]
        self._turn = clip.duration + clip.duration // REST_PART

    def add(self, listener: Listener) -> None:
        self._listeners.add(listener)
        if self._playing is None or self._playing.done():
            self._playing = asyncio.ensure_future(self._play())

    def remove(self, listener: Listener) -> None:
        """The stream goes on without anybody, but costs nothing then."""
        self._listeners.discard(listener)
        if not self._listeners and self._playing is not None:
            self._playing.cancel()
            self._playing = None

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        turn, number = self._place(loop.time())
        while True:
            unit = self.clip.units[number]
            at = turn * self._turn + unit.dts
            pause_sec = self._origin_sec + at / CLOCK_HZ - loop.time()
            if pause_sec < -BEHIND_MAX_SEC:
                log.warning("simulated camera is behind and leaves pictures out", behind_sec=-pause_sec)
                turn, number = self._place(loop.time())
                continue
            if pause_sec > 0:
                await asyncio.sleep(pause_sec)
            self._send(unit, turn)
            number += 1
            if number == len(self.clip.units):
                turn, number = turn + 1, 0

    def _place(self, now_sec: float) -> tuple[int, int]:
        """Turn and number of the unit that is due now."""
        turn, at = divmod(int((now_sec - self._origin_sec) * CLOCK_HZ), self._turn)
        number = bisect.bisect_left(self._due, at)
        return (turn, number) if number < len(self._due) else (turn + 1, 0)

    def _send(self, unit: AccessUnit, turn: int) -> None:
        timestamp = self._base + turn * self._turn + unit.pts
        nals = unit.nals
        if unit.is_keyframe and not any(nal[0] & 31 == 7 for nal in nals):
            nals = (self.clip.sps, self.clip.pps, *nals)
        packets = self._packer.pack(nals, timestamp)
        for listener in tuple(self._listeners):
            listener.hear(packets, unit.is_keyframe)
