"""Copies of pictures in a folder: another disk, a mounted share.

Written beside, synced, renamed, folder synced, as in `objects/local.py`. A mount that is gone leaves an empty folder
behind, which would fill the wrong disk: so the archive's folder holds a mark, and without it nothing is written or
thought removed. Files may hang on a dead share: every archive has threads of its own, and waiting for them ends.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from camserver.base import folders
from camserver.base.errors import BadInput
from camserver.domain.archive import COPY_MAX_BYTES, Copy, KeepProgress, Stored, is_safe_path
from camserver.domain.deliveries import DeliveryError, Receiver, Trouble

P = ParamSpec("P")
R = TypeVar("R")

MARK: Final = ".camserver-archive"
# A share that hangs holds these; those of other archives go on.
THREADS_PER_ARCHIVE: Final = 2
TIMEOUT_SEC: Final = 60.0
FULL_PAUSE_SEC: Final = 600.0
# Away or read-only: a person has to do something, and a copy more or less is no news.
AWAY_PAUSE_SEC: Final = 60.0

# Whether an archive ever held a copy. Only one that never did is given its mark.
HeldBefore = Callable[[Receiver], Awaitable[bool]]


def check_allowed(path: str, roots: tuple[str, ...]) -> Path:
    """The archive's folder; BadInput when it is none of those that the settings allow. Links are followed first."""
    if not os.path.isabs(path) or "\0" in path:
        raise BadInput(
            f"the archive's folder must be a whole path such as /mnt/archive, not {path!r}", reason="archive_path"
        )
    real = Path(os.path.realpath(path))
    for root in roots:
        if real.is_relative_to(os.path.realpath(root)):
            return real
    allowed = ", ".join(roots) if roots else "none"
    raise BadInput(
        f"{path} is not below a folder that [archive] folders allows ({allowed}); add one in camserver.toml, or "
        "choose another path",
        reason="archive_folder",
        path=path,
        allowed=allowed,
    )


class FolderArchive:
    def __init__(self, roots: tuple[str, ...], held_before: HeldBefore) -> None:
        self._roots = roots
        self._held_before = held_before
        self._threads: dict[int, ThreadPoolExecutor] = {}

    async def store(self, receiver: Receiver, copy: Copy, keep: KeepProgress) -> Stored:
        _check_path(copy.path)
        folder = await self._usable(receiver)
        await self._run(receiver, _write, folder, copy)
        return Stored(copy.path, {"path": copy.path})

    async def read(self, receiver: Receiver, external_id: str) -> bytes | None:
        _check_path(external_id)
        return await self._run(receiver, _read, await self._allowed(receiver), external_id)

    async def remove(self, receiver: Receiver, external_id: str) -> None:
        _check_path(external_id)
        folder = await self._usable(receiver)
        await self._run(receiver, _remove, folder, external_id)

    async def close(self) -> None:
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _usable(self, receiver: Receiver) -> Path:
        """The archive's folder, with its mark in it."""
        folder = await self._allowed(receiver)
        if await self._run(receiver, _is_marked, folder):
            return folder
        if await self._held_before(receiver):
            raise DeliveryError(
                Trouble.RETRY,
                f"{folder} lacks the file {MARK}, so its disk is not there; mount it, or put the file back if this "
                "is the right disk",
                AWAY_PAUSE_SEC,
            )
        await self._run(receiver, _mark, folder, self._roots, receiver.receiver_uuid)
        return folder

    async def _allowed(self, receiver: Receiver) -> Path:
        try:
            return await self._run(receiver, check_allowed, str(receiver.config["path"]), self._roots)
        except BadInput as error:
            raise DeliveryError(Trouble.REFUSED, error.message) from None

    async def _run(self, receiver: Receiver, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        threads = self._threads.get(receiver.receiver_id)
        if threads is None:
            name = f"archive-{receiver.receiver_id}"
            threads = self._threads[receiver.receiver_id] = ThreadPoolExecutor(THREADS_PER_ARCHIVE, name)
        call = asyncio.get_running_loop().run_in_executor(threads, partial(work, *args, **kwargs))
        try:
            async with asyncio.timeout(TIMEOUT_SEC):
                return await call
        except TimeoutError:
            raise DeliveryError(
                Trouble.RETRY,
                f"{receiver.name}: its folder did not answer within {TIMEOUT_SEC:g} s; check the disk or share",
                AWAY_PAUSE_SEC,
            ) from None
        except OSError as error:
            raise _told(receiver, error) from None


def _check_path(path: str) -> None:
    if not is_safe_path(path):
        raise DeliveryError(Trouble.REFUSED, f"{path!r} is no path of a copy")


def _is_marked(folder: Path) -> bool:
    return (folder / MARK).is_file()


def _mark(folder: Path, roots: tuple[str, ...], receiver_uuid: str) -> None:
    # The root is the operator's: one that is missing is a mount that is gone, and is not made up for.
    if not any(os.path.isdir(root) and folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    _make_folder(folder)
    text = f"camserver keeps copies of pictures here, and writes only where this file is.\n{receiver_uuid}\n"
    (folder / MARK).write_text(text)
    folders.sync(folder)


def _write(folder: Path, copy: Copy) -> None:
    path = folder / copy.path
    if _holds(path, copy):
        return
    _make_folder(path.parent)
    # The same name in every attempt: what a killed one left is written over.
    draft = path.with_name(f".{copy.delivery_uuid}.draft")
    try:
        with draft.open("wb") as file:
            file.write(copy.data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folders.sync(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _holds(path: Path, copy: Copy) -> bool:
    """Whether an earlier attempt wrote it: a repeat writes nothing."""
    try:
        if path.stat().st_size != len(copy.data):
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == copy.sha256
    except FileNotFoundError:
        return False


def _read(folder: Path, path: str) -> bytes | None:
    try:
        with (folder / path).open("rb") as file:
            data = file.read(COPY_MAX_BYTES + 1)
    except FileNotFoundError:
        if _is_marked(folder):
            return None
        raise
    if len(data) > COPY_MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


def _make_folder(folder: Path) -> None:
    """Makes a folder and syncs each parent that gained an entry, so that the name survives a power cut."""
    missing = [one for one in (folder, *folder.parents) if not one.is_dir()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o750)
    for made in missing:
        folders.sync(made.parent)


def _remove(folder: Path, path: str) -> None:
    """Removes a copy, and the folders that are empty without it."""
    target = folder / path
    target.unlink(missing_ok=True)
    for parent in target.parents:
        if parent == folder:
            return
        try:
            parent.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return
            raise


def _told(receiver: Receiver, error: OSError) -> DeliveryError:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            cause, pause_sec = "has no space left; free some", FULL_PAUSE_SEC
        case errno.ENOENT:
            cause, pause_sec = "is not there; mount its disk, or make the folder that [archive] names", AWAY_PAUSE_SEC
        case errno.EROFS:
            cause, pause_sec = "is on a disk that is mounted read-only; mount it writable", AWAY_PAUSE_SEC
        case errno.EACCES | errno.EPERM:
            cause, pause_sec = (
                "may not be written by the user of camserver; change its owner",
                AWAY_PAUSE_SEC,
            )
        case _:
            cause, pause_sec = f"can't be used ({error.strerror}); check the disk or share", AWAY_PAUSE_SEC
    return DeliveryError(Trouble.RETRY, f"{receiver.name}: the folder {cause}", pause_sec)
