"""The suggested stream is opened before anybody watches it: a viewing without a viewer, paid from the reserve."""

import uuid_utils

from camserver.domain.admission import PLAYS, AdmissionPolicy, Asked, Guard, Kind, Offer, Quality, decide, offers
from camserver.store import streamers
from camserver.store.admissions import streams_of
from camserver.store.tx import Row, Tx

# One that nobody renews any more ends after this.
KEPT_MS = 30_000
RENEWED_BELOW_MS = 15_000


async def is_due(tx: Tx, tenant_id: int, now_ms: int) -> bool:
    """Whether `prewarm` has something to do."""
    wanted = await tx.one(_WANTED, tenant_id=tenant_id, now_ms=now_ms)
    if wanted is None:
        return False
    rows = await _there(tx, tenant_id, wanted["camera_key"], now_ms)
    if any(row["kind"] == "suggest" for row in rows):
        return False
    enough = min(wanted["until"], now_ms + RENEWED_BELOW_MS)
    return not any(row["valid_until"] >= enough for row in rows)


async def prewarm(tx: Tx, tenant_id: int, policy: AdmissionPolicy, now_ms: int) -> bool:
    """Has the suggested stream opened, or kept open, unless somebody watches it already. False: it is not to be."""
    wanted = await tx.one(_WANTED, tenant_id=tenant_id, now_ms=now_ms)
    if wanted is None:
        return False
    streamer_id, _ = await streamers.choose(tx, wanted["camera_key"], frozenset(), now_ms)
    streamer = None if streamer_id is None else await streamers.lock(tx, streamer_id)
    if streamer is None or streamer_id is None:
        return False
    rows = await _there(tx, tenant_id, wanted["camera_key"], now_ms)
    if any(row["kind"] == "suggest" for row in rows):
        return False
    until = min(wanted["until"], now_ms + KEPT_MS)
    if rows:
        await tx.run(
            "UPDATE modal_leases SET last_heartbeat = :now_ms, expires_at = :until, valid_until = :until "
            "WHERE lease_id = :lease_id",
            lease_id=rows[0]["lease_id"],
            until=until,
            now_ms=now_ms,
        )
        return True
    # The one of the camera before, or one that ran out.
    await tx.run(
        "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND kind = 'prewarm' AND user_id = :user_id",
        tenant_id=tenant_id,
        user_id=_nobody(tenant_id),
    )
    terms = policy.of_units(streamer["total_units"])
    held, _ = await streamers.held_on(tx, streamer_id)
    ways = offers(streams_of(wanted), Quality.SUB, PLAYS, terms)
    answer = decide(Asked(wanted["camera_key"], Kind.PREWARM, ways), Guard(), held, terms)
    if not isinstance(answer, Offer):
        return False
    await tx.run(_INSERT, **_columns(tenant_id, wanted, streamer_id, answer), until=until, now_ms=now_ms)
    return True


async def _there(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> list[Row]:
    rows = await tx.all(
        "SELECT lease_id, kind, valid_until FROM modal_leases WHERE camera_key = :camera_key "
        "AND tenant_id = :tenant_id AND kind IN ('suggest', 'prewarm') AND valid_until >= :now_ms LIMIT 1000",
        tenant_id=tenant_id,
        camera_key=camera_key,
        now_ms=now_ms,
    )
    return list(rows)


def _nobody(tenant_id: int) -> str:
    return f"suggest:{tenant_id}"


def _columns(tenant_id: int, wanted: Row, streamer_id: str, offer: Offer) -> dict[str, object]:
    return {
        "lease_id": str(uuid_utils.uuid7()),
        "tenant_id": tenant_id,
        "site_id": wanted["site_id"],
        "camera_key": wanted["camera_key"],
        "streamer_id": streamer_id,
        "user_id": _nobody(tenant_id),
        "quality": offer.quality.value,
        "units": offer.units,
        "transcode": int(offer.transcode),
        "transcode_units": offer.transcode_units,
    }


_WANTED = """
SELECT g.camera_key, g.until, c.site_id, c.caps, m.source_type AS main_type, u.source_type AS sub_type,
  o.privacy_masks
FROM suggestions g
JOIN cameras c ON c.camera_key = g.camera_key
LEFT JOIN camera_streams m ON m.camera_key = c.camera_key AND m.kind = 'main'
LEFT JOIN camera_streams u ON u.camera_key = c.camera_key AND u.kind = 'sub'
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
WHERE g.tenant_id = :tenant_id AND g.until > :now_ms AND c.deleted_at IS NULL AND c.enabled = 1
  AND c.do_not_process = 0"""
_INSERT = """
INSERT INTO modal_leases (lease_id, tenant_id, site_id, camera_key, streamer_id, user_id, kind, quality, units,
  transcode, transcode_units, created_at, expires_at, last_heartbeat, valid_until)
VALUES (:lease_id, :tenant_id, :site_id, :camera_key, :streamer_id, :user_id, 'prewarm', :quality, :units,
  :transcode, :transcode_units, :now_ms, :until, :now_ms, :until)"""
