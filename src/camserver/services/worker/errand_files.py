"""Answers to errands on disk, until the server has them: what can't be made a second time survives kill -9.

One file an answer in {spool}/errands, named {expires_at}_{errand_id}.errand, an upload's body (wire.errands) followed
by its CRC-32. Written under another name, made durable, renamed. Bounded in files and bytes: the oldest go first; and
by the floor of free space that looks leave as well. It blocks, so it is used from a thread.
"""

import errno
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from camserver.base import folders
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.wire.errands import unpack

log = get_logger(__name__)

SUFFIX = ".errand"
DRAFT_SUFFIX = ".tmp"
CRC_BYTES = 4
FILES_MAX = 64
BYTES_MAX = 512_000_000


@dataclass(frozen=True, slots=True, order=True)
class AnswerName:
    """What a file's name says; sorts by the time when nobody waits for it any more."""

    expires_at: int  # by the server's time
    errand_id: str

    @property
    def file_name(self) -> str:
        return f"{self.expires_at:015d}_{self.errand_id}{SUFFIX}"

    @classmethod
    def parse(cls, file_name: str) -> "AnswerName | None":
        expires_at, _, errand_id = file_name.removesuffix(SUFFIX).partition("_")
        if not file_name.endswith(SUFFIX) or not expires_at.isascii() or not expires_at.isdecimal() or not errand_id:
            return None
        name = cls(int(expires_at), errand_id)
        return name if name.file_name == file_name else None


class ErrandFiles:
    def __init__(
        self, folder: Path, files_max: int = FILES_MAX, bytes_max: int = BYTES_MAX, free_floor_bytes: int = 0
    ) -> None:
        self._folder = folder
        self._free_floor_bytes = free_floor_bytes
        self._files_max = files_max
        self._bytes_max = bytes_max

    def open(self) -> tuple[AnswerName, ...]:
        """Makes the folder and names what a process before left in it."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self._folder.iterdir():
            if path.name.endswith(DRAFT_SUFFIX):
                path.unlink(missing_ok=True)
        return self._names()

    def write(self, name: AnswerName, body: bytes) -> None:
        """Makes an answer durable. OSError when there is no room for it."""
        self._make_room(len(body))
        if self._free_bytes() - len(body) < self._free_floor_bytes:
            raise OSError(errno.ENOSPC, "less would be free on the disk than is left for others")
        path = self._folder / name.file_name
        draft = path.with_name(path.name + DRAFT_SUFFIX)
        try:
            # What a camera saw is nobody else's business on this machine.
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(body)
                file.write(zlib.crc32(body).to_bytes(CRC_BYTES, "big"))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            folders.sync(self._folder)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def read(self, name: AnswerName) -> bytes | None:
        """The body; None when it is gone or damaged, and then the file is gone too."""
        try:
            data = (self._folder / name.file_name).read_bytes()
        except FileNotFoundError:
            return None
        body, crc = data[:-CRC_BYTES], data[-CRC_BYTES:]
        try:
            if zlib.crc32(body).to_bytes(CRC_BYTES, "big") != crc:
                raise BadInput("its checksum is wrong")
            unpack(body)
        except BadInput as error:
            log.error("an answer to an errand is damaged and dropped", errand_id=name.errand_id, cause=error.message)
            self.remove(name)
            return None
        return body

    def remove(self, name: AnswerName) -> None:
        (self._folder / name.file_name).unlink(missing_ok=True)

    def _names(self) -> tuple[AnswerName, ...]:
        found = (AnswerName.parse(path.name) for path in self._folder.iterdir())
        return tuple(sorted(name for name in found if name is not None))

    def _size_bytes(self, name: AnswerName) -> int:
        """Nothing for one that was sent and removed meanwhile, by another thread."""
        try:
            return (self._folder / name.file_name).stat().st_size
        except FileNotFoundError:
            return 0

    def _free_bytes(self) -> int:
        """For an ordinary user."""
        room = os.statvfs(self._folder)
        return room.f_bavail * room.f_frsize

    def _make_room(self, size_bytes: int) -> None:
        names = list(self._names())
        sizes = {name: self._size_bytes(name) for name in names}
        while names and (len(names) >= self._files_max or sum(sizes.values()) + size_bytes > self._bytes_max):
            oldest = names.pop(0)
            del sizes[oldest]
            log.warning("no room for answers to errands: the oldest is dropped", errand_id=oldest.errand_id)
            self.remove(oldest)
