"""Folders for work that takes long and may be killed, beside what it makes.

Each is held by a lock for as long as its process lives. So one that a killed process left is known from one that is
worked in, also by another machine on a shared disk; where a file system has no locks, none is taken for left.
"""

import fcntl
import os
import shutil
from pathlib import Path

_LOCK = ".held"


class Scratch:
    """A new folder that is this process's own, and gone at the end."""

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        self.path = path
        # Locked before it gets its name: nobody finds it free meanwhile.
        draft = path / f"{_LOCK}.draft"
        self._lock = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        _try_lock(self._lock)
        draft.rename(path / _LOCK)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def left_in(parent: Path, pattern: str) -> list[Path]:
    """Those that nobody works in any more."""
    return [path for path in sorted(parent.glob(pattern)) if _is_left(path, remove=False)]


def sweep(parent: Path, pattern: str) -> list[Path]:
    """Removes them, and says which."""
    return [path for path in sorted(parent.glob(pattern)) if _is_left(path, remove=True)]


def _is_left(path: Path, *, remove: bool) -> bool:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR)
    except OSError:
        return False  # none of ours, of another user, or gone meanwhile
    try:
        if not _try_lock(lock):
            return False
        if remove:
            shutil.rmtree(path)
        return True
    finally:
        os.close(lock)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # somebody holds it, or this file system has no locks
    return True
