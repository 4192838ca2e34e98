"""Putting a backup back: all is verified before anything is changed, and objects come before the rows that name them.

The database is told that it is of an earlier moment (store/restored.py). What was there before is kept where that is
possible: a SQLite file and replaced secrets stay beside the new ones. Killed at any moment, it leaves the database as
it was, as it shall be, or marked so that no server starts on it until the restore was made again.
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base import folders, scratch
from camserver.base.clock import StoreClock
from camserver.base.errors import BadInput, CheckFailed, Conflict, DataOwned, DataUnusable, StoreTooNew
from camserver.base.secrets import Secret
from camserver.care.backup import SECRETS_FORMAT, fingerprint, secret_files
from camserver.care.backup_files import (
    CHUNK_BYTES,
    OBJECT_LIST,
    OBJECTS,
    Kept,
    Manifest,
    hashed,
    listed,
    manifest_of,
    members,
)

if TYPE_CHECKING:
    from camserver.config import Settings

OBJECT_MAX_BYTES = 200_000_000
SCRATCH_PATTERN = ".restore-*"  # in the data folder

Told = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    source: Path
    force: bool  # over what is there
    secrets: Path | None  # a file that `camserver backup --secrets` wrote


@dataclass(frozen=True, slots=True)
class Restored:
    manifest: Manifest
    warnings: tuple[str, ...]


async def verify(source: Path, told: Told) -> Manifest:
    """Reads a whole backup and compares every hash; CheckFailed names what differs."""
    manifest = manifest_of(source)
    with _room_in(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="camserver-verify-") as place:
        await asyncio.to_thread(_verified, source, manifest, Path(place), told, keeps_dump=False)
    return manifest


@contextmanager
def _room_in(folder: Path) -> Iterator[None]:
    """Of what is read, and of objects, the errors are mapped where they come from; what is left is of this folder."""
    try:
        yield
    except OSError as error:
        place = folder if error.filename is None else error.filename
        raise DataUnusable(f"{place} {folders.cause_of(error)}; make room, then do it again") from error


async def restore(settings: "Settings", wanted: Wanted, told: Told) -> Restored:
    with _room_in(settings.server.data_dir):
        return await _restored(settings, wanted, told)


async def _restored(settings: "Settings", wanted: Wanted, told: Told) -> Restored:
    from camserver.store import owned

    manifest = manifest_of(wanted.source)
    _refuse_foreign(settings, manifest)
    url = settings.store.url.reveal()
    if not wanted.force:
        await asyncio.to_thread(_refuse_full, url)
    secrets = {} if wanted.secrets is None else read_secrets(wanted.secrets)
    warnings = _judge_secrets(settings, manifest, secrets, wanted.force)
    folders.make_usable(settings.server.data_dir, "server.data_dir")
    scratch.sweep(settings.server.data_dir, SCRATCH_PATTERN)
    with scratch.Scratch(settings.server.data_dir / f".restore-{os.urandom(8).hex()}") as place:
        await asyncio.to_thread(_verified, wanted.source, manifest, place, told)
        async with owned(url):
            await _refuse_running(url)
            _put_secrets(settings, secrets)
            if manifest.objects == "copy":
                await _put_objects(settings, wanted.source, manifest, told)
            await _load(url, place / manifest.database, manifest)
    return Restored(manifest, tuple(warnings))


def _refuse_foreign(settings: "Settings", manifest: Manifest) -> None:
    from camserver.store import migrate

    if manifest.dialect != settings.store.url.dialect:
        raise BadInput(
            f"the backup is of {manifest.dialect} and [store] url names {settings.store.url.dialect}; restore it "
            "there and use: camserver db copy"
        )
    if not migrate.knows(manifest.schema):
        raise StoreTooNew(
            f"the backup is of camserver {manifest.version} with schema {manifest.schema}, which this camserver does "
            "not know; install that version or a newer one"
        )


def _refuse_full(url: str) -> None:
    from camserver.store import emptying

    if not emptying.is_empty(url):
        raise Conflict(
            "there is a database already; stop every camserver that uses it and restore over it with --force "
            "(a SQLite file is kept beside, a server's database is emptied)"
        )


async def _refuse_running(url: str) -> None:
    """Several machines may use a server's database; whoever wrote just now does."""
    from camserver.store import emptying, migrate, open_store, restored

    if url.startswith("sqlite") or await asyncio.to_thread(emptying.is_empty, url):
        return
    if await asyncio.to_thread(emptying.is_unfinished, url):
        return  # none starts on it
    try:
        if not (await asyncio.to_thread(migrate.status, url)).up_to_date:
            return
    except StoreTooNew as error:
        # Its new tables are not known here: they would be left over, and in the way of the next upgrade.
        raise StoreTooNew(
            "the database is of a newer camserver and can't be emptied by this one; make a new, empty database, set "
            "[store] url to it and restore there"
        ) from error
    store = await open_store(url)
    try:
        seen_ms = await store.read(restored.last_seen)
        now_ms = await store.database_time_ms() or StoreClock().now_ms()
    finally:
        await store.close()
    if now_ms - seen_ms < restored.ALIVE_MS:
        raise DataOwned("a camserver is running on this database; stop all of them, wait a minute and restore again")


