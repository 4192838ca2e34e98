"""Deleting evidence: frames, events and clips of one camera, a page at a time.

A sweep reads a page, asks the rules of domain/keeping.py which of it goes, and has these deleted. Here the rows are
locked, read again and judged again by the same rules, because meanwhile somebody may have put one into a case, or a
job may have made one an event's best frame. Objects are named in `garbage` in the same transaction and unlinked
afterwards (decision 13). Two sweeps at once delete nothing twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.keeping import (
    Fate,
    KeptClip,
    KeptEvent,
    KeptFrame,
    Why,
    clip_is_over,
    clip_may_go,
    event_is_over,
    frame_fate,
    freed_bytes,
)
from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.retention import Retention, RetentionPolicy
from camserver.store import garbage, search_texts
from camserver.store.tx import Row, Tx

PAGE = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of frames begins: behind this one."""

    captured_at: int = -1
    frame_id: int = -1


@dataclass(frozen=True, slots=True)
class FramePage:
    frames: tuple[KeptFrame, ...]
    newest_frame_id: int | None  # of the camera's newest picture, which always stays
    end: Place | None  # where the next page begins; None: this was the last


@dataclass(frozen=True, slots=True)
class Swept:
    """What a transaction deleted: rows, pictures or clips, and their bytes."""

    rows: int = 0
    objects: int = 0
    bytes: int = 0

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(self.rows + other.rows, self.objects + other.objects, self.bytes + other.bytes)


# ---------------------------------------------------------------------------------------------------------------
# Frames
# ---------------------------------------------------------------------------------------------------------------

_UNFINISHED = "('queued','delayed','running')"
# A frame may be the best one of an event it is no part of: of a camera's own issue.
_FRAMES = f"""
SELECT f.frame_id, f.frame_uuid, f.tenant_id, f.camera_key, f.captured_at, f.retention_class, f.keep_until,
  f.verdict, f.analyzed, f.detected, f.unknown_flag, f.event_id, f.epoch_id, f.infer_bytes, f.full_bytes,
  CASE WHEN EXISTS (SELECT 1 FROM events b WHERE b.best_frame_id = f.frame_id) THEN 1 ELSE 0 END AS is_best,
  CASE WHEN EXISTS (SELECT 1 FROM inference_jobs j WHERE j.frame_id = f.frame_id
    AND j.status IN {_UNFINISHED}) THEN 1 ELSE 0 END AS is_awaited
FROM frames f"""
_OLDEST_PICTURE = """
SELECT captured_at AS at FROM frames WHERE camera_key = :camera_key AND retention_class = 'normal'
  AND epoch_id IS NOT NULL ORDER BY captured_at LIMIT 1"""
_OLDEST_CLIP = """
SELECT k.begin_at AS at FROM clips k JOIN events e ON e.event_id = k.event_id
WHERE k.camera_key = :camera_key AND k.state = 'ready' AND e.retention_class = 'normal'
ORDER BY k.begin_at LIMIT 1"""
# Of a camera that was removed nothing is news.
_NEWEST = """
SELECT frame_id FROM frames WHERE camera_key = :camera_key AND epoch_id IS NOT NULL AND infer_bytes IS NOT NULL
  AND EXISTS (SELECT 1 FROM cameras c WHERE c.camera_key = frames.camera_key AND c.deleted_at IS NULL)
ORDER BY captured_at DESC, frame_id DESC LIMIT 1"""


async def frame_page(tx: Tx, camera_key: int, after: Place, before_ms: int, limit: int = PAGE) -> FramePage:
    """Frames captured before a time, oldest first."""
    rows = await tx.all(
        f"{_FRAMES} WHERE f.camera_key = :camera_key AND f.captured_at >= :captured_at "
        "AND f.captured_at < :before_ms AND (f.captured_at > :same_at OR f.frame_id > :frame_id) "
        "ORDER BY f.captured_at, f.frame_id LIMIT :limit",
        camera_key=camera_key,
        captured_at=after.captured_at,
        same_at=after.captured_at,
        frame_id=after.frame_id,
        before_ms=before_ms,
        limit=limit,
    )
    end = Place(rows[-1]["captured_at"], rows[-1]["frame_id"]) if len(rows) == limit else None
    return FramePage(tuple([_kept_frame(row) for row in rows]), await _newest(tx, camera_key), end)


