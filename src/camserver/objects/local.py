"""Objects as files under one folder.

`put` returns when the bytes and their name are on disk: written beside, synced, renamed, folder synced. A reader
sees a whole object or none.
"""

import asyncio
import contextlib
import errno
import io
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from camserver.base import folders
from camserver.base.errors import BadInput, NotFound, Unavailable
from camserver.base.lean_threads import LeanThreads
from camserver.objects.interface import Keys as Keys
from camserver.objects.interface import Objects as Objects
from camserver.objects.interface import Pictures as Pictures
from camserver.objects.keys import DRAFT_MARK, check_key, check_prefix, check_range

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8
READERS = 4
# A folder may vanish, when the last object in it is deleted, between its making and the first write into it.
FOLDER_ATTEMPTS_MAX = 5


class LocalObjects:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"
        root.mkdir(parents=True, exist_ok=True)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="objects")
        self._readers = LeanThreads(READERS, "objects-reader")

    async def put(self, key: str, data: bytes) -> None:
        await self._run(self._put, key, data)

    async def get(self, key: str) -> bytes:
        return await self._readers.run(partial(self._read, key, 0, None))

    async def get_each(self, keys: Sequence[str]) -> Pictures:
        return await self._run(self._get_each, keys) if keys else []

    async def get_range(self, key: str, begin: int, length: int) -> bytes:
        return await self._readers.run(partial(self._get_range, key, begin, length))

    async def size_bytes(self, key: str) -> int | None:
        return await self._run(self._size_bytes, key)

    async def delete(self, key: str) -> None:
        await self._run(self._delete, key)

    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        return await self._run(self._list, prefix, limit, after)

    async def free_bytes(self) -> int | None:
        status = await self._run(os.statvfs, self.root)
        return status.f_bavail * status.f_frsize

    async def _run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        call = partial(work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _path(self, key: str) -> Path:
        check_key(key)
        return self.root.joinpath(*key.split("/"))

    def _put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        draft = path.with_name(f"{path.name}{DRAFT_MARK}{secrets.token_hex(4)}")
        try:
            with self._open_draft(draft) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            folders.sync(path.parent)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise _unavailable(self.root, error) from error

    def _open_draft(self, draft: Path) -> BinaryIO:
        for _ in range(FOLDER_ATTEMPTS_MAX - 1):
            with contextlib.suppress(FileNotFoundError):
                self._make_folder(draft.parent)
                return draft.open("xb")
        self._make_folder(draft.parent)
        return draft.open("xb")

    def _make_folder(self, folder: Path) -> None:
        """Makes a folder and syncs each parent that gained an entry, so that the name survives a power cut."""
        if folder.is_dir():
            return
        missing = [folder, *(p for p in folder.parents if not p.is_dir() and p.is_relative_to(self.root))]
        folder.mkdir(parents=True, exist_ok=True)
        for made in missing:
            folders.sync(made.parent)

    def _get_each(self, keys: Sequence[str]) -> Pictures:
        found: Pictures = []
        for key in keys:
            try:
                found.append(self._read(key, 0, None))
            except (NotFound, Unavailable, BadInput):
                found.append(None)
        return found

    def _get_range(self, key: str, begin: int, length: int) -> bytes:
        check_range(begin, length)
        return self._read(key, begin, length)

    def _read(self, key: str, begin: int, length: int | None) -> bytes:
        """`length` None: to the end. Without a buffer and a path object, which take longer than the file."""
        check_key(key)
        try:
            with open(f"{self._prefix}{key}", "rb", buffering=0) as file:
                return _whole(file, begin, length)
        except FileNotFoundError:
            raise NotFound(f"there is no object {key}") from None
        except OSError as error:
            raise _unavailable(self.root, error) from error

    def _size_bytes(self, key: str) -> int | None:
        try:
            return self._path(key).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable(self.root, error) from error

    def _delete(self, key: str) -> None:
        path = self._path(key)
        try:
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self.root or not _remove_if_empty(folder):
                    return
        except OSError as error:
            raise _unavailable(self.root, error) from error

    def _list(self, prefix: str, limit: int, after: str) -> Keys:
        check_prefix(prefix)
        return list(islice(_walk(self.root, prefix, after), limit))


def _whole(file: io.FileIO, begin: int, length: int | None) -> bytes:
    """A read may give less than there is, so it goes on until there is nothing more."""
    if begin:
        file.seek(begin)
    if length is None:
        return file.readall()
    parts: list[bytes] = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _walk(root: Path, folder_key: str, after: str) -> Iterator[str]:
    """Keys below a folder that sort after `after`, in order; drafts of unfinished writes too.

    A folder whose keys all come before is not opened, so listing page by page reads each folder about once.
    """
    try:
        with os.scandir(root / folder_key) as scan:
            found = [(folder_key + entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unavailable(root, error) from error
    for key in sorted(key + "/" if is_folder else key for key, is_folder in found):
        if key.endswith("/"):
            if key > after or after.startswith(key):
                yield from _walk(root, key, after)
        elif key > after:
            yield key


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            return error.errno == errno.ENOENT
        raise
    return True


def _unavailable(root: Path, error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(f"no space left for pictures in {root}; free space there, then storing goes on by itself")
    return Unavailable(f"pictures can't be stored or read in {root} ({error.strerror}); check the folder")
