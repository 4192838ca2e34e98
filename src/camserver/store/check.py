"""`camserver db check`: is the database what the program believes it to be?

Reads only, and repairs nothing. It looks at the schema and at what no constraint of the database guards: parents of
rows in tables without foreign keys, and the rules that several rows make together. Each check is one statement that
counts what is wrong and names an example.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from camserver.base.secrets import Secret
from camserver.store import migrate
from camserver.store.core import Operation
from camserver.store.opening import open_store
from camserver.store.repairs import REPAIRS
from camserver.store.sql import Dialect
from camserver.store.tables import audit_guards, metadata
from camserver.store.tx import Tx

P = ParamSpec("P")
R = TypeVar("R")

NOBODY_REPAIRS = "no repair of it is sure to lose nothing: report it, with the text of camserver doctor"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be. `kind` is stable and meant for machines."""

    kind: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Check:
    """`sql` answers `found`, how many rows are wrong, and `example`, the lowest number of one that leads to them."""

    kind: str
    message: str
    sql: str
    next_step: str = ""

    @property
    def numbered(self) -> str:
        """Of what the example is the number."""
        found = re.search(r"min\((?:\w+\.)?(\w+)\) AS example", self.sql)
        return "" if found is None else found[1]

    def said(self, found: int, example: object) -> str:
        repair = "camserver check --fix repairs it" if self.kind in REPAIRS else NOBODY_REPAIRS
        return f"{found} {self.message} (for example {self.numbered} {example}); {self.next_step or repair}"


async def check_database(url: str | Secret) -> tuple[Finding, ...]:
    """All checks on the database that a URL names. A SQLite file must not be in use by a running camserver."""
    address = url if isinstance(url, Secret) else Secret(url)
    status = await asyncio.to_thread(migrate.status, address.reveal())
    if not status.up_to_date:
        # Not opened: opening would upgrade, and the statements below are made for the newest schema.
        message = f"the database is at schema {status.current or 'none'}, this program needs {status.head}"
        return (Finding("schema_old", f"{message}; run: camserver db upgrade"),)
    store = await open_store(address)
    try:
        return await check(store, address)
    finally:
        await store.close()


class Reads(Protocol):
    """A store, or a reader of a SQLite file that a running server owns."""

    dialect: Dialect

    async def read(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...


async def check(store: Reads, url: Secret) -> tuple[Finding, ...]:
    """All checks on an open store; `url` is the one it was opened with."""
    differences = await asyncio.to_thread(migrate.on_database, url.reveal(), _schema_differences)
    if differences:
        # Statements about columns that are not there would only fail.
        return differences
    damage = await store.read(_file_damage) if store.dialect is Dialect.SQLITE else ()
    return damage + await store.read(_run_checks)


async def _run_checks(tx: Tx) -> tuple[Finding, ...]:
    findings = []
    for each in CHECKS:
        row = await tx.one(each.sql)
        if row is not None and row["found"]:
            findings.append(Finding(each.kind, each.said(row["found"], row["example"]), int(row["found"])))
    return tuple(findings)


async def _file_damage(tx: Tx) -> tuple[Finding, ...]:
    """What SQLite itself finds wrong with its file; the servers check themselves while they run."""
    words = [str(row["quick_check"]) for row in await tx.all("PRAGMA quick_check(10)")]
    if words == ["ok"]:
        return ()
    return (Finding("file_damaged", f"the file is damaged ({words[0]}); restore a backup", len(words)),)


def _schema_differences(connection: Connection) -> tuple[Finding, ...]:
    """What differs from tables/. Indexes of other names are the operator's own affair."""
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    wanted = _wanted_indexes(connection)
    words: list[str] = []
    for table in metadata.sorted_tables:
        if table.name not in names:
            words.append(f"table {table.name} is missing")
            continue
        words += _column_differences(inspector, table)
        words += _index_differences(inspector, table, wanted)
    words += _trigger_differences(connection)
    return tuple(Finding("schema_differs", f"{word}; restore a backup, or ask for help") for word in words)


def _column_differences(inspector: sa.Inspector, table: sa.Table) -> Iterator[str]:
    there = {column["name"]: column for column in inspector.get_columns(table.name)}
    for column in table.columns:
        if column.name not in there:
            yield f"column {table.name}.{column.name} is missing"
        elif not column.primary_key and there[column.name]["nullable"] != column.nullable:
            yield f"column {table.name}.{column.name} {'lacks' if column.nullable else 'has'} NULL"
    for name in sorted(there.keys() - table.columns.keys()):
        yield f"column {table.name}.{name} is not ours"


_TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'",
    "mariadb": "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = database()",
}


