"""What a backup is made of, and where it lies: a folder, or one tar file.

    manifest.json   what, when, by which version, and the hash of each file below but the objects
    objects.jsonl   a line an object: key, bytes, sha256; in the order in which they were copied
    database.…      the dump
    objects/…       pictures and clips by their keys, when they were copied

It grows in `.NAME.part` beside it, which is left only by a process that was killed, and gets its name last. In a tar
the manifest comes last, so one without it was not finished. Nothing here knows of databases, and nothing is held in
memory but one object.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from camserver.base import folders, scratch
from camserver.base.errors import BadInput, CheckFailed, DataUnusable
from camserver.objects.keys import check_key

FORMAT = "camserver-backup/1"
MANIFEST, OBJECT_LIST, OBJECTS = "manifest.json", "objects.jsonl", "objects/"
CHUNK_BYTES = 1_048_576
MANIFEST_MAX_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """One object of a backup."""

    key: str
    bytes: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    format: str
    version: str  # of camserver
    taken_at: int
    dialect: str
    schema: str
    database: str  # the dump's name
    objects: str  # copy, or reference: they stay where they are
    objects_where: str
    object_count: int = 0
    object_bytes: int = 0
    # Named by rows and not there any more when they were to be copied.
    objects_gone: list[str] = field(default_factory=list)
    objects_gone_count: int = 0
    # Secret files by name, with a hash by which the right one is known again. They are not in here.
    secrets: dict[str, str] = field(default_factory=dict)
    # By name: bytes and hash.
    files: dict[str, tuple[int, str]] = field(default_factory=dict)

    def written(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2).encode() + b"\n"

    @classmethod
    def read(cls, data: bytes, where: Path) -> "Manifest":
        try:
            found = json.loads(data)
            if found.get("format") != FORMAT:
                raise BadInput(f"{where} is no backup that this camserver knows (format {found.get('format')!r})")
            manifest = cls(**found)
            manifest.files = {name: (int(one[0]), str(one[1])) for name, one in manifest.files.items()}
            if PurePosixPath(manifest.database).name != manifest.database or manifest.database not in manifest.files:
                raise BadInput(f"the manifest in {where} names no dump")
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise BadInput(f"the manifest in {where} can't be read ({type(error).__name__})") from error
        return manifest


class Writing(Protocol):
    """A backup that grows."""

    @property
    def scratch(self) -> Path:
        """A folder for what is on its way into it."""

    def add_file(self, name: str, path: Path) -> None:
        """Moves or copies a file into it."""

    def add(self, name: str, data: bytes) -> None: ...

    def finish(self) -> None:
        """Makes it durable, and visible under its name."""

    def give_up(self) -> None:
        """Removes what was begun."""


class FolderWriting:
    def __init__(self, target: Path) -> None:
        self._target = target
        self._place = _place_of(target)
        self._draft = self._place.path / "whole"
        self._draft.mkdir(mode=0o700)

    @property
    def scratch(self) -> Path:
        return self._place.path

    def add_file(self, name: str, path: Path) -> None:
        with path.open("rb") as file, self._open(name) as to:
            while chunk := file.read(CHUNK_BYTES):
                to.write(chunk)
            to.flush()
            os.fsync(to.fileno())

    def add(self, name: str, data: bytes) -> None:
        with self._open(name) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _open(self, name: str) -> io.BufferedWriter:
        path = self._draft.joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")

    def finish(self) -> None:
        for folder, _, _ in os.walk(self._draft):
            folders.sync(Path(folder))
        self._draft.rename(self._target)
        folders.sync(self._target.parent)
        self._place.remove()

    def give_up(self) -> None:
        self._place.remove()


class TarWriting:
    def __init__(self, target: Path) -> None:
        self._target = target
        self._place = _place_of(target)
        self._draft = self._place.path / "whole.tar"
        self._file = os.fdopen(os.open(self._draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - `finish` does

    @property
    def scratch(self) -> Path:
        return self._place.path

    def add_file(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            self._put(name, path.stat().st_size, file)

    def add(self, name: str, data: bytes) -> None:
        self._put(name, len(data), io.BytesIO(data))

    def _put(self, name: str, size: int, file: BinaryIO) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        self._tar.addfile(member, file)
        _forget_members(self._tar)

    def finish(self) -> None:
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._draft.rename(self._target)
        folders.sync(self._target.parent)
        self._place.remove()

    def give_up(self) -> None:
        self._place.remove()
        with suppress(OSError):  # what it still held has no room either
            self._file.close()


def _forget_members(tar: tarfile.TarFile) -> None:
    """It would remember every one, and there may be millions."""
    tar.members.clear()  # type: ignore[attr-defined]  # its types leave it out


def _place_of(target: Path) -> scratch.Scratch:
    path = target.with_name(f".{target.name}.part")
    try:
        return scratch.Scratch(path)
    except FileExistsError:
        raise BadInput(
            f"{path} is there: another backup to {target.name} is being made, or an older camserver broke one off; "
            "wait for it, remove it, or choose another name"
        ) from None


def clear_broken(folder: Path) -> list[Path]:
    """Removes what backups into this folder left that were killed, and says which those are."""
    return scratch.sweep(folder, ".*.part")


def begin(target: Path) -> Writing:
    """A backup in a folder, or in a file when its name ends in .tar."""
    if target.exists():
        raise BadInput(f"{target} is there already; choose another name")
    if not target.parent.is_dir():
        raise DataUnusable(f"there is no folder {target.parent}; make it first")
    return TarWriting(target) if target.suffix == ".tar" else FolderWriting(target)


def members(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Every file of a backup, objects in the order of their list."""
    if source.is_dir():
        yield from _in_folder(source)
        return
    try:
        with tarfile.open(source, "r:") as tar:
            while (member := tar.next()) is not None:
                _forget_members(tar)
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    # Typed wider than it is.
                    yield member.name, file  # type: ignore[misc]
    except (tarfile.TarError, EOFError) as error:
        raise CheckFailed(f"{source} is no whole tar file ({error}); was the backup finished?") from error
    except OSError as error:
        raise DataUnusable(f"{source} can't be read: {error.strerror}") from error


def _in_folder(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    for path in sorted(source.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                yield path.name, file
    for one in listed((source / OBJECT_LIST).open("rb")) if (source / OBJECT_LIST).exists() else ():
        path = source.joinpath(OBJECTS.rstrip("/"), *one.key.split("/"))
        if path.is_file():
            with path.open("rb") as file:
                yield OBJECTS + one.key, file


def listed(file: BinaryIO) -> Iterator[Kept]:
    """The lines of an object list; it is closed at the end."""
    with file:
        for line in file:
            try:
                one = Kept(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise CheckFailed(f"the list of objects has a line that can't be read ({error})") from error
            check_key(one.key)
            yield one


def hashed(file: BinaryIO) -> tuple[int, str]:
    """Length and SHA-256 of the rest of a file."""
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def manifest_of(source: Path) -> Manifest:
    """What a backup says of itself."""
    if not source.exists():
        raise BadInput(f"there is no backup {source}")
    if source.is_dir():
        path = source / MANIFEST
        if not path.is_file():
            raise BadInput(f"{source} is no whole backup: it has no {MANIFEST}")
        return Manifest.read(path.read_bytes()[:MANIFEST_MAX_BYTES], source)
    for name, file in members(source):
        if name == MANIFEST:
            return Manifest.read(file.read(MANIFEST_MAX_BYTES), source)
    raise BadInput(f"{source} is no whole backup: it has no {MANIFEST}")
