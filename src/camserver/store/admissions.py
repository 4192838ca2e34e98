"""Admission of viewings (decisions 30-33): the facts are read and the row is added under the streamer's lock.

What viewings may use together is decided in domain/admission.py. The rows of a streamer are counted and added under
its lock, so that requests at the same time, of however many processes, never use more than there is.
"""

import json
from dataclasses import dataclass, field

import uuid_utils

from camserver.domain.admission import (
    RETRY_AFTER_SEC,
    AdmissionPolicy,
    Asked,
    CameraStreams,
    Guard,
    Held,
    Kind,
    Note,
    Offer,
    Quality,
    Refusal,
    Refused,
    decide,
    expires_at,
    offers,
    valid_until,
    viewer_of,
)
from camserver.domain.people import Principal
from camserver.store import audit, streamers
from camserver.store.cameras import missing
from camserver.store.tx import Row, Scoped, Tx

# Sources that are no video as browsers play it, whatever a probe would say.
_CODEC_OF_SOURCE = {"http": "mjpeg", "webcam": "rawvideo", "test": "rawvideo"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to watch."""

    camera_id: str
    quality: Quality
    kind: Kind = Kind.MODAL
    plays: frozenset[str] = frozenset()  # codecs, as FFmpeg names them


@dataclass(frozen=True, slots=True)
class Request:
    """A wish in somebody's name. Streamers that were `tried` already are not asked again."""

    principal: Principal
    wish: Wish
    address: str
    now_ms: int
    tried: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Admitted:
    lease_id: str
    camera_id: str
    streamer_id: str
    public_url: str
    port: int
    quality: Quality
    kind: Kind
    units: int  # what it costs by itself; a transcode is paid once for all who watch it
    transcode: bool
    note: Note
    expires_at: int


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    refusal: Refusal
    streamer_id: str | None = None  # that refused; None: it would be refused on any
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Camera:
    camera_key: int
    site_id: int
    camera_id: str
    name: str
    is_on: bool
    streams: CameraStreams


@dataclass(slots=True)
class _Place:
    """A streamer whose row is locked, and what its viewings use."""

    row: Row
    held: tuple[Held, ...] | None  # None: to be read again
    is_alone: bool  # there is no other that could be asked
    requests: int = 0
    rejections: int = 0


async def admit_all(
    tx: Tx, requests: tuple[Request, ...], policy: AdmissionPolicy
) -> tuple[Admitted | NotAdmitted, ...]:
    """Decides about several viewings one after the other, under one lock of each streamer that is asked.

    NotFound when a camera is not in its principal's reach. The same login asking twice at once on two streamers is a
    Conflict for one of them: asked again, it learns of the other.
    """
    places: dict[str, _Place] = {}
    answers = [await _admit(tx, places, one, policy) for one in requests]
    for streamer_id, place in places.items():
        await tx.run(
            "UPDATE streamers SET requests_total = requests_total + :requests, "
            "rejections_total = rejections_total + :rejections WHERE streamer_id = :streamer_id",
            streamer_id=streamer_id,
            requests=place.requests,
            rejections=place.rejections,
        )
    return tuple(answers)


async def _admit(
    tx: Tx, places: dict[str, _Place], request: Request, policy: AdmissionPolicy
) -> Admitted | NotAdmitted:
    mine, wish, now_ms = Scoped(tx, request.principal), request.wish, request.now_ms
    camera, own = await _camera(mine, wish, now_ms)
    if not camera.is_on:
        return NotAdmitted(Refusal.CAMERA_OFF)
    if wish.kind is Kind.SUGGEST and not await _is_suggested(mine, camera.camera_key, now_ms):
        return NotAdmitted(Refusal.NOT_SUGGESTED)
    noted = await audit.is_noted(mine, _entry(request, camera))
    place = await _locked(tx, places, camera.camera_key, request)
    if place is None:
        return NotAdmitted(Refusal.NO_STREAMER)
    terms, guard = policy.of_units(place.row["total_units"]), streamers.guard_of(place.row)
    held = place.held if place.held is not None else await _held_now(tx, place.row["streamer_id"], now_ms)
    ways = offers(camera.streams, wish.quality, wish.plays, terms)
    answer = decide(Asked(camera.camera_key, wish.kind, ways, own is not None), guard, held, terms)
    place.requests += 1
    if isinstance(answer, Refused):
        place.held = held
        place.rejections += 1
        details = _details(answer, own, guard, policy, now_ms)
        return NotAdmitted(answer.refusal, place.row["streamer_id"], details)
    admitted = await _add(mine, camera, wish.kind, answer, place.row, policy, now_ms)
    one_more = Held(wish.kind, camera.camera_key, answer.quality, answer.units, answer.transcode_units)
    # A suggested camera's viewing takes the place of its prewarmed one.
    place.held = None if wish.kind is Kind.SUGGEST else (*held, one_more)
    if not noted:
        await audit.add_own(mine, _entry(request, camera))
    return admitted


def _entry(request: Request, camera: _Camera) -> audit.Entry:
    return audit.Entry("live_opened", request.now_ms, request.address, "camera", camera.camera_id)


async def _locked(tx: Tx, places: dict[str, _Place], camera_key: int, request: Request) -> _Place | None:
    """The streamer to ask, locked from now on. What a login has elsewhere is known by then, and held by its key."""
    only = next(iter(places.values())) if len(places) == 1 else None
    if only is not None and only.is_alone and not request.tried:
        return only
    streamer_id, is_alone = await streamers.choose(tx, camera_key, request.tried, request.now_ms)
    if streamer_id is None:
        return None
    if streamer_id not in places:
        row = await streamers.lock(tx, streamer_id)
        if row is None:
            return None
        places[streamer_id] = _Place(row, None, is_alone)
    return places[streamer_id]


async def _camera(tx: Scoped, wish: Wish, now_ms: int) -> tuple[_Camera, Row | None]:
    """The camera, and the login's viewing of this kind, whatever it shows; one that is over goes."""
    row = await tx.one(_CAMERA, camera_id=wish.camera_id, user_id=viewer_of(tx.principal), kind=wish.kind.value)
    if row is None:
        raise missing(wish.camera_id)
    camera = _Camera(
        camera_key=row["camera_key"],
        site_id=row["site_id"],
        camera_id=row["camera_id"],
        name=row["name"],
        is_on=bool(row["enabled"]) and not row["do_not_process"],
        streams=streams_of(row),
    )
    if row["own_lease_id"] is None or await _is_over(tx, row, now_ms):
        return camera, None
    return camera, row


async def _is_over(tx: Scoped, row: Row, now_ms: int) -> bool:
    if row["own_valid_until"] >= now_ms:
        return False
    gone = await tx.run(
        "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND lease_id = :lease_id AND valid_until < :now_ms",
        lease_id=row["own_lease_id"],
        now_ms=now_ms,
    )
    return gone > 0


def streams_of(row: Row) -> CameraStreams:
    caps = json.loads(row["caps"]) if row["caps"] is not None else {}
    return CameraStreams(
        has_main=row["main_type"] is not None,
        has_sub=row["sub_type"] is not None,
        main_codec=_CODEC_OF_SOURCE.get(row["main_type"] or "") or _codec(caps, "main"),
        sub_codec=_CODEC_OF_SOURCE.get(row["sub_type"] or "") or _codec(caps, "sub"),
        is_masked=row["privacy_masks"] is not None and bool(json.loads(row["privacy_masks"])),
    )


def _codec(caps: object, stream: str) -> str | None:
    """What the last probe of the stream found."""
    found = caps.get(stream) if isinstance(caps, dict) else None
    codec = found.get("codec") if isinstance(found, dict) else None
    return codec if isinstance(codec, str) and codec else None


async def _is_suggested(tx: Scoped, camera_key: int, now_ms: int) -> bool:
    row = await tx.one(
        "SELECT camera_key FROM suggestions WHERE tenant_id = :tenant_id AND camera_key = :camera_key "
        "AND until > :now_ms",
        camera_key=camera_key,
        now_ms=now_ms,
    )
    return row is not None


async def _held_now(tx: Tx, streamer_id: str, now_ms: int) -> tuple[Held, ...]:
    """What the streamer's viewings use, after those went that are over. Its row is locked."""
    held, first_ends = await streamers.held_on(tx, streamer_id)
    if first_ends is None or first_ends >= now_ms:
        return held
    await tx.run(
        "DELETE FROM modal_leases WHERE streamer_id = :streamer_id AND valid_until < :now_ms",
        streamer_id=streamer_id,
        now_ms=now_ms,
    )
    # By the rows that are left, not by their times: a heartbeat may have come between.
    held, _ = await streamers.held_on(tx, streamer_id)
    return held


async def _add(
    tx: Scoped, camera: _Camera, kind: Kind, offer: Offer, streamer: Row, policy: AdmissionPolicy, now_ms: int
) -> Admitted:
    lease_id = str(uuid_utils.uuid7())
    ends = expires_at(now_ms, policy)
    if kind is Kind.SUGGEST:
        # Somebody watches now, so the stream is kept by them.
        await tx.run(
            "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND kind = 'prewarm' AND camera_key = :camera_key "
            "AND streamer_id = :streamer_id",
            camera_key=camera.camera_key,
            streamer_id=streamer["streamer_id"],
        )
    await tx.run(
        _INSERT,
        lease_id=lease_id,
        site_id=camera.site_id,
        camera_key=camera.camera_key,
        streamer_id=streamer["streamer_id"],
        user_id=viewer_of(tx.principal),
        session_id=tx.principal.session_id,
        token_id=tx.principal.token_id,
        kind=kind.value,
        quality=offer.quality.value,
        units=offer.units,
        transcode=int(offer.transcode),
        transcode_units=offer.transcode_units,
        expires_at=ends,
        valid_until=valid_until(ends, now_ms, policy),
        now_ms=now_ms,
    )
    return Admitted(
        lease_id=lease_id,
        camera_id=camera.camera_id,
        streamer_id=streamer["streamer_id"],
        public_url=streamer["public_url"],
        port=streamer["port"],
        quality=offer.quality,
        kind=kind,
        units=offer.units,
        transcode=offer.transcode,
        note=offer.note,
        expires_at=ends,
    )


def _details(
    answer: Refused, own: Row | None, guard: Guard, policy: AdmissionPolicy, now_ms: int
) -> dict[str, object]:
    match answer.refusal:
        case Refusal.USER_ALREADY_HAS_MODAL if own is not None:
            return {
                "lease_id": own["own_lease_id"],
                "camera_id": own["own_camera_id"],
                "camera_name": own["own_name"],
            }
        case Refusal.OVER_CAPACITY:
            figures: dict[str, object] = {"units_used": answer.units_used, "units_budget": answer.units_budget}
            return {**figures, "retry_after_sec": RETRY_AFTER_SEC}
        case Refusal.SYSTEM_OVERLOAD:
            ends = (guard.overload_at or now_ms) + policy.overload_hold_sec * 1000
            return {"retry_after_sec": max(RETRY_AFTER_SEC, -(-(ends - now_ms) // 1000))}
    return {}


_CAMERA = """
SELECT c.camera_key, c.site_id, c.camera_id, c.name, c.enabled, c.do_not_process, c.caps, m.source_type AS main_type,
  u.source_type AS sub_type, o.privacy_masks, v.lease_id AS own_lease_id, v.valid_until AS own_valid_until,
  w.camera_id AS own_camera_id, w.name AS own_name
FROM cameras c
LEFT JOIN camera_streams m ON m.camera_key = c.camera_key AND m.kind = 'main'
LEFT JOIN camera_streams u ON u.camera_key = c.camera_key AND u.kind = 'sub'
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
LEFT JOIN modal_leases v ON v.user_id = :user_id AND v.kind = :kind
LEFT JOIN cameras w ON w.camera_key = v.camera_key
WHERE c.tenant_id = :tenant_id AND c.camera_id = :camera_id AND c.deleted_at IS NULL AND IN_REACH(c)"""
_INSERT = """
INSERT INTO modal_leases (lease_id, tenant_id, site_id, camera_key, streamer_id, user_id, session_id, token_id, kind,
  quality, units, transcode, transcode_units, created_at, expires_at, last_heartbeat, valid_until)
VALUES (:lease_id, :tenant_id, :site_id, :camera_key, :streamer_id, :user_id, :session_id, :token_id, :kind, :quality,
  :units, :transcode, :transcode_units, :now_ms, :expires_at, :now_ms, :valid_until)"""
