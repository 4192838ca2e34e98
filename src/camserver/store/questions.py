"""What an analyzer is told besides the picture: where the camera is, and which picture it is compared with.

That is the look before. Where a place is watched that things shall not vanish from, `domain.earlier_looks` chooses.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from camserver.base.records import record
from camserver.domain.earlier_looks import LOOKS_MAX, EarlierLook, undisturbed
from camserver.domain.hints import Told, watches_a_place
from camserver.store.tx import Row, Tx

# An older picture says nothing about what moved.
PREVIOUS_MAX_AGE_MS = 600_000
# Frames whose earlier looks one statement reads.
SEARCHED_AT_ONCE = 16


@record
class Previous:
    """The look that a picture is compared with."""

    frame_uuid: str
    captured_at: int
    epoch_id: int


@record
class Background:
    frame_id: int
    timezone: str  # of the site
    network_zone: str
    told: Told
    previous: Previous | None


async def backgrounds(tx: Tx, frame_ids: tuple[int, ...], previous_max_age_ms: int | None) -> dict[int, Background]:
    """By frame. Without an age no previous look is searched for.

    A look from before people changed the camera is none: with another rotation or address it shows something else.
    """
    if previous_max_age_ms is None:
        rows = await tx.all(_PLAIN, frame_ids=list(frame_ids))
        return {row["frame_id"]: _background(row, False) for row in rows}
    rows = await tx.all(_WITH_PREVIOUS, frame_ids=list(frame_ids), max_age_ms=previous_max_age_ms)
    found = {row["frame_id"]: _background(row, True) for row in rows}
    searched = [row for row in rows if watches_a_place(found[row["frame_id"]].told)]
    for first in range(0, len(searched), SEARCHED_AT_ONCE):
        chosen = await _undisturbed(tx, searched[first : first + SEARCHED_AT_ONCE], previous_max_age_ms)
        for frame_id, previous in chosen.items():
            found[frame_id] = replace(found[frame_id], previous=previous)
    return found


async def _undisturbed(tx: Tx, frames: Sequence[Row], max_age_ms: int) -> dict[int, Previous]:
    """By frame, the look to compare it with; one that has none is not there."""
    # Names with numbers, so that the text depends on how many there are and on nothing else.
    spans: dict[str, int] = {}
    for n, frame in enumerate(frames):
        since = max(frame["captured_at"] - max_age_ms, frame["camera_updated_at"])
        spans |= {f"camera_key_{n}": frame["camera_key"], f"at_{n}": frame["captured_at"], f"since_{n}": since}
    rows = await tx.all(" UNION ALL ".join([_earlier_of_one(n) for n in range(len(frames))]), **spans)
    found: dict[int, Previous] = {}
    for n, frame in enumerate(frames):
        mine = sorted((row for row in rows if row["n"] == n), key=lambda row: -row["captured_at"])
        place = undisturbed([_earlier_look(row) for row in mine])
        if place is not None:
            chosen = mine[place]
            found[frame["frame_id"]] = Previous(chosen["frame_uuid"], chosen["captured_at"], chosen["epoch_id"])
    return found


def _earlier_look(row: Row) -> EarlierLook:
    return EarlierLook(
        has_picture=row["epoch_id"] is not None and row["infer_bytes"] is not None,
        is_quiet=row["verdict"] == "skip",
        is_analyzed=bool(row["analyzed"]),
        primary_event=row["primary_event"],
        tags=tuple(json.loads(row["tags_json"])) if row["tags_json"] else (),
    )


def _background(row: Row, is_searched: bool) -> Background:
    previous = None
    if is_searched and row["previous_epoch"] is not None and row["previous_bytes"] is not None:
        previous = Previous(row["previous_uuid"], row["previous_at"], row["previous_epoch"])
    told = Told(row["hints"], row["privacy_masks"])
    return Background(row["frame_id"], row["timezone"], row["network_zone"], told, previous)


_PLAIN = """
SELECT f.frame_id, s.timezone, c.network_zone, o.hints, o.privacy_masks
FROM frames f JOIN cameras c ON c.camera_key = f.camera_key JOIN sites s ON s.site_id = f.site_id
LEFT JOIN camera_overrides o ON o.camera_key = f.camera_key
WHERE f.frame_id IN (:frame_ids...)"""
_WITH_PREVIOUS = """
SELECT f.frame_id, s.timezone, c.network_zone, o.hints, o.privacy_masks, p.frame_uuid AS previous_uuid,
  p.captured_at AS previous_at, p.epoch_id AS previous_epoch, p.infer_bytes AS previous_bytes,
  f.camera_key, f.captured_at, c.updated_at AS camera_updated_at
FROM frames f JOIN cameras c ON c.camera_key = f.camera_key JOIN sites s ON s.site_id = f.site_id
LEFT JOIN camera_overrides o ON o.camera_key = f.camera_key
LEFT JOIN frames p ON p.frame_id = (
  SELECT q.frame_id FROM frames q WHERE q.camera_key = f.camera_key AND q.captured_at < f.captured_at
    AND q.captured_at >= f.captured_at - :max_age_ms AND q.captured_at >= c.updated_at
  ORDER BY q.captured_at DESC LIMIT 1)
WHERE f.frame_id IN (:frame_ids...)"""


def _earlier_of_one(n: int) -> str:
    return f"""
SELECT * FROM (
  SELECT {n} AS n, q.frame_uuid, q.captured_at, q.epoch_id, q.infer_bytes, q.verdict, q.analyzed, q.primary_event,
    q.tags_json
  FROM frames q WHERE q.camera_key = :camera_key_{n} AND q.captured_at < :at_{n} AND q.captured_at >= :since_{n}
  ORDER BY q.captured_at DESC LIMIT {LOOKS_MAX}) earlier_{n}"""