def _trigger_differences(connection: Connection) -> Iterator[str]:
    """What keeps the audit log append-only. Somebody who wanted to change it would remove these first."""
    dialect = "mariadb" if connection.dialect.name == "mysql" else connection.dialect.name
    there = set(connection.scalars(sa.text(_TRIGGERS[dialect])))
    for name in audit_guards.names(dialect):
        if name not in there:
            yield f"the trigger {name}, which keeps the audit log append-only, is missing: run camserver audit verify"


def _wanted_indexes(connection: Connection) -> set[str]:
    """The indexes that tables/ has on this database; not every database gets the same ones."""
    names: set[str] = set()

    def note(statement: object, *_: object, **__: object) -> None:
        if isinstance(statement, sa.schema.CreateIndex):
            names.add(str(statement.element.name))

    metadata.create_all(sa.create_mock_engine(connection.engine.url, note), checkfirst=False)
    return names


def _index_differences(inspector: sa.Inspector, table: sa.Table, wanted: set[str]) -> Iterator[str]:
    indexes = inspector.get_indexes(table.name)
    missing = {str(index.name) for index in table.indexes} & wanted - {str(index["name"]) for index in indexes}
    for name in sorted(missing):
        yield f"index {name} of {table.name} is missing"
    unique = {frozenset(found["column_names"]) for found in inspector.get_unique_constraints(table.name)}
    unique |= {frozenset(name or "" for name in index["column_names"]) for index in indexes if index["unique"]}
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            columns = [column.name for column in constraint.columns]
            if frozenset(columns) not in unique:
                yield f"UNIQUE ({', '.join(columns)}) of {table.name} is missing"


def _orphans(table: str, key: str, parent: str, link: str, parent_key: str | None = None) -> Check:
    """Rows of `table` whose `link` names a row of `parent` that is not there."""
    return Check(
        f"orphan_{table}",
        f"rows of {table} whose {link} is not in {parent}",
        f"""
        SELECT count(*) AS found, min(t.{key}) AS example FROM {table} t
        WHERE t.{link} IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{parent_key or link} = t.{link})""",
    )


_ORPHANS = (
    _orphans("frames", "frame_id", "cameras", "camera_key"),
    _orphans("frames", "frame_id", "epochs", "epoch_id"),
    _orphans("frames", "frame_id", "events", "event_id"),
    _orphans("frame_tags", "frame_id", "frames", "frame_id"),
    _orphans("inference_jobs", "job_id", "frames", "frame_id"),
    # A claim reads the camera's state with the job: without one the job is never worked on.
    _orphans("inference_jobs", "job_id", "camera_state", "camera_key"),
    _orphans("events", "event_id", "cameras", "camera_key"),
    _orphans("events", "event_id", "incidents", "incident_id"),
    _orphans("event_tags", "event_id", "events", "event_id"),
    _orphans("incidents", "incident_id", "cameras", "camera_key"),
    _orphans("incidents", "incident_id", "events", "last_event_id", "event_id"),
    _orphans("incident_reviews", "incident_id", "incidents", "incident_id"),
    _orphans("clips", "clip_id", "events", "event_id"),
    _orphans("clips", "clip_id", "cameras", "camera_key"),
    _orphans("clips", "clip_id", "epochs", "epoch_id"),
    _orphans("deliveries", "delivery_id", "cameras", "camera_key"),
    _orphans("notifications", "notification_id", "deliveries", "delivery_id"),
    _orphans("cooldowns", "camera_key", "cameras", "camera_key"),
    _orphans("changes", "tenant_id", "change_counters", "tenant_id"),
    Check(
        "orphan_frame_gaps",
        "gaps of a lease that is not in camera_leases",
        """
        SELECT count(*) AS found, min(g.camera_key) AS example FROM frame_gaps g WHERE NOT EXISTS (
          SELECT 1 FROM camera_leases l WHERE l.camera_key = g.camera_key AND l.generation = g.generation)""",
    ),
)

