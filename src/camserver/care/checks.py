"""`camserver check`: is everything about this installation as it should be? Also beside a running server.

Each area is one function that answers findings; an area that can't be looked at is a finding itself, and the others
go on. Repairs are only those that lose nothing (store/repairs.py, objects without rows, rows whose object is gone).
"""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from camserver import __version__
from camserver.base import scratch
from camserver.base.certificates import read_pem
from camserver.base.clock import StoreClock
from camserver.base.credentials import key_id
from camserver.base.errors import CamError, Conflict
from camserver.base.folders import FREE_MIN_BYTES
from camserver.base.secrets import Secret, scrub
from camserver.care.backup import secret_files
from camserver.care.object_checks import missing_objects, rowless_objects
from camserver.care.restore import SCRATCH_PATTERN

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store.check import Reads
    from camserver.store.core import Store

Level = Literal["warning", "problem"]
AREAS = (
    "settings",
    "versions",
    "database",
    "leases",
    "orphans",
    "secrets",
    "certificates",
    "clock",
    "disk",
    "work",
    "objects",
)
DAY_MS = 86_400_000
# A clock that is further off makes times in pages and links wrong.
CLOCK_OFF_MS = 5_000
CERTIFICATE_SOON_MS = 7 * DAY_MS
INODES_FREE_MIN = 0.02
# Longer than an analyzer takes to be restarted, or to be upgraded.
WORK_WAITS_MS = 600_000


@dataclass(slots=True)
class Found:
    """Something that is not as it should be. `kind` is stable and meant for machines."""

    area: str
    kind: str
    message: str
    level: Level = "problem"
    count: int = 1
    fixable: bool = False
    fixed: bool = False


@dataclass(slots=True)
class Looking:
    """What the areas look at. `rows` None: the database can't be read, or not with this program."""

    settings: "Settings"
    with_objects: bool
    fix: bool
    now_ms: int
    rows: "Reads | None" = None
    store: "Store | None" = None  # to repair with
    objects: "Objects | None" = None
    told: Callable[[str, int, int], None] = field(default=lambda *_: None)


async def run_checks(
    settings: "Settings", with_objects: bool, fix: bool, told: Callable[[str, int, int], None] = lambda *_: None
) -> list[Found]:
    """All areas. With `fix`, what can be is repaired; a SQLite file must not be in use by a running server then."""
    looking = Looking(settings, with_objects, fix, StoreClock().now_ms(), told=told)
    found: list[Found] = []
    async with _opened(looking, found):
        for area, look in _AREAS.items():
            try:
                found += await look(looking)
            except (CamError, OSError) as error:
                message = error.message if isinstance(error, CamError) else str(error)
                found.append(Found(area, f"{area}_unknown", scrub(message)))
    return found


@asynccontextmanager
async def _opened(looking: Looking, found: list[Found]) -> AsyncIterator[None]:
    """The database as far as it can be opened: without owning it, unless something is to be repaired."""
    from camserver.store import migrate, open_store, sqlite_reader

    url = Secret(looking.settings.store.url.reveal())
    is_sqlite = looking.settings.store.url.dialect == "sqlite"
    try:
        status = await asyncio.to_thread(migrate.status, url.reveal())
        if not status.up_to_date:
            message = f"the database is at schema {status.current or 'none'}, this program needs {status.head}"
            remedy = "it is made at the first start" if status.current is None else "run: camserver db upgrade"
            level: Level = "warning" if status.current is None else "problem"
            found.append(Found("versions", "schema_old", f"{message}; {remedy}", level))
            yield
            return
    except CamError as error:
        found.append(Found("database", "database_away", scrub(error.message)))
        yield
        return
    if is_sqlite and not looking.fix:
        async with sqlite_reader(url, one_moment=False) as reader:
            looking.rows = reader
            yield
        return
    store = await open_store(url)
    looking.rows = looking.store = store
    try:
        yield
    finally:
        await store.close()


# Areas


async def _settings(looking: Looking) -> list[Found]:
    return [Found("settings", "settings_warning", warning, "warning") for warning in looking.settings.warnings]


async def _versions(looking: Looking) -> list[Found]:
    from camserver.store import standing

    if looking.rows is None:
        return []
    others = [
        one
        for one in await looking.rows.read(standing.workers_since, looking.now_ms - DAY_MS)
        if one.version != __version__
    ]
    if not others:
        return []
    shown = ", ".join(f"{one.worker_id} ({one.version or 'unknown'})" for one in others[:5])
    message = f"{len(others)} workers run another version than {__version__}: {shown}; upgrade them, too"
    return [Found("versions", "worker_version", message, "warning", len(others))]


