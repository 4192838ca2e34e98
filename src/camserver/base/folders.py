"""Folders: whether one can be worked in, found out before it is relied on; names that outlive a power cut."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

from camserver.base.errors import DataUnusable

# Enough for the database to start and to say clearly that the disk is full, instead of failing half-way.
FREE_MIN_BYTES = 50_000_000


def make_usable(folder: Path, setting: str) -> None:
    """Makes the folder if need be, writes to it once and looks at the room left; DataUnusable says what is wrong."""
    choose = f"choose another folder with {setting} in camserver.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(b"camserver")
            probe.flush()
            os.fsync(probe.fileno())
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise DataUnusable(f"the data folder {folder} {_cause(error)}; {choose}") from error
    if free_bytes < FREE_MIN_BYTES:
        raise DataUnusable(
            f"the data folder {folder} has {free_bytes // 1_000_000} MB of free disk space, and camserver needs at "
            f"least {FREE_MIN_BYTES // 1_000_000} MB to start; free some, or {choose}"
        )


def sync(folder: Path) -> None:
    """Makes the names in a folder durable: of files that were made, renamed or removed there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cause(error: OSError) -> str:
    match error.errno:
        case errno.EROFS:
            return "is on a read-only disk"
        case errno.EACCES | errno.EPERM:
            return "may not be written by this user"
        case errno.ENOSPC | errno.EDQUOT:
            return "has no free disk space"
        case errno.EEXIST | errno.ENOTDIR:
            return "is not a folder"
        case _:
            return f"can't be used ({error.strerror})"
