"""Copies of pictures at archives: what a copy is made of, what is there, and what is to be removed again.

A row of `drive_objects` is a copy that arrived; it is written in the transaction that ends its delivery. `expires_at`
says when it goes and, from the moment it was removed, when its row is forgotten: what is due is found by one index.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import uuid_utils

from camserver.domain.archive import DAY_MS, once_key
from camserver.domain.cases import CaseState, holds_items
from camserver.domain.facts import DeliveryKind
from camserver.domain.retention import Retention
from camserver.store import deliveries
from camserver.store.cameras import PicturePlace, public_camera_id
from camserver.store.deliveries import NewDelivery
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped, Tx

BATCH = 200
# How long the row of a copy that was removed stays, for people to read.
REMOVED_KEPT_MS = 30 * DAY_MS
# A copy whose picture a case holds is looked at again after this.
HELD_PAUSE_MS = DAY_MS
QUOTA_REPORT = "archive_quota"
CASE_REASON = "case"


@dataclass(frozen=True, slots=True)
class Case:
    case_id: int
    case_uuid: str


@dataclass(frozen=True, slots=True)
class ArchivedPicture:
    """A frame as far as archives want to know."""

    place: PicturePlace | None  # None = it has no picture any more
    site_id: int
    camera_id: str
    timezone: str
    retention: Retention  # its own, in a case or not
    has_full: bool
    cases: tuple[Case, ...]  # those that hold it


@dataclass(frozen=True, slots=True)
class NewCopy:
    """A copy that has just arrived."""

    tenant_id: int
    receiver_id: int
    frame_id: int | None  # of a clip: its event's best
    camera_key: int
    case_id: int | None
    external_id: str
    path: str
    bytes: int
    sha256: str
    retention: Retention
    day: str  # of the site, for the quota
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A picture that was not sent because its camera is over its quota."""

    tenant_id: int
    receiver_id: int
    camera_key: int
    day: str
    bytes: int
    reason: str  # for people


@dataclass(frozen=True, slots=True)
class DueCopy:
    object_id: int
    tenant_id: int
    external_id: str
    bytes: int


# ---------------------------------------------------------------------------------------------------------------
# Copying
# ---------------------------------------------------------------------------------------------------------------


async def picture(tx: Tx, frame_id: int) -> ArchivedPicture | None:
    """None when the frame is gone."""
    row = await tx.one(_PICTURE, frame_id=frame_id)
    if row is None:
        return None
    place = None
    if row["epoch_id"] is not None:
        place = PicturePlace(
            row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"]
        )
    held = await tx.all(_HOLDING_CASES, frame_id=frame_id, event_id=row["event_id"])
    own = row["own_class"] if row["retention_class"] == Retention.CASE else row["retention_class"]
    return ArchivedPicture(
        place=place,
        site_id=row["site_id"],
        camera_id=public_camera_id(row["camera_id"]),
        timezone=row["timezone"],
        retention=Retention(own or Retention.NORMAL),
        has_full=row["full_bytes"] is not None,
        cases=tuple(Case(case["case_id"], case["case_uuid"]) for case in held),
    )


async def case_holds(tx: Tx, case_id: int) -> bool:
    """Whether a case still keeps what is in it."""
    row = await tx.one("SELECT state, hold FROM cases WHERE case_id = :case_id", case_id=case_id)
    return row is not None and holds_items(CaseState(row["state"]), bool(row["hold"]))


async def sent_bytes(tx: Tx, receiver_id: int, camera_key: int, day: str) -> int:
    """What a camera sent to an archive on a day."""
    row = await tx.one(
        "SELECT bytes FROM archive_days WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND day = :day",
        receiver_id=receiver_id,
        camera_key=camera_key,
        day=day,
    )
    return 0 if row is None else int(row["bytes"])


async def holds_copies(tx: Tx, receiver_id: int) -> bool:
    """Whether an archive ever took a copy."""
    row = await tx.one(
        "SELECT object_id FROM drive_objects WHERE receiver_id = :receiver_id LIMIT 1", receiver_id=receiver_id
    )
    return row is not None


async def note_stored(tx: Tx, copy: NewCopy, now_ms: int) -> None:
    """Remembers a copy. Runs in the transaction that ends its delivery, so once."""
    await tx.run(
        _INSERT_COPY,
        tenant_id=copy.tenant_id,
        receiver_id=copy.receiver_id,
        frame_id=copy.frame_id,
        camera_key=copy.camera_key,
        case_id=copy.case_id,
        external_id=copy.external_id,
        path=copy.path,
        bytes=copy.bytes,
        sha256=copy.sha256,
        retention_class=copy.retention.value if copy.case_id is None else Retention.CASE.value,
        expires_at=copy.expires_at,
        now_ms=now_ms,
    )
    if copy.case_id is None:
        await _count_day(tx, copy.tenant_id, copy.receiver_id, copy.camera_key, copy.day, copy.bytes, 0)