async def _database(looking: Looking) -> list[Found]:
    from camserver.store import check, repairs

    if looking.rows is None:
        return []
    url = Secret(looking.settings.store.url.reveal())
    findings = await check.check(looking.rows, url)
    kinds = tuple({one.kind for one in findings if one.kind in repairs.REPAIRS})
    left = {one.kind for one in findings}
    if looking.store is not None and looking.fix and kinds:
        await looking.store.write(repairs.repair, kinds, looking.now_ms)
        left = {one.kind for one in await check.check(looking.store, url)}
    return [
        Found(
            check.AREAS.get(one.kind, "database"),
            one.kind,
            one.message,
            count=one.count,
            fixable=one.kind in repairs.REPAIRS,
            fixed=one.kind in kinds and one.kind not in left,
        )
        for one in findings
    ]


async def _secrets(looking: Looking) -> list[Found]:
    from camserver.config.credential_keys import credential_ring
    from camserver.store import standing

    found = []
    for name, path in secret_files(looking.settings).items():
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            message = f"the secret file {path} can be read or changed by other users (mode {mode:04o}); chmod 600 it"
            found.append(Found("secrets", "secret_open", f"{message} and replace the secret {name}"))
    server = looking.settings.server
    is_set = server.credential_key is not None or bool(server.credential_key_command)
    if looking.rows is None or not (is_set or (server.secrets_dir / "credential_key").exists()):
        return found
    ring = credential_ring(server)
    for wanted, count in (await looking.rows.read(standing.sealing_keys)).items():
        if ring.opening(wanted) is None:
            message = (
                f"{count} stored passwords were sealed with the key {wanted}, which is not here (here is "
                f"{key_id(ring.sealing)}); restore that credential_key, or enter the passwords again"
            )
            found.append(Found("secrets", "key_missing", message, count=count))
    return found


async def _certificates(looking: Looking) -> list[Found]:
    from camserver.config import worker_ca
    from camserver.store import standing

    found = []
    settings, now_ms = looking.settings, looking.now_ms
    ca_exists = settings.control.ca_file is not None or (settings.server.secrets_dir / "worker_ca").exists()
    if settings.control.tls_port is not None and ca_exists:
        worker_ca(settings)  # raises when it is of no use
    own = settings.worker.identity_dir / "worker.pem"
    if own.exists():
        ends_ms = read_pem(_certificate_in(own)).not_after_ms
        if ends_ms < now_ms + CERTIFICATE_SOON_MS:
            state = "has ended" if ends_ms < now_ms else "ends soon"
            message = (
                f"the certificate of this machine's worker ({own}) {state}: it did not reach its server to renew it; "
                "see its log, and when it is not let in any more: camserver worker enroll"
            )
            found.append(
                Found("certificates", "own_certificate", message, "problem" if ends_ms < now_ms else "warning")
            )
    if looking.rows is None:
        return found
    grace_ms = settings.certificates.renew_grace_ms
    ending = await looking.rows.read(
        standing.ending_certificates, now_ms - grace_ms, now_ms + min(CERTIFICATE_SOON_MS, _third(settings))
    )
    for one in ending:
        state = "ended" if one.expires_at < now_ms else "ends"
        days = abs(one.expires_at - now_ms) // DAY_MS
        when = f"{days} days ago" if one.expires_at < now_ms else f"in {days} days"
        message = f"the certificate of the worker {one.worker_id} {state} {when}, and it did not renew it; "
        message += "start that worker, or revoke it when it is gone for good: camserver worker revoke"
        found.append(Found("certificates", "worker_certificate", message, "warning"))
    return found


def _third(settings: "Settings") -> int:
    """Certificates are renewed long before that much is left."""
    return settings.certificates.lifetime_ms // 3


def _certificate_in(path: Path) -> str:
    begin = "-----BEGIN CERTIFICATE-----"
    return begin + [*path.read_text().split(begin), ""][1]


async def _clock(looking: Looking) -> list[Found]:
    from camserver.store import standing

    if looking.rows is None:
        return []
    found = []
    if looking.store is not None:
        database_ms = await looking.store.database_time_ms()
        off_ms = 0 if database_ms is None else StoreClock().now_ms() - database_ms
        if abs(off_ms) > CLOCK_OFF_MS:
            message = f"this machine's clock is {off_ms / 1000:+.1f} s off that of the database; set up NTP on both"
            found.append(Found("clock", "clock_differs", message))
    ahead_ms = await looking.rows.read(standing.newest_moment) - StoreClock().now_ms()
    if ahead_ms > CLOCK_OFF_MS:
        message = (
            f"rows were written {ahead_ms / 1000:.0f} s in the future: this machine's clock is behind, or was ahead"
        )
        found.append(Found("clock", "clock_behind", f"{message}; set up NTP"))
    return found


async def _disk(looking: Looking) -> list[Found]:
    settings = looking.settings
    folders = {"server.data_dir": settings.server.data_dir}
    if settings.store.url.path is not None:
        folders["store.url"] = settings.store.url.path.parent
    if settings.objects.url is None:
        folders["objects.dir"] = settings.objects.dir
    folders["worker.spool_dir"] = settings.worker.spool_dir
    found, seen = [], set()
    for name, folder in folders.items():
        if not folder.exists():
            continue
        status = os.statvfs(folder)
        if (name != "objects.dir" and status.f_fsid in seen) or not status.f_frsize:
            continue
        seen.add(status.f_fsid)
        found += _disk_of(looking, name, folder, status)
    return found + _left_by_restores(looking)


