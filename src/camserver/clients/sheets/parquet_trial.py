"""Reads a Parquet file once in a process of its own, which may take little memory: what it unpacks to stands nowhere.

A file of two kilobytes can hold gigabytes: one text that thousands of rows share, a page that is packed well, a list
of any length in one row. The library can't be told how much it may take, and ends the process where there is no more.
So it does that here first; what it got through here is read with as many rows at a time as were read here.

Run as a program it is that other process, and knows nothing of the rest of camserver.
"""

import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Final

# Rows that are read at a time: fewer where they are long.
BATCHES: Final = (2_000, 100, 5)
# What a reading may take beyond what the library needs to begin with.
MEMORY_MAX_BYTES: Final = 256_000_000
TIME_MAX_SEC: Final = 900
# What a cell may come to beside, also an empty one: columns of scores are many, and packed to nothing.
CELL_BESIDES_BYTES: Final = 16
_TOO_MUCH, _DAMAGED = 3, 4


@dataclass(frozen=True, slots=True)
class Tried:
    batch_rows: int  # that can be read at a time
    rows: int  # as far as it was read
    comes_to_bytes: int
    row_max_bytes: int  # of one row, taken over the rows that are read together
    is_whole: bool  # false: there are more rows than allowed, or they come to more


def try_reading(path: Path, rows_max: int, bytes_max: int) -> Tried | None:
    """How the file can be read; None where it takes too much memory or time however it is read."""
    for batch_rows in BATCHES:
        tried = _tried(path, batch_rows, rows_max, bytes_max)
        if tried is not None:
            return tried
    return None


def _tried(path: Path, batch_rows: int, rows_max: int, bytes_max: int) -> Tried | None:
    limits = (batch_rows, rows_max, bytes_max, MEMORY_MAX_BYTES, TIME_MAX_SEC)
    command = [sys.executable, "-I", __file__, str(path), *map(str, limits)]
    with Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as child:
        try:
            said, _ = child.communicate(timeout=TIME_MAX_SEC)
        except TimeoutExpired:
            child.kill()
            return None
        except BaseException:
            child.kill()
            raise
    if child.returncode == _DAMAGED:
        return Tried(batch_rows, 0, 0, 0, True)  # whoever reads it is told what is wrong with it
    return None if child.returncode else Tried(batch_rows, *json.loads(said))


def _read(path: str, batch_rows: int, rows_max: int, bytes_max: int, memory_bytes: int, time_sec: int) -> int:
    from arro3.io import read_parquet

    _limit(memory_bytes, time_sec)
    rows = comes_to_bytes = row_max_bytes = 0
    is_whole = True
    try:
        for batch in read_parquet(path, batch_size=batch_rows):
            rows += batch.num_rows
            comes_to_bytes += batch.nbytes
            row_max_bytes = max(row_max_bytes, batch.nbytes // max(batch.num_rows, 1))
            besides_bytes = CELL_BESIDES_BYTES * batch.num_columns * rows
            is_whole = rows <= rows_max and comes_to_bytes <= bytes_max + besides_bytes
            if not is_whole:
                break
    except MemoryError:
        return _TOO_MUCH
    except BaseException:  # the library panics with something that is no Exception
        return _DAMAGED
    sys.stdout.write(json.dumps([rows, comes_to_bytes, row_max_bytes, is_whole]))
    return 0


def _limit(memory_bytes: int, time_sec: int) -> None:
    with open("/proc/self/status", encoding="ascii") as status:
        held_bytes = 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (time_sec, time_sec))
    resource.setrlimit(resource.RLIMIT_DATA, (held_bytes + memory_bytes, held_bytes + memory_bytes))


if __name__ == "__main__":
    sys.exit(_read(sys.argv[1], *map(int, sys.argv[2:])))