_LEASES = (
    Check(
        "session_without_lease",
        "held cameras whose current lease is not in the history",
        """
        SELECT count(*) AS found, min(s.camera_key) AS example FROM camera_sessions s
        WHERE s.worker_key IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM camera_leases l WHERE l.camera_key = s.camera_key AND l.generation = s.generation
            AND l.worker_key = s.worker_key AND l.ended_at IS NULL)""",
    ),
    Check(
        "lease_without_session",
        "leases that have not ended though their camera is not held under them",
        """
        SELECT count(*) AS found, min(l.camera_key) AS example FROM camera_leases l
        WHERE l.ended_at IS NULL AND EXISTS (SELECT 1 FROM cameras c WHERE c.camera_key = l.camera_key)
          AND NOT EXISTS (
            SELECT 1 FROM camera_sessions s WHERE s.camera_key = l.camera_key AND s.generation = l.generation
              AND s.worker_key = l.worker_key)""",
    ),
    Check(
        "generation_behind",
        "cameras whose generation is lower than one in their history",
        """
        SELECT count(*) AS found, min(s.camera_key) AS example FROM camera_sessions s
        WHERE EXISTS (
          SELECT 1 FROM camera_leases l WHERE l.camera_key = s.camera_key AND l.generation > s.generation)""",
    ),
    Check(
        "leases_overlap",
        "leases that had not ended when the next one of their camera began",
        """
        SELECT count(*) AS found, min(l.camera_key) AS example FROM camera_leases l
        JOIN camera_leases n ON n.camera_key = l.camera_key AND n.generation = l.generation + 1
        WHERE l.ended_at IS NULL OR l.ended_at > n.granted_at""",
    ),
    Check(
        "sequence_behind",
        "looks with a higher number than their lease knows of",
        """
        SELECT count(*) AS found, min(f.frame_id) AS example FROM frames f
        JOIN camera_leases l ON l.camera_key = f.camera_key AND l.generation = f.generation
        WHERE f.seq > l.last_seq""",
    ),
    Check(
        "gap_filled",
        "looks that arrived and are still noted as missing",
        """
        SELECT count(*) AS found, min(f.frame_id) AS example FROM frame_gaps g
        JOIN frames f ON f.camera_key = g.camera_key AND f.generation = g.generation
          AND f.seq >= g.first_seq AND f.seq <= g.last_seq""",
    ),
)

_JOBS_AND_EVENTS = (
    Check(
        "job_lock",
        "jobs that run without a lock, or are locked without running",
        """
        SELECT count(*) AS found, min(job_id) AS example FROM inference_jobs
        WHERE (status = 'running' AND (locked_token IS NULL OR locked_until IS NULL))
          OR (status <> 'running' AND locked_token IS NOT NULL)""",
    ),
    Check(
        "job_attempt",
        "jobs with fewer than no attempts",
        "SELECT count(*) AS found, min(job_id) AS example FROM inference_jobs WHERE attempt < 0",
    ),
    Check(
        "event_state",
        "events whose state and open_key (or, of camera issues, issue_key) say different things",
        """
        SELECT count(*) AS found, min(event_id) AS example FROM events
        WHERE (state = 'open' AND subject = '' AND (open_key IS NULL OR open_key <> camera_key))
          OR (state = 'open' AND subject <> '' AND issue_key IS NULL)
          OR (state <> 'open' AND (open_key IS NOT NULL OR issue_key IS NOT NULL))
          OR (subject = '' AND issue_key IS NOT NULL) OR (subject <> '' AND open_key IS NOT NULL)""",
    ),
    Check(
        "event_forgotten",
        "open events that their camera's state does not name",
        """
        SELECT count(*) AS found, min(e.event_id) AS example FROM events e
        WHERE e.open_key IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM camera_state s WHERE s.camera_key = e.camera_key AND s.open_event_id = e.event_id)""",
    ),
    Check(
        "open_event_gone",
        "cameras whose state names an event that is not open",
        """
        SELECT count(*) AS found, min(s.camera_key) AS example FROM camera_state s
        WHERE s.open_event_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM events e WHERE e.event_id = s.open_event_id AND e.open_key = s.camera_key)""",
    ),
)

