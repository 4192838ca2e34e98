"""A day that went before, made of what was seen: cameras that were looked at for a minute have no yesterday to show.

The server must not be running. Events of the last minutes are the patterns: copies of them, with their pictures,
stand in the hours before, and the hours have their figures.
"""

import json
import random
from pathlib import Path
from typing import Any

import uuid_utils

from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.timeline import CELL_MS, Cell, write_hour
from camserver.objects.local import LocalObjects
from camserver.store import Tx, open_store

HOUR_MS = 3_600_000
HOURS = 30
# Events of a camera in an hour, by the hour of the day: quiet nights, a busy noon.
BUSY = (0, 0, 0, 1, 0, 0, 1, 2, 4, 3, 2, 3, 5, 4, 3, 2, 3, 4, 5, 3, 2, 1, 1, 0)
LOOKS_AN_HOUR = 1200
PATTERNS_MAX = 40
SEVERITIES = (0, 1, 1, 1, 2, 1, 0, 3, 1, 2)
MEMO = "自転車を押した人物が歩道を横切っています。荷台に箱が見えます。 A person pushes a bicycle across the pavement."

Row = dict[str, Any]
Copied = tuple[str, str]


async def make_past(data: Path, now_ms: int) -> None:
    store = await open_store(f"sqlite:///{data}/camserver.db")
    objects = LocalObjects(data / "objects")
    try:
        copied = await store.write(_events_before, now_ms)
        for source, target in copied:
            await objects.put(target, await objects.get(source))
        await store.write(_hours_before, now_ms)
        await store.write(_memo, now_ms)
        await store.write(_dead_jobs, now_ms)
    finally:
        await store.close()