async def note_left_out(tx: Tx, left_out: LeftOut, now_ms: int) -> None:
    """Counts a picture that was left out, and tells people once a day and camera, with how many there were."""
    await _count_day(tx, left_out.tenant_id, left_out.receiver_id, left_out.camera_key, left_out.day, 0, 1)
    told = await tx.run(
        "UPDATE sweep_reports SET count = count + 1, bytes = bytes + :bytes WHERE tenant_id = :tenant_id "
        "AND at >= :since AND what = :what AND reason = :reason",
        tenant_id=left_out.tenant_id,
        since=now_ms - 2 * DAY_MS,
        what=QUOTA_REPORT,
        reason=left_out.reason[:255],
        bytes=left_out.bytes,
    )
    if not told:
        await tx.run(
            "INSERT INTO sweep_reports (tenant_id, at, what, count, bytes, reason) "
            "VALUES (:tenant_id, :now_ms, :what, 1, :bytes, :reason)",
            tenant_id=left_out.tenant_id,
            now_ms=now_ms,
            what=QUOTA_REPORT,
            bytes=left_out.bytes,
            reason=left_out.reason[:255],
        )
        tx.changed(tenant_id=left_out.tenant_id, kind="retention", at_ms=now_ms)


async def _count_day(
    tx: Tx, tenant_id: int, receiver_id: int, camera_key: int, day: str, sent: int, left_out: int
) -> None:
    await tx.run(
        _COUNT_DAY,
        receiver_id=receiver_id,
        camera_key=camera_key,
        day=day,
        tenant_id=tenant_id,
        bytes=sent,
        suppressed=left_out,
    )


async def archive_for_case(tx: Scoped, case_id: int, case_uuid: str, frame_ids: Sequence[int], now_ms: int) -> None:
    """Queues copies of frames that a case holds now, one for each archive; those that were queued before stay one.

    In the transaction that adds them to the case. Without archives nothing happens.
    """
    receivers = await tx.all(
        "SELECT receiver_id FROM receivers WHERE tenant_id = :tenant_id AND enabled = 1 "
        "AND kind IN ('folder','s3','drive') ORDER BY receiver_id"
    )
    if not receivers or not frame_ids:
        return
    frames = await tx.all(
        "SELECT frame_id, site_id, camera_key, event_id FROM frames WHERE tenant_id = :tenant_id "
        "AND frame_id IN (:frame_ids...) AND epoch_id IS NOT NULL ORDER BY frame_id",
        frame_ids=sorted(frame_ids),
    )
    new = [
        NewDelivery(
            delivery_uuid=str(uuid_utils.uuid7()),
            tenant_id=tx.principal.tenant_id,
            kind=DeliveryKind.COPY,
            reason=CASE_REASON,
            request={"case_id": case_id, "case_uuid": case_uuid},
            site_id=frame["site_id"],
            camera_key=frame["camera_key"],
            frame_id=frame["frame_id"],
            event_id=frame["event_id"],
            receiver_id=receiver["receiver_id"],
            once_key=once_key(frame["frame_id"], receiver["receiver_id"], case_id),
        )
        for frame in frames
        for receiver in receivers
    ]
    await deliveries.add_own(tx, tuple(new), now_ms)


_PICTURE = """
SELECT f.frame_uuid, f.tenant_id, f.site_id, f.camera_key, f.captured_at, f.epoch_id, f.full_bytes, f.event_id,
  f.retention_class, f.own_class, c.camera_id, s.timezone
FROM frames f JOIN cameras c ON c.camera_key = f.camera_key JOIN sites s ON s.site_id = f.site_id
WHERE f.frame_id = :frame_id"""
_HOLDING_CASES = """
SELECT DISTINCT c.case_id, c.case_uuid FROM case_items i JOIN cases c ON c.case_id = i.case_id
WHERE i.holds = 1 AND ((i.kind = 'frame' AND i.object_id = :frame_id)
  OR (i.kind = 'event' AND i.object_id = :event_id)) ORDER BY c.case_id"""
_INSERT_COPY = """
INSERT INTO drive_objects (tenant_id, receiver_id, frame_id, camera_key, case_id, external_id, path, bytes, sha256,
  retention_class, archived_at, expires_at)
VALUES (:tenant_id, :receiver_id, :frame_id, :camera_key, :case_id, :external_id, :path, :bytes, :sha256,
  :retention_class, :now_ms, :expires_at)"""
_DAY = """
INSERT INTO archive_days (receiver_id, camera_key, day, tenant_id, bytes, suppressed)
VALUES (:receiver_id, :camera_key, :day, :tenant_id, :bytes, :suppressed)"""
_COUNT_DAY = Sql(
    f"""{_DAY} ON CONFLICT (receiver_id, camera_key, day) DO UPDATE SET
  bytes = archive_days.bytes + excluded.bytes, suppressed = archive_days.suppressed + excluded.suppressed""",
    mariadb=f"""{_DAY} ON DUPLICATE KEY UPDATE
  bytes = bytes + VALUES(bytes), suppressed = suppressed + VALUES(suppressed)""",
)