_CLIPS = (
    Check(
        "clip_object",
        "clips that are ready without an object, or have one without being ready",
        """
        SELECT count(*) AS found, min(clip_id) AS example FROM clips
        WHERE (state = 'ready' AND (object_key IS NULL OR epoch_id IS NULL OR object_bytes = 0))
          OR (state <> 'ready' AND object_key IS NOT NULL)""",
    ),
    Check(
        "clip_reason",
        "events without a clip that do not say why, or say so though they have one",
        """
        SELECT count(*) AS found, min(clip_id) AS example FROM clips
        WHERE (state = 'none' AND reason = '') OR (state <> 'none' AND reason <> '')""",
    ),
    Check(
        "object_twice",
        "objects that both an errand and a clip hold: deleting the errand would delete the clip",
        """
        SELECT count(*) AS found, min(k.clip_id) AS example FROM clips k
        JOIN errands r ON r.errand_uuid = k.errand_uuid AND r.object_key = k.object_key""",
    ),
    Check(
        "errand_secret",
        "errands that are over and still hold a login",
        """
        SELECT count(*) AS found, min(errand_id) AS example FROM errands
        WHERE state NOT IN ('waiting', 'sent') AND (key_id IS NOT NULL OR ciphertext IS NOT NULL)""",
    ),
)

_CASES = (
    Check(
        "case_unheld",
        "frames that a case holds and whose class does not say so: retention would delete them",
        """
        SELECT count(*) AS found, min(f.frame_id) AS example FROM frames f JOIN case_items i ON i.holds = 1
          AND ((i.kind = 'frame' AND i.object_id = f.frame_id) OR (i.kind = 'event' AND i.object_id = f.event_id))
        WHERE f.retention_class <> 'case'""",
    ),
    Check(
        "case_class",
        "frames of the class case that no case holds: retention would never delete them",
        """
        SELECT count(*) AS found, min(f.frame_id) AS example FROM frames f
        WHERE f.retention_class = 'case' AND NOT EXISTS (
            SELECT 1 FROM case_items i WHERE i.kind = 'frame' AND i.object_id = f.frame_id AND i.holds = 1)
          AND NOT EXISTS (
            SELECT 1 FROM case_items i LEFT JOIN clips k ON i.kind = 'clip' AND k.clip_id = i.object_id
            JOIN events e ON e.event_id = CASE WHEN i.kind = 'clip' THEN k.event_id ELSE i.object_id END
            WHERE i.holds = 1 AND i.kind <> 'frame'
              AND (e.event_id = f.event_id OR e.best_frame_id = f.frame_id))""",
    ),
)

_INSTALLATION = (
    Check(
        "vocabularies_active",
        "active vocabularies instead of one",
        """
        SELECT count(active_slot) AS found, min(schema_version) AS example FROM schema_versions
        HAVING count(active_slot) > 1""",
        "choose one with: camserver vocabulary use",
    ),
    Check(
        "vocabulary_missing",
        "vocabularies, none of them active",
        """
        SELECT count(*) AS found, min(schema_version) AS example FROM schema_versions
        HAVING count(active_slot) = 0""",
        "choose one with: camserver vocabulary use",
    ),
    Check(
        "tenant_without_counter",
        "tenants without a change counter",
        """
        SELECT count(*) AS found, min(t.tenant_id) AS example FROM tenants t
        WHERE NOT EXISTS (SELECT 1 FROM change_counters c WHERE c.tenant_id = t.tenant_id)""",
    ),
    Check(
        "feed_holes",
        "tenants whose change feed has holes, or ends elsewhere than its counter",
        """
        SELECT count(*) AS found, min(tenant_id) AS example FROM (
          SELECT c.tenant_id FROM change_counters k JOIN changes c ON c.tenant_id = k.tenant_id
          GROUP BY c.tenant_id, k.last_seq
          HAVING count(*) <> max(c.seq) - min(c.seq) + 1 OR max(c.seq) <> k.last_seq
        ) AS holed""",
    ),
)

# Of the checks above, for people: what each is about.
AREAS = {
    **{each.kind: "orphans" for each in _ORPHANS},
    **{each.kind: "leases" for each in _LEASES},
}
CHECKS = _ORPHANS + _LEASES + _JOBS_AND_EVENTS + _CLIPS + _CASES + _INSTALLATION
