"""Filling `hourly_stats`: which hours something touched lately, counted anew from frames and events.

A *cursor* remembers how far was read: of frames by their number, and of outcomes by the change feed, which holds each
in the order of its commit. `look` reads what is behind it and counts the hours it names, late frames included;
`record` writes them only if nobody moved the cursor meanwhile. So any number of dispatchers may do it, a repeat
changes nothing, and the store's writer is never held up by counting. Once an hour is a day old it is counted again,
for what neither said.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from camserver.domain.statistics import HOUR_MS, Counts, hour_of, hours_of_event
from camserver.domain.timeline import CELL_MS, Cell, write_hour
from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Row, Tx

CURSOR = "hourly_stats.cursor"
FRAMES_MAX = 5_000
CHANGES_MAX = 2_000
# Numbers of frames are given before their commit: one may come into sight after a higher one.
SETTLE_MS = 30_000
FINAL_MS = 25 * HOUR_MS
# Frames without an event are deleted after two weeks; hours that old keep the figures they have.
COUNTED_MAX_MS = 13 * 24 * HOUR_MS

Hour = tuple[int, int, int]  # tenant_id, camera_key, when it began


@dataclass(frozen=True, slots=True)
class Cursor:
    frame_id: int = 0
    seqs: Mapping[int, int] = field(default_factory=dict)  # by tenant
    final_hour: int = 0  # the newest hour that was counted for good


@dataclass(frozen=True, slots=True)
class Batch:
    """What a look found. `more`: there is more behind it."""

    before: Cursor | None  # None: nobody looked before
    after: Cursor
    hours: tuple[tuple[Hour, Counts, str], ...]  # with their cells, as domain/timeline.py writes them
    too_old: int  # hours that something touched and that are not counted any more
    more: bool

    @property
    def is_news(self) -> bool:
        """Whether it is worth a transaction."""
        return bool(self.hours) or self.before != self.after


async def look(tx: Tx, now_ms: int) -> Batch:
    before = await _cursor(tx)
    # The feed's position before anything is counted: what commits later is behind it.
    last_seqs = {
        row["tenant_id"]: row["last_seq"] for row in await tx.all("SELECT tenant_id, last_seq FROM change_counters")
    }
    cursor = before or Cursor(0, last_seqs, hour_of(now_ms - FINAL_MS))
    frame_id, touched, more_frames = await _new_frames(tx, cursor.frame_id, now_ms)
    seqs, changed, more_changes = await _changed(tx, cursor.seqs, last_seqs, now_ms)
    final_hour = min(cursor.final_hour + HOUR_MS, hour_of(now_ms - FINAL_MS))
    settled = await _all_cameras(tx, final_hour) if final_hour > cursor.final_hour else set()
    dirty = touched | changed | settled
    recent = {hour for hour in dirty if hour[2] >= now_ms - COUNTED_MAX_MS}
    after = Cursor(frame_id, seqs, max(final_hour, cursor.final_hour))
    more_hours = after.final_hour < hour_of(now_ms - FINAL_MS)
    return Batch(
        before, after, await _counted(tx, recent), len(dirty) - len(recent), more_frames or more_changes or more_hours
    )


async def record(tx: Tx, batch: Batch) -> bool:
    """False when somebody else was faster; then nothing is written."""
    if await _cursor(tx, lock=True) != batch.before:
        return False
    text = _written(batch.after)
    if batch.before is None:
        # Another one that is first at the same time waits here, and then has nothing to insert.
        if not await tx.all(_INSERT_CURSOR, name=CURSOR, text=text):
            return False
    else:
        await tx.run("UPDATE settings SET value = :text WHERE tenant_id = 0 AND name = :name", text=text, name=CURSOR)
    await tx.many(
        _UPSERT,
        [
            {
                "tenant_id": tenant_id,
                "camera_key": camera_key,
                "hour_at": hour_at,
                "looks": counts.looks,
                "looks_failed": counts.looks_failed,
                "analyzed": counts.analyzed,
                "detected": counts.detected,
                "unknown": counts.unknown,
                "events": counts.events,
                "severity_max": counts.severity_max,
                "bytes": counts.bytes,
                "by_event": json.dumps(counts.by_event, sort_keys=True),
                "cells": cells,
            }
            # In one order, so that nobody's locks wait for each other.
            for (tenant_id, camera_key, hour_at), counts, cells in sorted(batch.hours, key=lambda one: one[0])
        ],
    )
    return True


async def counted_to(tx: Tx, now_ms: int) -> int:
    """All that came until then is counted, of every camera: nothing behind the cursor came earlier."""
    row = await tx.one(_FIRST_UNCOUNTED, name=CURSOR)
    return now_ms if row is None else min(now_ms, row["received_at"])


async def _cursor(tx: Tx, lock: bool = False) -> Cursor | None:
    row = await tx.one(
        f"SELECT value FROM settings WHERE tenant_id = 0 AND name = :name{' FOR UPDATE' if lock else ''}", name=CURSOR
    )
    if row is None:
        return None
    found = json.loads(row["value"])
    return Cursor(found["frame_id"], {int(key): seq for key, seq in found["seqs"].items()}, found["final_hour"])


async def step_back(tx: Tx) -> None:
    """After frames were deleted, in the same transaction: SQLite gives the numbers of the newest ones again, and what
    gets them is new. The others never do."""
    if tx.dialect is not Dialect.SQLITE:
        return
    cursor, row = await _cursor(tx), await tx.one("SELECT max(frame_id) AS highest FROM frames")
    highest = 0 if row is None else row["highest"] or 0
    if cursor is not None and cursor.frame_id > highest:
        text = _written(replace(cursor, frame_id=highest))
        await tx.run("UPDATE settings SET value = :text WHERE tenant_id = 0 AND name = :name", text=text, name=CURSOR)


def _written(cursor: Cursor) -> str:
    seqs = {str(tenant_id): seq for tenant_id, seq in sorted(cursor.seqs.items())}
    return json.dumps({"frame_id": cursor.frame_id, "seqs": seqs, "final_hour": cursor.final_hour})


async def _new_frames(tx: Tx, after: int, now_ms: int) -> tuple[int, set[Hour], bool]:
    """The hours of frames behind a number, the last number read, and whether there are more."""
    rows = await tx.all(
        """
        SELECT frame_id, tenant_id, camera_key, captured_at, received_at FROM frames WHERE frame_id > :after
        ORDER BY frame_id LIMIT :most""",
        after=after,
        most=FRAMES_MAX,
    )
    hours: set[Hour] = set()
    for row in rows:
        if row["received_at"] > now_ms - SETTLE_MS:
            return after, hours, False
        hours.add((row["tenant_id"], row["camera_key"], hour_of(row["captured_at"])))
        after = row["frame_id"]
    return after, hours, len(rows) == FRAMES_MAX


async def _changed(
    tx: Tx, known: Mapping[int, int], last_seqs: Mapping[int, int], now_ms: int
) -> tuple[dict[int, int], set[Hour], bool]:
    """The hours of frames and events that the feed names behind `known`, and how far it was read."""
    seqs: dict[int, int] = {}
    hours: set[Hour] = set()
    more = False
    for tenant_id, last_seq in last_seqs.items():
        seq = known.get(tenant_id, 0)
        if last_seq > seq and await _was_pruned(tx, tenant_id, seq):
            hours |= await _last_day(tx, tenant_id, now_ms)
            seqs[tenant_id] = last_seq
            continue
        rows: Sequence[Row] = ()
        if last_seq > seq:
            rows = await tx.all(
                """
                SELECT seq, kind, object_id FROM changes
                WHERE tenant_id = :tenant_id AND seq > :seq AND seq <= :last_seq AND kind IN ('frame', 'event')
                ORDER BY seq LIMIT :most""",
                tenant_id=tenant_id,
                seq=seq,
                last_seq=last_seq,
                most=CHANGES_MAX,
            )
        is_full = len(rows) == CHANGES_MAX
        seqs[tenant_id] = rows[-1]["seq"] if is_full else max(seq, last_seq)
        more = more or is_full
        hours |= await _named(
            tx,
            tenant_id,
            {row["object_id"] for row in rows if row["kind"] == "frame"},
            {row["object_id"] for row in rows if row["kind"] == "event"},
        )
    return seqs, hours, more


async def _was_pruned(tx: Tx, tenant_id: int, seq: int) -> bool:
    """Whether the feed begins later than where reading it stopped: then nobody knows what was touched."""
    row = await tx.one("SELECT MIN(seq) AS first FROM changes WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    return row is None or row["first"] is None or row["first"] > seq + 1


async def _named(tx: Tx, tenant_id: int, frame_ids: set[int], event_ids: set[int]) -> set[Hour]:
    hours: set[Hour] = set()
    if frame_ids:
        for row in await tx.all(
            "SELECT camera_key, captured_at FROM frames WHERE frame_id IN (:ids...)", ids=sorted(frame_ids)
        ):
            hours.add((tenant_id, row["camera_key"], hour_of(row["captured_at"])))
    if event_ids:
        for row in await tx.all(
            "SELECT camera_key, start_at, last_seen_at FROM events WHERE event_id IN (:ids...)", ids=sorted(event_ids)
        ):
            spanned = hours_of_event(row["start_at"], row["last_seen_at"])
            hours |= {(tenant_id, row["camera_key"], hour_at) for hour_at in spanned}
    return hours


async def _last_day(tx: Tx, tenant_id: int, now_ms: int) -> set[Hour]:
    rows = await tx.all("SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    first = hour_of(now_ms - FINAL_MS)
    return {(tenant_id, row["camera_key"], hour_at) for row in rows for hour_at in range(first, now_ms + 1, HOUR_MS)}


async def _all_cameras(tx: Tx, hour_at: int) -> set[Hour]:
    rows = await tx.all("SELECT tenant_id, camera_key FROM cameras")
    return {(row["tenant_id"], row["camera_key"], hour_at) for row in rows}


async def _counted(tx: Tx, dirty: Iterable[Hour]) -> tuple[tuple[Hour, Counts, str], ...]:
    cameras_of: dict[int, dict[int, int]] = {}
    for tenant_id, camera_key, hour_at in dirty:
        cameras_of.setdefault(hour_at, {})[camera_key] = tenant_id
    counted: list[tuple[Hour, Counts, str]] = []
    for hour_at, tenants in sorted(cameras_of.items()):
        span = {"camera_keys": sorted(tenants), "hour_at": hour_at, "end_at": hour_at + HOUR_MS}
        found: dict[int, Counts] = {}
        cells: dict[int, dict[int, Cell]] = {}
        for row in await tx.all(_COUNT_FRAMES, **span):
            camera_key, counts = row["camera_key"], _counts_of_frames(row)
            found[camera_key] = found.get(camera_key, Counts()) + counts
            cells.setdefault(camera_key, {})[(row["cell_at"] - hour_at) // CELL_MS] = Cell(
                counts.looks - counts.looks_failed, counts.looks_failed, counts.severity_max
            )
        for row in await tx.all(_COUNT_EVENTS, **span):
            camera_key, severity = row["camera_key"], int(row["severity"])
            event = Counts(
                events=row["events"], severity_max=severity, by_event={row["primary_event"]: row["events"]}
            )
            found[camera_key] = found.get(camera_key, Counts()) + event
            of_camera, number = cells.setdefault(camera_key, {}), (row["cell_at"] - hour_at) // CELL_MS
            cell = of_camera.get(number, Cell())
            of_camera[number] = replace(
                cell, severity=max(cell.severity, severity), events=cell.events + row["events"]
            )
        counted += [
            ((tenants[camera_key], camera_key, hour_at), counts, write_hour(cells[camera_key]))
            for camera_key, counts in found.items()
        ]
    return tuple(counted)


def _counts_of_frames(row: Row) -> Counts:
    return Counts(
        looks=row["looks"],
        looks_failed=int(row["looks_failed"]),
        analyzed=int(row["analyzed"]),
        detected=int(row["detected"]),
        unknown=int(row["unknown_ones"]),
        severity_max=int(row["severity"]),
        bytes=int(row["picture_bytes"]),
    )


_CELL_OF = "{at} - {at} % " + str(CELL_MS)
_COUNT_FRAMES = f"""
SELECT camera_key, {_CELL_OF.format(at="captured_at")} AS cell_at, COUNT(*) AS looks,
  SUM(CASE WHEN collector_status <> 'ok' THEN 1 ELSE 0 END) AS looks_failed,
  SUM(analyzed) AS analyzed, SUM(detected) AS detected, SUM(unknown_flag) AS unknown_ones, MAX(severity) AS severity,
  SUM(COALESCE(infer_bytes, 0) + COALESCE(full_bytes, 0)) AS picture_bytes
