"""Making a backup while the server runs: first the database, of one moment, then the objects that its rows name.

An object is written before its row and deleted after it, and never changed. So every object of a row in the dump is
there, unless it was deleted between the dump and its turn; those few are named in the manifest.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from camserver import __version__
from camserver.base import folders
from camserver.base.errors import BadInput, DataUnusable, NotFound, StoreTooOld
from camserver.base.secrets import Secret
from camserver.care.backup_files import FORMAT, MANIFEST, OBJECT_LIST, OBJECTS, Kept, Manifest, Writing, begin, hashed

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store.core import Runs

AT_ONCE = 16
GONE_SHOWN_MAX = 1_000
SECRETS_FORMAT = "camserver-secrets/1"

Told = Callable[[str, int, int], None]  # what, how much is done, of how much


@dataclass(frozen=True, slots=True)
class Wanted:
    target: Path
    objects: Literal["copy", "reference"]
    secrets: Path | None  # where the secrets go, apart from the backup


async def back_up(settings: "Settings", wanted: Wanted, told: Told) -> Manifest:
    """All of it, or nothing is left."""
    if wanted.secrets is not None and wanted.secrets.exists():
        raise BadInput(f"{wanted.secrets} is there already; choose another name for the secrets")
    try:
        return await _finished(settings, wanted, begin(wanted.target), told)
    except OSError as error:
        # What is read has its own errors; this is of the disk that is written to.
        place = wanted.target.parent if error.filename is None else error.filename
        raise DataUnusable(f"the backup failed: {place} {folders.cause_of(error)}; nothing of it was kept") from error


async def _finished(settings: "Settings", wanted: Wanted, writing: Writing, told: Told) -> Manifest:
    try:
        manifest = await _written(settings, wanted, writing, told)
        if wanted.secrets is not None:
            _write_secrets(settings, wanted.secrets)
        await asyncio.to_thread(writing.finish)
    except BaseException:
        writing.give_up()
        if wanted.secrets is not None:
            # It was not there before.
            wanted.secrets.unlink(missing_ok=True)
        raise
    return manifest


async def _written(settings: "Settings", wanted: Wanted, writing: Writing, told: Told) -> Manifest:
    from camserver.store import dumps, migrate

    url = settings.store.url.reveal()
    found = await asyncio.to_thread(migrate.status, url)
    if not found.up_to_date:
        raise StoreTooOld(
            f"the database is at schema {found.current or 'none'}, this program needs {found.head}; back it up with "
            "the version it belongs to, or run: camserver db upgrade"
        )
    manifest = Manifest(
        format=FORMAT,
        version=__version__,
        taken_at=time.time_ns() // 1_000_000,
        dialect=settings.store.url.dialect,
        schema=found.head,
        database=f"database{dumps.suffix_of(url)}",
        objects=wanted.objects,
        objects_where=settings.objects.url or str(settings.objects.dir),
        secrets=fingerprints(settings),
    )
    dump = writing.scratch / manifest.database
    await asyncio.to_thread(dumps.dump, url, dump, lambda done, total: told("database", done, total))
    if manifest.dialect == "sqlite":
        await asyncio.to_thread(dumps.check_sqlite, dump)
    await _add_file(writing, manifest, manifest.database, dump)
    if wanted.objects == "copy":
        await _copy_objects(settings, dump, writing, manifest, told)
    await asyncio.to_thread(writing.add, MANIFEST, manifest.written())
    return manifest


async def _add_file(writing: Writing, manifest: Manifest, name: str, path: Path) -> None:
    def work() -> None:
        with path.open("rb") as file:
            manifest.files[name] = hashed(file)
        writing.add_file(name, path)

    await asyncio.to_thread(work)


async def _copy_objects(settings: "Settings", dump: Path, writing: Writing, manifest: Manifest, told: Told) -> None:
    from camserver.objects.opening import open_objects

    objects = await open_objects(settings.objects)
    lines = writing.scratch / OBJECT_LIST
    async with _rows_of(settings, dump) as rows:
        total = await _count(rows)
        told("objects", 0, total)
        seen = 0
        with lines.open("wb") as file:
            async for keys in named_keys(rows):
                for begin_at in range(0, len(keys), AT_ONCE):
                    batch = keys[begin_at : begin_at + AT_ONCE]
                    got = await asyncio.gather(*(_got(objects, key) for key in batch))
                    for key, data in zip(batch, got, strict=True):
                        kept = await asyncio.to_thread(_keep, writing, manifest, key, data)
                        if kept is not None:
                            file.write(json.dumps(asdict(kept), ensure_ascii=False).encode() + b"\n")
                seen += len(keys)
                told("objects", min(seen, total), total)
    await _add_file(writing, manifest, OBJECT_LIST, lines)


def _keep(writing: Writing, manifest: Manifest, key: str, data: bytes | None) -> Kept | None:
    if data is None:
        manifest.objects_gone_count += 1
        if len(manifest.objects_gone) < GONE_SHOWN_MAX:
            manifest.objects_gone.append(key)
        return None
    writing.add(OBJECTS + key, data)
    manifest.object_count += 1
    manifest.object_bytes += len(data)
    return Kept(key, len(data), hashlib.sha256(data).hexdigest())


async def _got(objects: "Objects", key: str) -> bytes | None:
    try:
        return await objects.get(key)
    except NotFound:
        return None


@asynccontextmanager
async def _rows_of(settings: "Settings", dump: Path) -> AsyncIterator["Runs"]:
    """The rows as they were dumped; of a server's database as they are now: what came since is copied, too."""
    from camserver.store import open_store, sqlite_reader

    if settings.store.url.dialect == "sqlite":
        async with sqlite_reader(Secret(f"sqlite:///{dump}")) as reader:
            yield reader
        return
    store = await open_store(settings.store.url)
    try:
        yield store
    finally:
        await store.close()