async def oldest_ordinary(tx: Tx, camera_keys: tuple[int, ...]) -> dict[int, int]:
    """When the oldest ordinary picture or clip of each camera was taken; cameras without one are left out."""
    oldest: dict[int, int] = {}
    for camera_key in camera_keys:
        found = [await tx.one(sql, camera_key=camera_key) for sql in (_OLDEST_PICTURE, _OLDEST_CLIP)]
        times = [row["at"] for row in found if row is not None]
        if times:
            oldest[camera_key] = min(times)
    return oldest


async def _newest(tx: Tx, camera_key: int) -> int | None:
    row = await tx.one(_NEWEST, camera_key=camera_key)
    return None if row is None else int(row["frame_id"])


async def sweep_frames(
    tx: Tx, camera_key: int, frame_ids: Sequence[int], why: Why, policy: RetentionPolicy, now_ms: int
) -> Swept:
    """Deletes of these frames what the rule of `why` still gives up."""
    # The camera first, as whoever applies outcomes does: no frame becomes an event's best one meanwhile.
    await tx.one("SELECT version FROM camera_state WHERE camera_key = :key FOR UPDATE", key=camera_key)
    await tx.all(
        "SELECT frame_id FROM frames WHERE frame_id IN (:frame_ids...) ORDER BY frame_id FOR UPDATE",
        frame_ids=sorted(frame_ids),
    )
    newest_id = await _newest(tx, camera_key)
    rows = await tx.all(f"{_FRAMES} WHERE f.frame_id IN (:frame_ids...)", frame_ids=sorted(frame_ids))
    chosen: dict[Fate, list[Row]] = {fate: [] for fate in Fate}
    total = Swept()
    for row in rows:
        frame = _kept_frame(row)
        fate = frame_fate(why, frame, frame.frame_id == newest_id, policy, now_ms)
        if fate is Fate.KEEP:
            continue
        chosen[fate].append(row)
        total += Swept(int(fate is Fate.DELETE), len(_object_keys(row, fate)), freed_bytes(frame, fate))
    await _throw_away(tx, chosen, now_ms)
    await _delete_frames(tx, [row["frame_id"] for row in chosen[Fate.DELETE]])
    await tx.run(
        "UPDATE frames SET full_bytes = NULL WHERE frame_id IN (:frame_ids...)",
        frame_ids=[row["frame_id"] for row in chosen[Fate.SHRINK]],
    )
    await tx.run(
        "UPDATE frames SET full_bytes = NULL, infer_bytes = NULL, epoch_id = NULL WHERE frame_id IN (:frame_ids...)",
        frame_ids=[row["frame_id"] for row in chosen[Fate.STRIP]],
    )
    return total


async def _throw_away(tx: Tx, chosen: dict[Fate, list[Row]], now_ms: int) -> None:
    keys: dict[int, list[str]] = {}
    for fate, rows in chosen.items():
        for row in rows:
            keys.setdefault(row["tenant_id"], []).extend(_object_keys(row, fate))
    for tenant_id, object_keys in keys.items():
        await garbage.add(tx, tenant_id, tuple(object_keys), now_ms)


def _object_keys(row: Row, fate: Fate) -> list[str]:
    """The objects that go with a frame."""
    if row["epoch_id"] is None or fate is Fate.KEEP:
        return []
    kinds = [Kind.FULL] if row["full_bytes"] is not None else []
    if fate is not Fate.SHRINK and row["infer_bytes"] is not None:
        kinds.append(Kind.INFER)
    return [
        frame_key(row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind)
        for kind in kinds
    ]


async def _delete_frames(tx: Tx, frame_ids: list[int]) -> None:
    for table in ("frame_tags", "inference_jobs", "frames"):
        await tx.run(f"DELETE FROM {table} WHERE frame_id IN (:frame_ids...)", frame_ids=frame_ids)


async def drop_jobs(tx: Tx, frame_ids: Sequence[int], finished_before: int) -> int:
    """Deletes the finished jobs of frames that live longer than them."""
    return await tx.run(
        "DELETE FROM inference_jobs WHERE frame_id IN (:frame_ids...) AND status IN ('done','dead','skipped') "
        "AND finished_at < :finished_before",
        frame_ids=sorted(frame_ids),
        finished_before=finished_before,
    )


