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
    used,
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
    units: int  # what it added to those in use: a transcode is paid by the first who watches it
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


@dataclass(frozen=True, slots=True)
class _Own:
    """A viewing that a login has already, whatever it shows."""

    lease_id: str
    camera_id: str
    name: str
    valid_until: int


@dataclass(slots=True)
class _Place:
    """A streamer whose row is locked, and what its viewings use."""

    row: Row
    held: tuple[Held, ...]
    is_alone: bool  # there is no other that could be asked
    requests: int = 0
    rejections: int = 0


@dataclass(slots=True)
class _Batch:
    """Requests that are decided together: the facts, which were read once for all, and what is to be written."""

    cameras: dict[tuple[int, str], _Camera]  # by tenant and name
    own: dict[tuple[str, Kind], _Own]  # by login and kind
    noted: set[audit.Look]  # that need not be noted again
    places: dict[str, _Place] = field(default_factory=dict)
    added: list[dict[str, object]] = field(default_factory=list)
    looks: list[audit.Look] = field(default_factory=list)


async def admit_all(
    tx: Tx, requests: tuple[Request, ...], policy: AdmissionPolicy
) -> tuple[Admitted | NotAdmitted, ...]:
    """Decides about several viewings one after the other, under one lock of each streamer that is asked.

    However many they are, they take the same few statements. NotFound when a camera is not in its principal's reach.
    The same login asking twice at once on two streamers is a Conflict for one of them: asked again, it learns of the
    other.
    """
    batch = _Batch(await _cameras(tx, requests), await _own(tx, requests), await _noted(tx, requests))
    answers = [await _admit(tx, batch, one, policy) for one in requests]
    await tx.many(_INSERT, batch.added)
    await audit.add_looks(tx, batch.looks)
    for streamer_id, place in batch.places.items():
        await tx.run(
            "UPDATE streamers SET requests_total = requests_total + :requests, "
            "rejections_total = rejections_total + :rejections WHERE streamer_id = :streamer_id",
            streamer_id=streamer_id,
            requests=place.requests,
            rejections=place.rejections,
        )
    return tuple(answers)


async def _admit(tx: Tx, batch: _Batch, request: Request, policy: AdmissionPolicy) -> Admitted | NotAdmitted:
    principal, wish, now_ms = request.principal, request.wish, request.now_ms
    camera = batch.cameras.get((principal.tenant_id, wish.camera_id))
    if camera is None or not principal.reaches(camera.site_id, camera.camera_key):
        raise missing(wish.camera_id)
    if not camera.is_on:
        return NotAdmitted(Refusal.CAMERA_OFF)
    if wish.kind is Kind.SUGGEST and not await _is_suggested(Scoped(tx, principal), camera.camera_key, now_ms):
        return NotAdmitted(Refusal.NOT_SUGGESTED)
    own = await _still_own(tx, batch, request)
    place = await _locked(tx, batch.places, camera.camera_key, request)
    if place is None:
        return NotAdmitted(Refusal.NO_STREAMER)
    terms, guard = policy.of_units(place.row["total_units"]), streamers.guard_of(place.row)
    ways = offers(camera.streams, wish.quality, wish.plays, terms)
    answer = decide(Asked(camera.camera_key, wish.kind, ways, own is not None), guard, place.held, terms)
    place.requests += 1
    if isinstance(answer, Refused):
        place.rejections += 1
        details = _details(answer, own, guard, policy, now_ms)
        return NotAdmitted(answer.refusal, place.row["streamer_id"], details)
    if wish.kind is Kind.SUGGEST:
        await _end_prewarmed(tx, camera, place)
    return _add(batch, request, camera, place, answer, policy)


def _look(request: Request) -> audit.Look:
    entry = audit.Entry("live_opened", request.now_ms, request.address, "camera", request.wish.camera_id)
    return audit.Look.of(request.principal, entry)


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
        places[streamer_id] = _Place(row, await _held_now(tx, streamer_id, request.now_ms), is_alone)
    return places[streamer_id]


# ---------------------------------------------------------------------------------------------------------------
# The facts, for all requests at once
# ---------------------------------------------------------------------------------------------------------------


async def _cameras(tx: Tx, requests: tuple[Request, ...]) -> dict[tuple[int, str], _Camera]:
    """The cameras that are asked for, in whoever's reach."""
    asked: dict[int, set[str]] = {}
    for one in requests:
        asked.setdefault(one.principal.tenant_id, set()).add(one.wish.camera_id)
    found = {}
    for tenant_id, camera_ids in asked.items():
        for row in await tx.all(_CAMERAS, tenant_id=tenant_id, camera_ids=sorted(camera_ids)):
            found[tenant_id, str(row["camera_id"])] = _Camera(
                camera_key=row["camera_key"],
                site_id=row["site_id"],
                camera_id=row["camera_id"],
                name=row["name"],
                is_on=bool(row["enabled"]) and not row["do_not_process"],
                streams=streams_of(row),
            )
    return found


async def _own(tx: Tx, requests: tuple[Request, ...]) -> dict[tuple[str, Kind], _Own]:
    """What the logins watch already."""
    rows = await tx.all(_OWN, user_ids=sorted({viewer_of(one.principal) for one in requests}))
    return {
        (row["user_id"], Kind(row["kind"])): _Own(row["lease_id"], row["camera_id"], row["name"], row["valid_until"])
        for row in rows
    }