def _left_by_restores(looking: Looking) -> list[Found]:
    find = scratch.sweep if looking.fix else scratch.left_in
    left = find(looking.settings.server.data_dir, SCRATCH_PATTERN)
    if not left:
        return []
    message = f"a restore that was broken off left {left[0]}; camserver check --fix or the next restore removes it"
    return [Found("disk", "restore_left", message, "warning", len(left), fixable=True, fixed=looking.fix)]


def _disk_of(looking: Looking, name: str, folder: Path, status: os.statvfs_result) -> list[Found]:
    free_bytes = shutil.disk_usage(folder).free
    found = []
    if not os.access(folder, os.W_OK):
        found.append(
            Found(
                "disk",
                "disk_read_only",
                f"{folder} ({name}) can't be written by this user; check its owner and mount",
            )
        )
    if free_bytes < FREE_MIN_BYTES:
        message = f"{folder} ({name}) has {free_bytes // 1_000_000} MB left; free some space"
        found.append(Found("disk", "disk_full", message))
    elif name == "objects.dir" and free_bytes < looking.settings.retention.free_min_bytes:
        message = (
            f"{folder} has {free_bytes // 1_000_000} MB left, below retention.free_min_bytes: the oldest pictures go "
            "before their time; see camserver retention show"
        )
        found.append(Found("disk", "disk_floor", message, "warning"))
    if status.f_files and status.f_favail / status.f_files < INODES_FREE_MIN:
        message = f"{folder} ({name}) has only {status.f_favail} of {status.f_files} inodes left; "
        message += "delete small files, or move it to a file system with more"
        found.append(Found("disk", "disk_inodes", message))
    return found


async def _work(looking: Looking) -> list[Found]:
    """What a running server has to do and does not get done."""
    from camserver.store import restored, standing

    now_ms = looking.now_ms
    if looking.rows is None or now_ms - await looking.rows.read(restored.last_seen) > restored.ALIVE_MS:
        return []
    found = []
    jobs = await looking.rows.read(standing.waiting_jobs)
    waits_ms = 0 if jobs.since is None else now_ms - jobs.since
    if jobs.count and waits_ms > WORK_WAITS_MS:
        message = f"{jobs.count} pictures wait, and none was analyzed for {waits_ms // 60_000} minutes"
        found.append(Found("work", "analysis_stalled", f"{message}; see camserver job status: does an analyzer run?"))
    dead = await looking.rows.read(standing.dead_deliveries, now_ms - DAY_MS)
    if dead:
        message = f"{dead} messages or copies were given up within a day; see camserver delivery list"
        found.append(Found("work", "deliveries_dead", message, "warning", dead))
    return found


async def _objects(looking: Looking) -> list[Found]:
    from camserver.objects.opening import open_objects

    if not looking.with_objects or looking.rows is None:
        return []
    objects = await open_objects(looking.settings.objects)
    store = looking.store if looking.fix else None
    found = []
    gone, looked_at = await missing_objects(looking.rows, objects, looking.told)
    if gone:
        message = f"{len(gone)} of {looked_at} pictures and clips are not there (for example {gone[0].object_key}); "
        fixable = len(gone) * 2 <= looked_at
        if fixable:
            message += "were they deleted by hand? Bring them back, or camserver check --fix notes them as gone"
        else:
            message += "is their disk mounted, and is [objects] right? So many are not noted as gone"
        one = Found("objects", "object_missing", message, count=len(gone), fixable=fixable)
        if store is not None:
            one.fixed = await _note_gone(store, gone, looked_at, looking.now_ms)
        found.append(one)
    rowless, of_how_many = await rowless_objects(looking.rows, objects, delete=store is not None)
    if rowless:
        message = (
            f"{len(rowless)} objects of writers that have ended have no row (for example {rowless[0]}): they were "
        )
        message += "killed before they wrote it, and nobody finds these; camserver check --fix deletes them"
        fixed = store is not None and of_how_many == len(rowless)
        found.append(Found("objects", "object_rowless", message, "warning", len(rowless), True, fixed))
    return found


async def _note_gone(store: "Store", gone: list, looked_at: int, now_ms: int) -> bool:  # type: ignore[type-arg]
    from camserver.store import object_places

    if len(gone) * 2 > looked_at:
        raise Conflict(
            f"{len(gone)} of {looked_at} pictures and clips are not there; is their disk mounted? Nothing was changed"
        )
    for begin in range(0, len(gone), object_places.PAGE):
        await store.write(object_places.note_gone, tuple(gone[begin : begin + object_places.PAGE]), now_ms)
    return True


_AREAS: dict[str, Callable[[Looking], Awaitable[list[Found]]]] = {
    "settings": _settings,
    "versions": _versions,
    "database": _database,
    "secrets": _secrets,
    "certificates": _certificates,
    "clock": _clock,
    "disk": _disk,
    "work": _work,
    "objects": _objects,
}
