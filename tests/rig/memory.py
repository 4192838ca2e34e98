"""Where tests put what need not survive a power cut: in memory, where a sync costs nothing.

What a killed process wrote is as safe there as on a disk, so it is also the place of most tests of kill -9. Those
that show how long something takes in earnest, and the servers that are run as in earnest, stay on the disk.
"""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
# Plenty, because several tests fill their folders at the same time; containers often give 64 MB.
ROOM_MIN_BYTES = 6 * 2**30


def quick_folder() -> Path:
    """Memory where there is plenty and programs may be run from it, otherwise the usual folder for such things."""
    usual = Path(tempfile.gettempdir())
    if os.environ.get("TMPDIR"):
        return usual  # somebody chose
    return MEMORY if _has_room(MEMORY) and _available_bytes() >= ROOM_MIN_BYTES else usual


def _has_room(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    can_run = not found.f_flag & os.ST_NOEXEC
    return can_run and os.access(folder, os.W_OK) and found.f_bavail * found.f_frsize >= ROOM_MIN_BYTES


def _available_bytes() -> int:
    """What programs could still take; 0 where the kernel does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
