"""Memory of the C library: tried in a process of its own, since it is for a process's whole life."""

import platform
import subprocess
import sys

import pytest

# Takes and frees 8 MB again and again; each time the system makes the pages anew, it counts as faults.
PROGRAM = """
import ctypes, resource, sys
from camserver.base.memory import keep_freed
if sys.argv[1] == "kept":
    assert keep_freed()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
# Without it the C library learns by itself, for one size.
sizes = [8_000_000 + 400_000 * number for number in range(20)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for size in sizes * 2:
    place = libc.malloc(size)
    ctypes.memset(place, 1, size)
    libc.free(place)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the switch")
def test_freed_memory_is_used_again() -> None:
    assert faults("kept") < faults("usual") / 2
