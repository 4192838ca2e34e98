"""How many different rows a file has, counted in memory that does not grow with it: their hashes are on disk."""

import tempfile
import weakref
from array import array
from pathlib import Path
from typing import Final

import numpy as np

BYTES: Final = 8  # of a hash
HELD_MAX: Final = 4_096
BLOCK: Final = 65_536
# Hashes that are sorted at once: those of one part, of as many parts as that takes.
PART: Final = 131_072


class Distinct:
    def __init__(self, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._held = array("Q")
        self._total = 0

    def add(self, hashed: int) -> None:
        self._held.append(hashed)
        if len(self._held) >= HELD_MAX:
            self._write()

    def count(self) -> int:
        self._write()
        self._file.flush()
        parts = 1 + self._total // PART
        return sum(self._count_part(part, parts) for part in range(parts))

    def _write(self) -> None:
        self._file.write(self._held.tobytes())
        self._total += len(self._held)
        del self._held[:]

    def _count_part(self, part: int, parts: int) -> int:
        """Equal hashes are in the same part."""
        self._file.seek(0)
        picked = []
        while data := self._file.read(BLOCK * BYTES):
            block = np.frombuffer(data, np.uint64)
            picked.append(block[block % np.uint64(parts) == part])
        if not picked:
            return 0
        hashes = np.sort(np.concatenate(picked))
        return int(len(hashes) > 0) + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
