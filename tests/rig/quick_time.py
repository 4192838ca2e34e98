"""Time that goes faster: whole processes for which a day passes in minutes.

Their boot-time and wall clocks and their sleeps are sped up alike, from one common moment on, so several processes
agree. Time-outs of connections stay those of the real world: a machine is not quicker because its clock is.
"""

import os
import time
from pathlib import Path

from tests.rig.processes import REPOSITORY

_HOOK = """
import asyncio, os, time
_speed, _anchor_ns = float(os.environ["TEST_TIME_SPEED"]), int(os.environ["TEST_TIME_ANCHOR_NS"])
_boot_ns, _wall_ns, _sleep = time.clock_gettime_ns, time.time_ns, asyncio.sleep
def _ahead_ns():
    return int((_boot_ns(time.CLOCK_BOOTTIME) - _anchor_ns) * (_speed - 1))
def _clock_gettime_ns(which):
    return _boot_ns(which) + (_ahead_ns() if which == time.CLOCK_BOOTTIME else 0)
time.clock_gettime_ns = _clock_gettime_ns
time.time_ns = lambda: _wall_ns() + _ahead_ns()
time.time = lambda: time.time_ns() / 1e9
asyncio.sleep = lambda delay, result=None: _sleep(delay / _speed, result)
asyncio.tasks.sleep = asyncio.sleep
"""


class QuickTime:
    """`env` goes into every process's environment; `passed_sec` is how long ago they began, by their clocks."""

    def __init__(self, folder: Path, speed: float) -> None:
        self.speed = speed
        self._anchor_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._folder = folder / "quick-time"
        self._folder.mkdir()
        (self._folder / "sitecustomize.py").write_text(_HOOK)

    @property
    def env(self) -> dict[str, str]:
        path = os.pathsep.join(map(str, (self._folder, REPOSITORY / "src", REPOSITORY)))
        return {
            "PYTHONPATH": path,
            "TEST_TIME_SPEED": repr(self.speed),
            "TEST_TIME_ANCHOR_NS": str(self._anchor_ns),
        }

    @property
    def passed_sec(self) -> float:
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._anchor_ns) / 1e9 * self.speed