async def _count(rows: "Runs") -> int:
    from camserver.store import object_places

    return await rows.read(object_places.count)


async def named_keys(rows: "Runs") -> AsyncIterator[list[str]]:
    """Keys of all objects that rows name, page by page."""
    from camserver.store import object_places

    for pages in (object_places.pictures, object_places.clips, object_places.errands):
        after: int | None = 0
        while after is not None:
            after, named = await rows.read(pages, after)
            yield [one.object_key for one in named]


def known_secrets() -> tuple[str, ...]:
    """The files that a server keeps secrets in."""
    from camserver.config.credential_keys import CREDENTIAL_KEY_PREVIOUS
    from camserver.config.secret_files import SECRET_FILES, WORKER_CA

    return (*SECRET_FILES, CREDENTIAL_KEY_PREVIOUS, WORKER_CA)


def secret_files(settings: "Settings") -> dict[str, Path]:
    """Every file with a secret that this machine has, by name."""
    from camserver.config.secret_files import WORKER_CA

    named = {name: settings.server.secrets_dir / name for name in known_secrets()}
    if settings.control.ca_file is not None:
        named[WORKER_CA] = settings.control.ca_file
    return {name: path for name, path in named.items() if path.is_file()}


def fingerprints(settings: "Settings") -> dict[str, str]:
    """By which a secret is known again, and nobody learns it: they are long and random."""
    return {name: fingerprint(path.read_text()) for name, path in secret_files(settings).items()}


def fingerprint(text: str) -> str:
    return hashlib.sha256(b"camserver secret " + text.strip().encode()).hexdigest()[:32]


def _write_secrets(settings: "Settings", target: Path) -> None:
    """All of them in one file that only its owner may read."""
    content = {name: path.read_text().strip() for name, path in secret_files(settings).items()}
    with os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        json.dump({"format": SECRETS_FORMAT, "secrets": content}, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
