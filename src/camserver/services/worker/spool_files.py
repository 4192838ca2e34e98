"""The spool on disk: one plain file a look, complete or not there at all, whatever is killed when.

    looks/    waiting for the server, named {captured_at}_{generation}_{seq}_{q|p}_{camera_id}.look
    refused/  refused by the server for good, or unreadable; bounded, the oldest go first
    .lock     held by the running worker

A file is an upload's body (wire.looks) between a mark and a CRC-32. It is written under another name, made durable,
then renamed, and the rename is made durable too; only then `write` returns. This module knows files, not what is
worth keeping; it blocks, so it is used from a thread.
"""

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from camserver.base import folders
from camserver.base.errors import BadInput, DataOwned, DataUnusable
from camserver.base.log import get_logger
from camserver.wire.looks import LookUpload, pack, unpack

log = get_logger(__name__)

MARK = b"CAMLOOK1"
CRC_BYTES = 4
DRAFT_SUFFIX = ".tmp"
LOOK_SUFFIX = ".look"
# Room on disk is given in blocks; many small files take more than the sum of their bytes.
BLOCK_BYTES = 4096
SET_ASIDE_FILES_MAX = 200
SET_ASIDE_BYTES_MAX = 50_000_000


@dataclass(frozen=True, slots=True, order=True)
class LookName:
    """What a file's name says; sorts by age."""

    captured_at: int  # as estimated when it was written
    camera_id: str
    generation: int
    seq: int
    quiet: bool  # nothing happened on it: the first to go when there is no room

    @property
    def file_name(self) -> str:
        kind = "q" if self.quiet else "p"
        return f"{self.captured_at:015d}_{self.generation}_{self.seq}_{kind}_{self.camera_id}{LOOK_SUFFIX}"

    @classmethod
    def parse(cls, file_name: str) -> "LookName | None":
        """None when no worker wrote a file of this name."""
        parts = file_name.removesuffix(LOOK_SUFFIX).split("_", 4)
        if not file_name.endswith(LOOK_SUFFIX) or len(parts) != 5:
            return None
        captured_at, generation, seq, kind, camera_id = parts
        numbers = (captured_at, generation, seq)
        if not all(n.isascii() and n.isdecimal() and len(n) < 20 for n in numbers) or kind not in ("q", "p"):
            return None
        name = cls(int(captured_at), camera_id, int(generation), int(seq), kind == "q")
        return name if name.file_name == file_name else None

    @classmethod
    def of(cls, look: LookUpload) -> "LookName":
        header = look.header
        quiet = header.verdict == "skip"
        return cls(header.captured_at, header.camera_id, header.generation, header.seq, quiet)


@dataclass(frozen=True, slots=True)
class FoundFile:
    name: LookName
    size_bytes: int