def _verified(source: Path, manifest: Manifest, place: Path, told: Told, keeps_dump: bool = True) -> None:
    """Compares all hashes. The dump is left in `place`, if it is wanted: it may be larger than all else."""
    found_list, list_copy = place / "found.jsonl", place / "listed.jsonl"
    seen: dict[str, tuple[int, str]] = {}
    done = 0
    with found_list.open("wb") as lines:
        for name, file in members(source):
            if name.startswith(OBJECTS):
                size, sha256 = hashed(file)
                lines.write(json.dumps(asdict(Kept(name.removeprefix(OBJECTS), size, sha256))).encode() + b"\n")
                done += 1
                told("verify", done, max(manifest.object_count, 1))
            elif name == manifest.database and not keeps_dump:
                seen[name] = hashed(file)
            elif name in (manifest.database, OBJECT_LIST):
                copy = place / manifest.database if name == manifest.database else list_copy
                _copy(file, copy)
                with copy.open("rb") as again:
                    seen[name] = hashed(again)
    for name, expected in manifest.files.items():
        if seen.get(name) != expected:
            raise CheckFailed(f"{name} in {source} is {'damaged' if name in seen else 'missing'}; use another backup")
    if manifest.objects == "copy":
        _compare(source, listed(list_copy.open("rb")), listed(found_list.open("rb")))


def _copy(file: object, target: Path) -> None:
    read = file.read  # type: ignore[attr-defined]  # any file
    with target.open("wb") as to:
        target.chmod(0o600)
        while chunk := read(CHUNK_BYTES):
            to.write(chunk)


def _compare(source: Path, expected: Iterator[Kept], found: Iterator[Kept]) -> None:
    """Both are in the order of the list."""
    for wanted in expected:
        one = next(found, None)
        if one != wanted:
            state = "damaged" if one is not None and one.key == wanted.key else "missing"
            raise CheckFailed(f"the object {wanted.key} in {source} is {state}; use another backup")
    if (more := next(found, None)) is not None:
        raise CheckFailed(f"{source} holds an object that is not in its list ({more.key}); use another backup")


async def _put_objects(settings: "Settings", source: Path, manifest: Manifest, told: Told) -> None:
    from camserver.objects.opening import open_objects

    objects = await open_objects(settings.objects)
    done = 0
    for name, file in members(source):
        if name.startswith(OBJECTS):
            await objects.put(name.removeprefix(OBJECTS), await asyncio.to_thread(file.read, OBJECT_MAX_BYTES))
            done += 1
            told("objects", done, max(manifest.object_count, 1))


async def _load(url: str, dump: Path, manifest: Manifest) -> None:
    """Nobody sees the database before it was told that it is of an earlier moment."""
    from camserver.store import dumps, emptying, open_store, restored, restored_store, upgrade_database

    if manifest.dialect == "sqlite":
        draft = Secret(f"sqlite:///{dump}")
        await asyncio.to_thread(dumps.check_sqlite, dump)
        await upgrade_database(draft, None)
        store = await open_store(draft)
        try:
            await store.write(restored.settle, StoreClock().now_ms(), manifest.taken_at)
        finally:
            await store.close()
        await asyncio.to_thread(dumps.fold_log_in, dump)
        await asyncio.to_thread(dumps.load, url, dump)
        return
    await asyncio.to_thread(emptying.empty, url)
    await asyncio.to_thread(dumps.load, url, dump)
    async with restored_store(Secret(url)) as store:
        await store.write(restored.settle, StoreClock().now_ms(), manifest.taken_at)


# Secrets


def read_secrets(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text())
        if found.get("format") != SECRETS_FORMAT:
            raise BadInput(f"{path} holds no secrets of a backup")
        return {str(name): str(Secret(text).reveal()) for name, text in found["secrets"].items()}
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise BadInput(f"{path} holds no secrets of a backup") from error


def _judge_secrets(settings: "Settings", manifest: Manifest, given: dict[str, str], force: bool) -> list[str]:
    """What will not work for want of the right secrets."""
    here = {name: fingerprint(path.read_text()) for name, path in secret_files(settings).items()}
    here |= {name: fingerprint(text) for name, text in given.items()}
    lacking = [name for name, wanted in manifest.secrets.items() if here.get(name) != wanted]
    is_set = settings.server.credential_key is not None or bool(settings.server.credential_key_command)
    if "credential_key" in lacking and not is_set and not force:
        raise Conflict(
            "the key credential_key of the backup is not here, and without it no stored camera password can be read; "
            "give the file of `camserver backup --secrets` with --secrets, or go on without with --force"
        )
    return [
        f"the secret {name} is another one than the backup's, or missing: put it into {settings.server.secrets_dir}"
        for name in lacking
    ]


def _put_secrets(settings: "Settings", given: dict[str, str]) -> None:
    """Each whole, readable by its owner only; one that was there and differs is kept beside."""
    from camserver.care.backup import known_secrets

    folder = settings.server.secrets_dir
    for name, text in given.items():
        if name not in known_secrets():
            continue
        path = folder / name
        if path.is_file() and path.read_text().strip() == text:
            continue
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists():
            path.rename(folder / f"{name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
        draft = folder / f".{name}.restoring"
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        folders.sync(folder)
