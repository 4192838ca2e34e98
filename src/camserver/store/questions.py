"""What an analyzer is told besides the picture: where the camera is, and which picture came before."""

from dataclasses import dataclass

from camserver.domain.hints import Told
from camserver.store.tx import Row, Tx

# An older picture says nothing about what moved.
PREVIOUS_MAX_AGE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Previous:
    """The look before, where it has a picture."""

    frame_uuid: str
    captured_at: int
    epoch_id: int


@dataclass(frozen=True, slots=True)
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
    else:
        rows = await tx.all(_WITH_PREVIOUS, frame_ids=list(frame_ids), max_age_ms=previous_max_age_ms)
    return {row["frame_id"]: _background(row, previous_max_age_ms is not None) for row in rows}


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
  p.captured_at AS previous_at, p.epoch_id AS previous_epoch, p.infer_bytes AS previous_bytes
FROM frames f JOIN cameras c ON c.camera_key = f.camera_key JOIN sites s ON s.site_id = f.site_id
LEFT JOIN camera_overrides o ON o.camera_key = f.camera_key
LEFT JOIN frames p ON p.frame_id = (
  SELECT q.frame_id FROM frames q WHERE q.camera_key = f.camera_key AND q.captured_at < f.captured_at
    AND q.captured_at >= f.captured_at - :max_age_ms AND q.captured_at >= c.updated_at
  ORDER BY q.captured_at DESC LIMIT 1)
WHERE f.frame_id IN (:frame_ids...)"""