class SpoolFiles:
    """The folder of one worker process. `open` first."""

    def __init__(self, folder: Path) -> None:
        self._looks = folder / "looks"
        self._aside = folder / "refused"
        self._lock_path = folder / ".lock"
        self._lock_fd = -1
        self._looks_fd = -1

    def open(self) -> list[FoundFile]:
        """Takes the folder, clears half-written files away and lists the looks in it.

        A file that no worker wrote is set aside: what we don't know we neither send nor delete.
        """
        try:
            for folder in (self._looks, self._aside):
                make_durable_folder(folder)
            self._lock()
            self._looks_fd = os.open(self._looks, os.O_RDONLY | os.O_DIRECTORY)
            return self._scan()
        except OSError as error:
            raise DataUnusable(
                f"the spool folder {self._looks.parent} can't be used: {error.strerror}; "
                "check worker.spool_dir, its permissions and the disk"
            ) from error

    def close(self) -> None:
        for fd in (self._looks_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._looks_fd = self._lock_fd = -1

    def write(self, look: LookUpload, free_floor_bytes: int = 0) -> FoundFile | None:
        """Makes a look durable. None when it would leave less free than the floor, or when the disk is full or fails:
        then no part of the look is there."""
        name = LookName.of(look)
        data = encode(look)
        if free_floor_bytes and self.free_bytes() - on_disk_bytes(len(data)) < free_floor_bytes:
            return None
        path = self._looks / name.file_name
        draft = path.with_name(path.name + DRAFT_SUFFIX)
        try:
            _write_durably(draft, data)
            draft.rename(path)
            os.fsync(self._looks_fd)
        except OSError as error:
            for left in (draft, path):
                with contextlib.suppress(OSError):
                    left.unlink()
            log.error("look not spooled: check the disk", file=path.name, cause=error.strerror)
            return None
        return FoundFile(name, on_disk_bytes(len(data)))

    def read(self, name: LookName) -> LookUpload:
        """BadInput when the file is not what was written, or not there."""
        path = self._looks / name.file_name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadInput(f"spooled look {path.name} can't be read: {error.strerror}") from error
        look = decode(data)
        if LookName.of(look) != name:
            raise BadInput(f"spooled look {path.name} holds another look than its name says")
        return look

    def remove(self, name: LookName) -> None:
        """Not made durable: a look that comes back is sent again, and the server knows it already."""
        path = self._looks / name.file_name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.error("look can't be deleted: check the disk", file=path.name, cause=error.strerror)

    def remove_all(self, names: Iterable[LookName]) -> None:
        for name in names:
            self.remove(name)

    def set_aside(self, name: LookName) -> None:
        """Keeps the file for a person to look at; where even that fails, it goes, because it must not come back."""
        path = self._looks / name.file_name
        try:
            os.replace(path, self._aside / name.file_name)
            self._trim_aside()
        except FileNotFoundError:
            log.warning("look to be set aside is not there", file=path.name)
        except OSError as error:
            log.error("look can't be set aside and is deleted", file=path.name, cause=error.strerror)
            path.unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """What is left on the disk for an ordinary user; nothing on one that does not answer."""
        try:
            room = os.statvfs(self._looks)
        except OSError as error:
            log.error("the spool's disk can't be asked for its room", cause=error.strerror)
            return 0
        return room.f_bavail * room.f_frsize

    def _lock(self) -> None:
        self._lock_fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_fd)
            self._lock_fd = -1
            raise DataOwned(
                f"another worker uses the spool folder {self._lock_path.parent}; "
                "stop it or give this worker its own worker.spool_dir"
            ) from None

    def _scan(self) -> list[FoundFile]:
        found = []
        with os.scandir(self._looks) as entries:
            for entry in entries:
                name = LookName.parse(entry.name)
                if not entry.is_file(follow_symlinks=False):
                    log.warning("not a file, but in the spool: left alone", file=entry.name)
                elif entry.name.endswith(DRAFT_SUFFIX):
                    os.unlink(entry.path)
                elif name is None:
                    log.warning("unknown file in the spool set aside", file=entry.name)
                    os.replace(entry.path, self._aside / entry.name)
                else:
                    found.append(FoundFile(name, on_disk_bytes(entry.stat().st_size)))
        self._trim_aside()
        return found

    def _trim_aside(self) -> None:
        """Keeps what was set aside within its bounds."""
        with os.scandir(self._aside) as entries:
            files = sorted(
                (
                    (entry.stat().st_mtime_ns, entry.path, entry.stat().st_size)
                    for entry in entries
                    if entry.is_file(follow_symlinks=False)
                ),
                reverse=True,
            )
        total_bytes = 0
        for number, (_, path, size_bytes) in enumerate(files, start=1):
            total_bytes += size_bytes
            if number > SET_ASIDE_FILES_MAX or total_bytes > SET_ASIDE_BYTES_MAX:
                log.warning("look that was set aside deleted: too many", file=os.path.basename(path))
                os.unlink(path)


def encode(look: LookUpload) -> bytes:
    body = pack(look.header, look.infer, look.full)
    return b"".join((MARK, body, zlib.crc32(body).to_bytes(CRC_BYTES, "big")))


def decode(data: bytes) -> LookUpload:
    """BadInput for anything but what `encode` made."""
    if len(data) < len(MARK) + CRC_BYTES or not data.startswith(MARK):
        raise BadInput(f"a spooled look of {len(data)} bytes is cut off or is none")
    body = memoryview(data)[len(MARK) : -CRC_BYTES]
    if zlib.crc32(body) != int.from_bytes(data[-CRC_BYTES:], "big"):
        raise BadInput(f"a spooled look of {len(data)} bytes is cut off or damaged: its checksum is wrong")
    return unpack(body)


def on_disk_bytes(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES


def make_durable_folder(folder: Path) -> None:
    """Makes a folder, and those above it, so that a power cut does not take them away with what is in them."""
    missing = [folder, *folder.parents]
    missing = missing[: next(number for number, one in enumerate(missing) if one.exists())]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for one in reversed(missing):
        folders.sync(one.parent)


def _write_durably(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