def _kept_frame(row: Row) -> KeptFrame:
    return KeptFrame(
        frame_id=row["frame_id"],
        captured_at=row["captured_at"],
        retention=Retention(row["retention_class"]),
        keep_until=row["keep_until"],
        is_quiet=row["verdict"] == "skip" and not row["analyzed"] and row["event_id"] is None and not row["is_best"],
        is_seen=bool(row["detected"] or row["unknown_flag"] or row["event_id"] is not None),
        is_best=bool(row["is_best"]),
        is_awaited=bool(row["is_awaited"]),
        infer_bytes=row["infer_bytes"],
        full_bytes=row["full_bytes"],
    )


# ---------------------------------------------------------------------------------------------------------------
# Clips
# ---------------------------------------------------------------------------------------------------------------

_CLIPS = """
SELECT k.clip_id, k.tenant_id, k.begin_at, k.end_at, k.object_key, k.object_bytes, e.retention_class, e.keep_until
FROM clips k JOIN events e ON e.event_id = k.event_id"""


async def clip_page(tx: Tx, camera_key: int, after_at: int, before_ms: int) -> tuple[tuple[int, KeptClip], ...]:
    """Clips that are there and begin before a time, oldest first, each with when it begins."""
    rows = await tx.all(
        f"{_CLIPS} WHERE k.camera_key = :camera_key AND k.begin_at > :after_at AND k.begin_at < :before_ms "
        f"AND k.state = 'ready' ORDER BY k.begin_at LIMIT {PAGE}",
        camera_key=camera_key,
        after_at=after_at,
        before_ms=before_ms,
    )
    return tuple([(row["begin_at"], _kept_clip(row)) for row in rows])


async def clips_of(tx: Tx, event_ids: Sequence[int]) -> tuple[KeptClip, ...]:
    """The clips that are there and go with these events."""
    rows = await tx.all(
        f"{_CLIPS} WHERE k.event_id IN (:event_ids...) AND k.state = 'ready'", event_ids=sorted(event_ids)
    )
    return tuple([_kept_clip(row) for row in rows])


async def sweep_clips(
    tx: Tx, camera_key: int, clip_ids: Sequence[int], why: Why, policy: RetentionPolicy, now_ms: int
) -> Swept:
    """Deletes of these clips those that are over or, when room is short, may go; their rows say that they went."""
    await tx.one("SELECT version FROM camera_state WHERE camera_key = :key FOR UPDATE", key=camera_key)
    await tx.all(
        "SELECT event_id FROM events WHERE event_id IN (SELECT event_id FROM clips WHERE clip_id IN (:clip_ids...)) "
        "ORDER BY event_id FOR UPDATE",
        clip_ids=sorted(clip_ids),
    )
    total = Swept()
    for row in await tx.all(
        f"{_CLIPS} WHERE k.clip_id IN (:clip_ids...) AND k.state = 'ready' ORDER BY k.clip_id FOR UPDATE",
        clip_ids=sorted(clip_ids),
    ):
        clip = _kept_clip(row)
        if not (clip_is_over(clip, policy, now_ms) if why is Why.AGE else clip_may_go(clip, now_ms)):
            continue
        await garbage.add(tx, row["tenant_id"], (row["object_key"],), now_ms)
        await tx.run(
            "UPDATE clips SET state = 'none', reason = 'expired', object_key = NULL, object_bytes = 0, "
            "epoch_id = NULL WHERE clip_id = :clip_id",
            clip_id=row["clip_id"],
        )
        total += Swept(0, 1, clip.bytes)
    return total


def _kept_clip(row: Row) -> KeptClip:
    return KeptClip(
        row["clip_id"], row["end_at"], Retention(row["retention_class"]), row["keep_until"], row["object_bytes"]
    )


# ---------------------------------------------------------------------------------------------------------------
# Events
# ---------------------------------------------------------------------------------------------------------------

_EVENTS = """
SELECT e.event_id, e.tenant_id, e.camera_key, e.incident_id, e.start_at, e.last_seen_at, e.state, e.retention_class,
  e.keep_until, e.best_frame_id,
  CASE WHEN EXISTS (SELECT 1 FROM frames f WHERE f.camera_key = e.camera_key
    AND f.captured_at BETWEEN e.start_at AND e.last_seen_at AND f.event_id = e.event_id
    AND f.retention_class = 'case') THEN 1 ELSE 0 END AS has_case_frames
FROM events e"""