FROM frames WHERE camera_key IN (:camera_keys...) AND captured_at >= :hour_at AND captured_at < :end_at
GROUP BY camera_key, {_CELL_OF.format(at="captured_at")}"""
_COUNT_EVENTS = f"""
SELECT camera_key, primary_event, {_CELL_OF.format(at="start_at")} AS cell_at, COUNT(*) AS events,
  MAX(severity_max) AS severity
FROM events WHERE camera_key IN (:camera_keys...) AND start_at >= :hour_at AND start_at < :end_at
GROUP BY camera_key, primary_event, {_CELL_OF.format(at="start_at")}"""
# One way to the database, since people wait for it.
_AFTER = """
SELECT received_at FROM frames WHERE frame_id > COALESCE(
  (SELECT {} FROM settings WHERE tenant_id = 0 AND name = :name), 0) ORDER BY frame_id LIMIT 1"""
_FIRST_UNCOUNTED = Sql(
    sqlite=_AFTER.format("json_extract(value, '$.frame_id')"),
    postgres=_AFTER.format("(value::json ->> 'frame_id')::bigint"),
    mariadb=_AFTER.format("CAST(JSON_VALUE(value, '$.frame_id') AS UNSIGNED)"),
)
_INSERT_CURSOR = Sql(
    """
