"""Scores that wait for their file to be written anew, on disk: between two flushes there can be very many."""

import mmap
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from camserver.base.errors import Bug
from camserver.domain.sheet_rows import RowScores

Records = npt.NDArray[np.void]


class Staging:
    """Records of one size, in the order they came; no score is not-a-number. Threads may add at any time."""

    def __init__(self, block_size: int, folder: Path | None) -> None:
        self._kind = np.dtype(
            [
                ("row", "<u4"),
                ("first_category", "<u2"),
                ("count", "<u2"),
                ("identity", "V16"),
                ("scores", "<f4", (block_size,)),
            ]
        )
        self._block_size = block_size
        # Closed by `close`, or with the object where a run was given up before.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self.count = 0

    def add(self, scores: Sequence[RowScores]) -> None:
        if not all(0 < len(one.scores) <= self._block_size for one in scores):
            raise Bug(f"more scores, or none, in a block of {self._block_size}")
        # By column: one record after the other takes ten times as long.
        records = np.zeros(len(scores), self._kind)
        records["row"] = [one.row for one in scores]
        records["first_category"] = [one.first_category for one in scores]
        records["count"] = [len(one.scores) for one in scores]
        records["identity"] = np.frombuffer(bytes.fromhex("".join(one.identity for one in scores)), "V16")
        rest = (0.0,) * self._block_size
        # None becomes not-a-number.
        rows = [(*one.scores, *rest[len(one.scores) :]) for one in scores]
        records["scores"] = np.array(rows, np.float32).reshape(len(rows), self._block_size)
        with self._lock:
            self._file.write(records.tobytes())
            self.count += len(scores)

    def load(self) -> Records:
        """All of them; pages are read from the disk as they are looked at. Not to be used after `drop`."""
        with self._lock:
            self._file.flush()
            if not self.count:
                return np.zeros(0, self._kind)
            return np.memmap(self._file, self._kind, "r", shape=(self.count,))

    def drop(self, count: int) -> None:
        """Forgets the oldest ones."""
        with self._lock:
            self._file.seek(count * self._kind.itemsize)
            kept = self._file.read()
            self._file.seek(0)
            self._file.write(kept)
            self._file.truncate()
            self.count -= count

    def close(self) -> None:
        self._file.close()


def let_go(records: Records) -> None:
    """What was looked at of them leaves memory; it is read again when it is looked at again."""
    held: object = records.base
    if isinstance(held, mmap.mmap):
        held.madvise(mmap.MADV_DONTNEED)


def scores_of(records: Records) -> list[RowScores]:
    """The records as what they stand for; many at once, since one at a time takes long."""
    data = np.asarray(records)
    names = data["identity"].tobytes().hex()
    given = np.round(data["scores"].astype(np.float64), 4).tolist()
    counts = data["count"].tolist()
    all_of = _with_gaps if np.isnan(data["scores"]).any() else tuple
    return [
        RowScores(row, names[32 * index : 32 * index + 32], first, all_of(scores[:count]))
        for index, (row, first, count, scores) in enumerate(
            zip(data["row"].tolist(), data["first_category"].tolist(), counts, given, strict=True)
        )
    ]


def _with_gaps(scores: Sequence[float]) -> tuple[float | None, ...]:
    return tuple(one if one == one else None for one in scores)  # not-a-number is no number, not even itself
