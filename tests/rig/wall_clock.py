"""Wall clocks of processes that jump: the time of day of one process is off by what its own file says.

The boot-time clock stays, as on a machine whose time is set by hand or by a server of time.
"""

import os
from pathlib import Path

from tests.rig.processes import REPOSITORY

# Read by every Python that finds it on its path.
_HOOK = """
import os, time
_file, _time, _time_ns = os.environ["TEST_WALL_CLOCK"], time.time, time.time_ns
def _off():
    try:
        return int(open(_file).read() or 0)
    except (OSError, ValueError):
        return 0
time.time = lambda: _time() + _off()
time.time_ns = lambda: _time_ns() + _off() * 10**9
"""


class WallClocks:
    """`env(name)` goes into a process's environment; `jump(name, seconds)` then moves its clock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "wall-clocks"
        self._folder.mkdir()
        (self._folder / "sitecustomize.py").write_text(_HOOK)

    def env(self, name: str) -> dict[str, str]:
        path = os.pathsep.join(map(str, (self._folder, REPOSITORY / "src", REPOSITORY)))
        return {"PYTHONPATH": path, "TEST_WALL_CLOCK": str(self._folder / name)}

    def jump(self, name: str, seconds: int) -> None:
        """So far off from now on; 0: right again. The file is exchanged as a whole, so nobody reads half of it."""
        draft = self._folder / f"{name}.draft"
        draft.write_text(str(seconds))
        draft.replace(self._folder / name)
