"""Answers that were paid for and are not in the journal yet, where a killed process leaves them for the next one.

A transaction waits for the disk, so many results share one, and meanwhile a kill would lose them. A line in a file
costs a hundredth of that and outlives the process; only a machine that loses its power takes it along.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import orjson

from camserver.base import scratch
from camserver.base.log import get_logger
from camserver.domain.scoring import Source
from camserver.store.scoring_journal import Entry, Kept, Result, Spent

log = get_logger(__name__)

_FILE = "answers"
# What is durable meanwhile is dropped once there is so much of it.
SIZE_MAX = 1_000_000
# What a run left that nobody went on with is of no use after so long.
LEFT_MAX_DAYS = 30
# Of how many runs at once it is asked whether they are there still.
RUNS_MAX = 500


def aside_in(data_dir: Path) -> Path:
    return data_dir / "scoring-answers"


class Spool:
    """Of one process and one run."""

    def __init__(self, folder: Path, run_uuid: str, token: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._held = scratch.Scratch(folder / f"{run_uuid}.{token}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._file: int | None = os.open(self._held.path / _FILE, flags, 0o600)
        self._size = 0

    def add(self, entries: Iterable[Entry]) -> None:
        if self._file is None:
            return
        lines = b"".join(map(_line, entries))
        try:
            self._size += os.write(self._file, lines)
        except OSError as error:
            # The journal will say what is wrong with the disk; until then there is only less between it and a kill.
            log.warning("answers can't be kept aside", cause=str(error))
            self._close_file()

    def settled(self, waiting: Iterable[Entry]) -> None:
        """Everything is durable but what waits."""
        left = list(waiting)
        if self._file is None or not self._size or (left and self._size < SIZE_MAX):
            return
        os.ftruncate(self._file, 0)
        self._size = 0
        if left:
            self.add(left)

    def close(self) -> None:
        """Everything is durable."""
        self._close_file()
        self._held.remove()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def left_by(folder: Path, run_uuid: str) -> list[Entry]:
    """What killed processes of a run left; some of it may be durable."""
    found: list[Entry] = []
    for path in scratch.left_in(folder, f"{run_uuid}.*"):
        with contextlib.suppress(FileNotFoundError):  # it was killed before there was any
            found += filter(None, map(_entry, (path / _FILE).read_bytes().split(b"\n")))
    return found


def sweep(folder: Path, run_uuid: str, now_ms: int) -> None:
    """Removes what killed processes of this run left, and what is too old to be gone on with."""
    scratch.sweep(folder, f"{run_uuid}.*")
    old_ms = now_ms - LEFT_MAX_DAYS * 86_400_000
    for path in scratch.left_in(folder, "*"):
        with contextlib.suppress(FileNotFoundError):  # another one was quicker
            if path.stat().st_mtime * 1000 < old_ms:
                scratch.sweep(folder, path.name)


def runs_in(folder: Path) -> tuple[str, ...]:
    """The runs of which something is here, a page of them. Whether a process works on one is not looked at: that
    takes its lock for a moment, in which another one that begins with the run would not find what was left."""
    return tuple(sorted({path.name.partition(".")[0] for path in folder.glob("*.*")})[:RUNS_MAX])


def forget(folder: Path, run_uuids: Iterable[str]) -> None:
    """Removes what killed processes of these runs left."""
    for run_uuid in run_uuids:
        scratch.sweep(folder, f"{run_uuid}.*")


def _line(entry: Entry) -> bytes:
    results, kept, spent = entry
    # The library takes no named tuples for lists.
    plain = [[tuple(one) for one in results], [tuple(one) for one in kept], tuple(spent)]
    return orjson.dumps(plain, option=orjson.OPT_APPEND_NEWLINE)


def _entry(line: bytes) -> Entry | None:
    """None: the line is empty, or was cut off with the disk full."""
    try:
        results, kept, spent = orjson.loads(line)
        return Entry(
            tuple([_result(*one) for one in results]),
            tuple([Kept(key, tuple(scores), model) for key, scores, model in kept]),
            Spent(*spent),
        )
    except (ValueError, TypeError, IndexError):
        return None


def _result(
    chunk: int,
    row: int,
    first_category: int,
    identity: str,
    scores: list[float] | None,
    question_key: str,
    model: str | None,
    source: str,
    note: str | None,
) -> Result:
    given = None if scores is None else tuple(scores)
    return Result(chunk, row, first_category, identity, given, question_key, model, Source(source), note)