async def _events_before(tx: Tx, now_ms: int) -> list[Copied]:
    """Copies of events in the hours before; the keys of pictures, from where to where."""
    chance = random.Random(7)
    patterns = await tx.all(
        "SELECT * FROM events WHERE subject = '' AND best_frame_id IS NOT NULL ORDER BY event_id DESC LIMIT :most",
        most=PATTERNS_MAX,
    )
    copied: list[Copied] = []
    seq = 0
    for hour in range(1, HOURS):
        begin_ms = (now_ms // HOUR_MS - hour) * HOUR_MS
        # The site is in Tokyo.
        for _ in range(BUSY[(begin_ms // HOUR_MS + 9) % 24]):
            seq += 1
            at_ms = begin_ms + chance.randrange(HOUR_MS)
            copied.append(await _copy_event(tx, dict(chance.choice(patterns)), at_ms, seq))
    return copied


async def _copy_event(tx: Tx, event: Row, at_ms: int, seq: int) -> Copied:
    frame = dict(await _one(tx, "frames", "frame_id", event["best_frame_id"]))
    incident = dict(await _one(tx, "incidents", "incident_id", event["incident_id"]))
    tags = await tx.all("SELECT * FROM event_tags WHERE event_id = :id", id=event["event_id"])
    source = _key(frame)
    severity = SEVERITIES[seq % len(SEVERITIES)]
    end_ms = at_ms + 20_000 + seq * 7_919 % 90_000
    made_incident = await _insert(
        tx,
        "incidents",
        "incident_id",
        incident
        | {"incident_uuid": _uuid(), "start_at": at_ms, "last_seen_at": end_ms, "severity_max": severity}
        | {"event_count": 1, "last_event_id": None},
    )
    frame |= {"frame_uuid": _uuid(), "generation": 0, "seq": seq, "captured_at": at_ms, "worker_at": at_ms}
    frame |= {"received_at": at_ms + 150, "event_id": None, "severity": severity, "full_bytes": None}
    made_frame = await _insert(tx, "frames", "frame_id", frame)
    event |= {"event_uuid": _uuid(), "incident_id": made_incident, "open_key": None, "state": "closed"}
    event |= {"start_at": at_ms, "last_seen_at": end_ms, "end_at": end_ms, "severity_max": severity}
    event |= {"best_frame_id": made_frame, "frame_count": 1, "created_at": at_ms, "updated_at": end_ms}
    old_event = event["event_id"]
    made_event = await _insert(tx, "events", "event_id", event)
    await tx.run("UPDATE frames SET event_id = :event WHERE frame_id = :frame", event=made_event, frame=made_frame)
    await tx.run(
        "UPDATE incidents SET last_event_id = :event WHERE incident_id = :incident",
        event=made_event,
        incident=made_incident,
    )
    assert old_event != made_event
    for tag in tags:
        await _insert(tx, "event_tags", None, dict(tag) | {"event_id": made_event, "start_at": at_ms})
    return source, _key(frame)


def _key(frame: Row) -> str:
    return frame_key(
        frame["epoch_id"],
        frame["tenant_id"],
        frame["camera_key"],
        frame["captured_at"],
        frame["frame_uuid"],
        Kind.INFER,
    )


async def _hours_before(tx: Tx, now_ms: int) -> None:
    """The figures of those hours: as many looks as there would have been, and the events that are there."""
    cameras = await tx.all("SELECT camera_key, tenant_id, name FROM cameras ORDER BY camera_key")
    for camera in cameras:
        for hour in range(1, HOURS):
            hour_at = (now_ms // HOUR_MS - hour) * HOUR_MS
            began = await tx.all(
                "SELECT start_at, severity_max FROM events WHERE camera_key = :key AND subject = '' "
                "AND start_at >= :begin AND start_at < :end",
                key=camera["camera_key"],
                begin=hour_at,
                end=hour_at + HOUR_MS,
            )
            failed = 3 if hour % 7 == 0 else 0
            cells = {number: Cell(ok=100, failed=failed if number == 4 else 0) for number in range(12)}
            for event in began:
                place = (event["start_at"] - hour_at) // CELL_MS
                cell = cells[place]
                worst = max(cell.severity, event["severity_max"])
                cells[place] = Cell(cell.ok, cell.failed, worst, cell.events + 1)
            row = {
                "tenant_id": camera["tenant_id"],
                "camera_key": camera["camera_key"],
                "hour_at": hour_at,
                "looks": LOOKS_AN_HOUR,
                "looks_failed": failed,
                "analyzed": 20 + 10 * len(began),
                "detected": 3 * len(began),
                "unknown": 0,
                "events": len(began),
                "severity_max": max((event["severity_max"] for event in began), default=0),
                "by_event": json.dumps({"human": len(began)}),
                "bytes": 2_400_000 + 300_000 * len(began),
                "cells": write_hour(cells),
            }
            await tx.run(
                "DELETE FROM hourly_stats WHERE camera_key = :camera_key AND hour_at = :hour_at",
                camera_key=row["camera_key"],
                hour_at=hour_at,
            )
            await _insert(tx, "hourly_stats", None, row)


async def _memo(tx: Tx, now_ms: int) -> None:
    """A language model's opinion on the newest event."""
    event = await tx.one("SELECT * FROM events WHERE subject = '' AND frame_count > 1 ORDER BY start_at DESC LIMIT 1")
    if event is None:
        return
    review = {
        "review_uuid": _uuid(),
        "tenant_id": event["tenant_id"],
        "camera_key": event["camera_key"],
        "event_id": event["event_id"],
        "frame_id": event["best_frame_id"],
        "provider": "openai",
        "model": "a-small-model",
        "label": "person",
        "memo": MEMO,
        "tokens_in": 812,
        "tokens_out": 64,
        "cost_micro": 190,
        "created_at": now_ms,
    }
    await _insert(tx, "llm_reviews", None, review)


async def _dead_jobs(tx: Tx, now_ms: int) -> None:
    """A few looks whose analysis was given up."""
    jobs = await tx.all("SELECT job_id FROM inference_jobs WHERE status = 'done' ORDER BY job_id DESC LIMIT 9")
    for place, error in enumerate(
        ("timeout: POST /v1/analyze got no answer within 30 s", "bad_request: the picture is too small")
    ):
        for job in jobs[place * 2 : place * 2 + 2]:
            await tx.run(
                "UPDATE inference_jobs SET status = 'dead', attempt = 5, last_error = :error WHERE job_id = :id",
                error=error,
                id=job["job_id"],
            )


def _uuid() -> str:
    return str(uuid_utils.uuid7())


async def _one(tx: Tx, table: str, key: str, value: int) -> Any:
    row = await tx.one(f"SELECT * FROM {table} WHERE {key} = :value", value=value)
    assert row is not None
    return row


async def _insert(tx: Tx, table: str, key: str | None, row: Row) -> int:
    values = {name: value for name, value in row.items() if name != key}
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    sql = f"INSERT INTO {table} ({names}) VALUES ({places})"
    if key is None:
        await tx.run(sql, **values)
        return 0
    return await tx.insert(f"{sql} RETURNING {key}", **values)