# ---------------------------------------------------------------------------------------------------------------
# Removing
# ---------------------------------------------------------------------------------------------------------------


async def archives(tx: Tx) -> tuple[int, ...]:
    """The receivers that have copies, removed ones too; by jumps from one to the next in the index."""
    found: list[int] = []
    while True:
        row = await tx.one(
            "SELECT min(receiver_id) AS receiver_id FROM drive_objects WHERE receiver_id > :after",
            after=found[-1] if found else 0,
        )
        if row is None or row["receiver_id"] is None:
            return tuple(found)
        found.append(row["receiver_id"])


async def release_closed(tx: Tx, expires_at: int) -> int:
    """Gives the copies of closed cases an end; how many. A case that is opened again keeps what is left."""
    rows = await tx.all(_OF_CLOSED)
    if rows:
        await tx.run(
            "UPDATE drive_objects SET expires_at = :expires_at WHERE object_id IN (:object_ids...)",
            expires_at=expires_at,
            object_ids=[row["object_id"] for row in rows],
        )
    return len(rows)


async def due(tx: Tx, receiver_id: int, now_ms: int) -> tuple[DueCopy, ...]:
    """Copies of an archive whose time has come, oldest first. What a case holds is put off."""
    rows = await tx.all(_DUE, receiver_id=receiver_id, now_ms=now_ms)
    over: list[DueCopy] = []
    forgotten, kept, put_off_ids = [], [], []
    for row in rows:
        if row["deleted_at"] is not None:
            forgotten.append(row["object_id"])
        elif row["case_id"] is not None and _is_of_open_case(row):
            kept.append(row["object_id"])
        elif row["case_id"] is None and row["frame_class"] == Retention.CASE.value:
            put_off_ids.append(row["object_id"])
        else:
            over.append(DueCopy(row["object_id"], row["tenant_id"], row["external_id"], row["bytes"]))
    if forgotten:
        await tx.run("DELETE FROM drive_objects WHERE object_id IN (:object_ids...)", object_ids=forgotten)
    if kept:
        # Its case was opened again.
        await tx.run(
            "UPDATE drive_objects SET expires_at = NULL WHERE object_id IN (:object_ids...)", object_ids=kept
        )
    if put_off_ids:
        await put_off(tx, put_off_ids, now_ms + HELD_PAUSE_MS)
    return tuple(over)


def _is_of_open_case(row: Row) -> bool:
    if row["case_state"] is None:
        return False
    return holds_items(CaseState(row["case_state"]), bool(row["case_hold"]))


async def note_removed(tx: Tx, object_ids: Sequence[int], now_ms: int) -> None:
    """These copies are gone; their rows stay for a while."""
    await tx.run(
        "UPDATE drive_objects SET deleted_at = :now_ms, expires_at = :forgotten_at "
        "WHERE object_id IN (:object_ids...)",
        object_ids=list(object_ids),
        now_ms=now_ms,
        forgotten_at=now_ms + REMOVED_KEPT_MS,
    )


async def put_off(tx: Tx, object_ids: Sequence[int], until_ms: int) -> None:
    """These could not be removed now; others get their turn."""
    await tx.run(
        "UPDATE drive_objects SET expires_at = :until_ms WHERE object_id IN (:object_ids...)",
        object_ids=list(object_ids),
        until_ms=until_ms,
    )


async def forget_unreachable(tx: Tx, receiver_id: int, now_ms: int) -> int:
    """Forgets the copies of an archive that was removed, when their time has come; they stay where they are."""
    if await tx.one("SELECT receiver_id FROM receivers WHERE receiver_id = :receiver_id", receiver_id=receiver_id):
        return 0
    rows = await tx.all(_DUE, receiver_id=receiver_id, now_ms=now_ms)
    if rows:
        await tx.run(
            "DELETE FROM drive_objects WHERE object_id IN (:object_ids...)",
            object_ids=[row["object_id"] for row in rows],
        )
    return len(rows)


_DUE = f"""
SELECT o.object_id, o.tenant_id, o.external_id, o.bytes, o.deleted_at, o.case_id, f.retention_class AS frame_class,
  c.state AS case_state, c.hold AS case_hold
FROM drive_objects o LEFT JOIN frames f ON f.frame_id = o.frame_id LEFT JOIN cases c ON c.case_id = o.case_id
WHERE o.receiver_id = :receiver_id AND o.expires_at <= :now_ms ORDER BY o.expires_at LIMIT {BATCH}"""
_OF_CLOSED = f"""
SELECT o.object_id FROM drive_objects o LEFT JOIN cases c ON c.case_id = o.case_id
WHERE o.case_id IS NOT NULL AND o.expires_at IS NULL AND (c.case_id IS NULL OR (c.state = 'closed' AND c.hold = 0))
ORDER BY o.object_id LIMIT {BATCH}"""