async def event_page(
    tx: Tx, camera_key: int, after: tuple[int, int], before_ms: int
) -> tuple[tuple[int, KeptEvent], ...]:
    """Events that began before a time, oldest first, each with when it began."""
    rows = await tx.all(
        f"{_EVENTS} WHERE e.camera_key = :camera_key AND e.start_at >= :start_at AND e.start_at < :before_ms "
        f"AND (e.start_at > :same_at OR e.event_id > :event_id) ORDER BY e.start_at, e.event_id LIMIT {PAGE}",
        camera_key=camera_key,
        start_at=after[0],
        same_at=after[0],
        event_id=after[1],
        before_ms=before_ms,
    )
    return tuple([(row["start_at"], _kept_event(row)) for row in rows])


async def sweep_events(
    tx: Tx, camera_key: int, event_ids: Sequence[int], policy: RetentionPolicy, now_ms: int
) -> Swept:
    """Deletes of these events those that are over, each with its tags, its clip and its review."""
    await tx.one("SELECT version FROM camera_state WHERE camera_key = :key FOR UPDATE", key=camera_key)
    await tx.all(
        "SELECT event_id FROM events WHERE event_id IN (:event_ids...) ORDER BY event_id FOR UPDATE",
        event_ids=sorted(event_ids),
    )
    rows = await tx.all(f"{_EVENTS} WHERE e.event_id IN (:event_ids...)", event_ids=sorted(event_ids))
    over = [row for row in rows if event_is_over(_kept_event(row), policy, now_ms)]
    if not over:
        return Swept()
    ids = [row["event_id"] for row in over]
    for row in over:
        # Frames that are kept longer than their event lose it. The best one goes by its own age from now on.
        await tx.run(
            "UPDATE frames SET event_id = NULL WHERE camera_key = :camera_key "
            "AND captured_at BETWEEN :start_at AND :last_seen_at AND event_id = :event_id",
            camera_key=row["camera_key"],
            start_at=row["start_at"],
            last_seen_at=row["last_seen_at"],
            event_id=row["event_id"],
        )
    clips = await tx.all(
        "SELECT tenant_id, object_key, object_bytes FROM clips WHERE event_id IN (:event_ids...) "
        "AND object_key IS NOT NULL",
        event_ids=ids,
    )
    for clip in clips:
        await garbage.add(tx, clip["tenant_id"], (clip["object_key"],), now_ms)
    for table in ("event_tags", "event_scores", "clips", "llm_reviews", "events"):
        await tx.run(f"DELETE FROM {table} WHERE event_id IN (:event_ids...)", event_ids=ids)
    await search_texts.drop_memos(tx, ids)
    await _follow_incidents(tx, camera_key, sorted({row["incident_id"] for row in over}))
    return Swept(len(ids), len(clips), sum(clip["object_bytes"] for clip in clips))


async def _follow_incidents(tx: Tx, camera_key: int, incident_ids: list[int]) -> None:
    """Incidents without events go; others count those they have left."""
    left = await tx.all(
        "SELECT incident_id, count(*) AS events, max(event_id) AS last_event_id FROM events "
        "WHERE incident_id IN (:incident_ids...) GROUP BY incident_id",
        incident_ids=incident_ids,
    )
    await tx.many(
        "UPDATE incidents SET event_count = :events, last_event_id = :last_event_id WHERE incident_id = :incident_id",
        [
            {"incident_id": row["incident_id"], "events": row["events"], "last_event_id": row["last_event_id"]}
            for row in left
        ],
    )
    empty = sorted(set(incident_ids) - {row["incident_id"] for row in left})
    for table in ("incident_reviews", "incidents"):
        await tx.run(f"DELETE FROM {table} WHERE incident_id IN (:incident_ids...)", incident_ids=empty)
    await tx.run(
        "UPDATE camera_state SET incident_id = NULL, version = version + 1 "
        "WHERE camera_key = :camera_key AND incident_id IN (:incident_ids...)",
        camera_key=camera_key,
        incident_ids=empty,
    )


def _kept_event(row: Row) -> KeptEvent:
    return KeptEvent(
        event_id=row["event_id"],
        last_seen_at=row["last_seen_at"],
        retention=Retention(row["retention_class"]),
        keep_until=row["keep_until"],
        is_open=row["state"] != "closed",
        has_case_frames=bool(row["has_case_frames"]),
    )