INSERT INTO settings (tenant_id, name, value, updated_at) VALUES (0, :name, :text, 0)
ON CONFLICT DO NOTHING RETURNING name""",
    mariadb="""
INSERT IGNORE INTO settings (tenant_id, name, value, updated_at) VALUES (0, :name, :text, 0) RETURNING name""",
)
_COLUMNS = (
    "looks",
    "looks_failed",
    "analyzed",
    "detected",
    "unknown",
    "events",
    "severity_max",
    "by_event",
    "bytes",
    "cells",
)
_INSERT = f"""
INSERT INTO hourly_stats (tenant_id, camera_key, hour_at, {", ".join(_COLUMNS)})
VALUES (:tenant_id, :camera_key, :hour_at, {", ".join(f":{name}" for name in _COLUMNS)})"""
# Fewer looks than before: rows are gone, and what was counted while they were there is the truth.
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
_REPLACED_MARIADB = ", ".join(f"{name} = IF(VALUES(looks) >= looks, VALUES({name}), {name})" for name in _COLUMNS)
_UPSERT = Sql(
    f"""{_INSERT}
ON CONFLICT (tenant_id, camera_key, hour_at) DO UPDATE SET {_REPLACED} WHERE excluded.looks >= hourly_stats.looks""",
    mariadb=f"{_INSERT} ON DUPLICATE KEY UPDATE {_REPLACED_MARIADB}",
)
