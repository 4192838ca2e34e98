"""A sheet's file on its disk: who has it open, whether it can be written, and putting a new one in its place."""

import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from camserver.base import folders
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Signature

_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
LOCKED_PAUSE_SEC: Final = 15.0
FULL_PAUSE_SEC: Final = 60.0


def opened_by(path: Path) -> Path | None:
    """The file that says that Excel or LibreOffice has the sheet open."""
    marks = (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#"))
    return next((mark for mark in marks if os.path.lexists(mark)), None)


def check_not_open(path: Path) -> None:
    mark = opened_by(path)
    if mark is not None:
        raise SheetError(
            SheetTrouble.LOCKED,
            f"{path.name} is open in Excel or LibreOffice; close it there, and scores are written. (When nobody has "
            f"it open, a crash left {mark.name}: remove that file.)",
            LOCKED_PAUSE_SEC,
        )


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def new_draft(path: Path) -> Path:
    """An empty file beside the sheet, to be written and put in its place."""
    folders.sweep_drafts(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=folders.DRAFT, dir=path.parent)
    os.close(handle)
    return Path(name)


def put_in_place(draft: Path, path: Path, expected: Signature) -> Signature | None:
    """Replaces the sheet by its draft, whole and durable. None when somebody wrote the sheet meanwhile."""
    shutil.copymode(path, draft)
    told = path.stat()
    if (told.st_uid, told.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
        os.chown(draft, told.st_uid, told.st_gid)
    handle = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    made = Signature.of(draft)
    check_not_open(path)
    if Signature.of(path) != expected:
        return None
    draft.replace(path)
    folders.sync(path.parent)
    return made


def trouble(path: Path, error: OSError) -> SheetError:
    """What an error of the disk means for whoever writes the sheet."""
    if isinstance(error, FileNotFoundError):
        return SheetError(SheetTrouble.GONE, f"{path} is not there; put it back, or name the right file")
    cause = error.strerror or str(error)
    if error.errno in _DENIED:
        return SheetError(
            SheetTrouble.DENIED,
            f"{path} can't be read or written: {cause}; allow it for this user, and its folder too",
        )
    if error.errno in _FULL:
        message = f"there is no room to write {path.name}: {cause}; free some space"
        return SheetError(SheetTrouble.FULL, message, FULL_PAUSE_SEC)
    return SheetError(SheetTrouble.BUSY, f"{path}: {cause}")
