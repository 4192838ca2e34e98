"""Folders: whether one can be worked in, found out before it is relied on; names that outlive a power cut."""

import errno
import glob
import os
import shutil
import tempfile
import time
from pathlib import Path

from camserver.base.errors import DataUnusable

# Enough for the database to start and to say clearly that the disk is full, instead of failing half-way.
FREE_MIN_BYTES = 50_000_000
# Ends the names of files that are being written; one that a crash left is of no use to anybody.
DRAFT = ".draft"
_DRAFT_AGE_SEC_MAX = 86_400


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
        raise DataUnusable(f"the data folder {folder} {cause_of(error)}; {choose}") from error
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


def write_whole(path: Path, content: bytes) -> None:
    """The file appears whole or not at all, when the power fails too, and when somebody else writes it meanwhile."""
    sweep_drafts(path)
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", suffix=DRAFT, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync(path.parent)


def sweep_drafts(path: Path) -> None:
    """Removes what writers left that were killed; one that writes now is younger."""
    for left in path.parent.glob(f".{glob.escape(path.name)}-*{DRAFT}"):
        try:
            if time.time() - left.stat().st_mtime > _DRAFT_AGE_SEC_MAX:
                left.unlink()
        except FileNotFoundError:
            continue  # somebody else swept, or was done with it


def cause_of(error: OSError) -> str:
    """What is wrong with a folder, to be said after its name."""
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