async def _noted(tx: Tx, requests: tuple[Request, ...]) -> set[audit.Look]:
    return await audit.noted(tx, [_look(one) for one in requests])


async def _still_own(tx: Tx, batch: _Batch, request: Request) -> _Own | None:
    """The login's viewing of this kind; one that is over goes."""
    key = (viewer_of(request.principal), request.wish.kind)
    own = batch.own.get(key)
    if own is None or own.valid_until >= request.now_ms:
        return own
    gone = await tx.run(
        "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND lease_id = :lease_id AND valid_until < :now_ms",
        tenant_id=request.principal.tenant_id,
        lease_id=own.lease_id,
        now_ms=request.now_ms,
    )
    if not gone:
        return own
    del batch.own[key]
    return None


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


async def _end_prewarmed(tx: Tx, camera: _Camera, place: _Place) -> None:
    """Somebody watches the suggested camera now, so its stream is kept by them."""
    await tx.run(
        "DELETE FROM modal_leases WHERE kind = 'prewarm' AND camera_key = :camera_key AND streamer_id = :streamer_id",
        camera_key=camera.camera_key,
        streamer_id=place.row["streamer_id"],
    )
    place.held = tuple(one for one in place.held if (one.kind, one.camera_key) != (Kind.PREWARM, camera.camera_key))


def _add(
    batch: _Batch, request: Request, camera: _Camera, place: _Place, offer: Offer, policy: AdmissionPolicy
) -> Admitted:
    """Counts the viewing from now on; its row is written with the others'."""
    principal, kind, now_ms, streamer = request.principal, request.wish.kind, request.now_ms, place.row
    lease_id = str(uuid_utils.uuid7())
    ends = expires_at(now_ms, policy)
    until = valid_until(ends, now_ms, policy)
    batch.added.append(
        {
            "lease_id": lease_id,
            "tenant_id": principal.tenant_id,
            "site_id": camera.site_id,
            "camera_key": camera.camera_key,
            "streamer_id": streamer["streamer_id"],
            "user_id": viewer_of(principal),
            "session_id": principal.session_id,
            "token_id": principal.token_id,
            "kind": kind.value,
            "quality": offer.quality.value,
            "units": offer.units,
            "transcode": int(offer.transcode),
            "transcode_units": offer.transcode_units,
            "expires_at": ends,
            "valid_until": until,
            "now_ms": now_ms,
        }
    )
    before = used(place.held, kind)
    place.held = (*place.held, Held(kind, camera.camera_key, offer.quality, offer.units, offer.transcode_units))
    batch.own[viewer_of(principal), kind] = _Own(lease_id, camera.camera_id, camera.name, until)
    look = _look(request)
    if look not in batch.noted:
        batch.noted.add(look)
        batch.looks.append(look)
    return Admitted(
        lease_id=lease_id,
        camera_id=camera.camera_id,
        streamer_id=streamer["streamer_id"],
        public_url=streamer["public_url"],
        port=streamer["port"],
        quality=offer.quality,
        kind=kind,
        units=used(place.held, kind) - before,
        transcode=offer.transcode,
        note=offer.note,
        expires_at=ends,
    )


def _details(
    answer: Refused, own: _Own | None, guard: Guard, policy: AdmissionPolicy, now_ms: int
) -> dict[str, object]:
    match answer.refusal:
        case Refusal.USER_ALREADY_HAS_MODAL if own is not None:
            return {"lease_id": own.lease_id, "camera_id": own.camera_id, "camera_name": own.name}
        case Refusal.OVER_CAPACITY:
            figures: dict[str, object] = {"units_used": answer.units_used, "units_budget": answer.units_budget}
            return {**figures, "retry_after_sec": RETRY_AFTER_SEC}
        case Refusal.SYSTEM_OVERLOAD:
            ends = (guard.overload_at or now_ms) + policy.overload_hold_sec * 1000
            return {"retry_after_sec": max(RETRY_AFTER_SEC, -(-(ends - now_ms) // 1000))}
    return {}


_CAMERAS = """
SELECT c.camera_key, c.site_id, c.camera_id, c.name, c.enabled, c.do_not_process, c.caps, m.source_type AS main_type,
  u.source_type AS sub_type, o.privacy_masks
FROM cameras c
LEFT JOIN camera_streams m ON m.camera_key = c.camera_key AND m.kind = 'main'
LEFT JOIN camera_streams u ON u.camera_key = c.camera_key AND u.kind = 'sub'
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
WHERE c.tenant_id = :tenant_id AND c.camera_id IN (:camera_ids...) AND c.deleted_at IS NULL"""
_OWN = """
SELECT v.user_id, v.kind, v.lease_id, v.valid_until, c.camera_id, c.name FROM modal_leases v
JOIN cameras c ON c.camera_key = v.camera_key WHERE v.user_id IN (:user_ids...)"""
_INSERT = """
INSERT INTO modal_leases (lease_id, tenant_id, site_id, camera_key, streamer_id, user_id, session_id, token_id, kind,
  quality, units, transcode, transcode_units, created_at, expires_at, last_heartbeat, valid_until)
VALUES (:lease_id, :tenant_id, :site_id, :camera_key, :streamer_id, :user_id, :session_id, :token_id, :kind, :quality,
  :units, :transcode, :transcode_units, :now_ms, :expires_at, :now_ms, :valid_until)"""
