"""Cooldowns and hourly caps of receivers, and the right to send to one about a camera.

A cooldown starts only with a message that was sent (decision 24). So that two dispatchers never both find it over,
whoever is about to send *reserves* the receiver for the camera first; the reservation ends with the attempt, or by
itself when its holder died. What is held back is counted here, and the next message takes the count along.

A receiver and camera have up to a few rows: '' is the camera's cooldown and its count, the primary event's or issue's
own scope is another, and '~' is the reservation, whose `until` tells one holder from the next.
"""

from dataclasses import dataclass

from camserver.domain.notices import NotifyPolicy, cooldown_ends, may_send
from camserver.domain.routing import HOUR_MS, Verdict, hour_of
from camserver.store.sql import Sql
from camserver.store.tx import Tx

# Longer than any message takes to be sent; see services/dispatcher/notifying.py.
RESERVED_MS = 120_000
HOURS_KEPT = 30 * 24
CAMERA = ""
RESERVATION = "~"


@dataclass(frozen=True, slots=True)
class Sending:
    """A message about a camera that is about to be sent."""

    tenant_id: int
    receiver_id: int
    camera_key: int
    scope: str
    reason: str
    hourly_cap: int | None


@dataclass(frozen=True, slots=True)
class Reserved:
    sending: Sending
    until: int
    hour_at: int  # the hour it was counted in
    held_back: int  # the message says "+N"
    is_last_of_hour: bool


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else is sending to this receiver about this camera."""

    until: int


@dataclass(frozen=True, slots=True)
class Held:
    verdict: Verdict  # COOLDOWN or CAP
    until: int


async def reserve(tx: Tx, sending: Sending, now_ms: int) -> Reserved | Busy | Held:
    """Takes the right to send, when the cooldowns are over and the hour has room. The hour's count is raised here,
    so that a cap is never passed; an attempt that fails gives it back."""
    place = {"receiver_id": sending.receiver_id, "camera_key": sending.camera_key}
    await tx.run(_ENSURE, scope=RESERVATION, tenant_id=sending.tenant_id, **place)
    taken = await tx.one(_LOCK, scope=RESERVATION, **place)
    assert taken is not None
    if taken["until"] > now_ms:
        return Busy(taken["until"])
    if taken["until"]:
        # Whoever held it died, or takes so long that it is as good as dead: the hour gets its place back.
        await tx.run(_ADD_SENT, added=-1, receiver_id=sending.receiver_id, hour_at=_counted_in(taken["until"]))
        await tx.run(_SET_UNTIL, scope=RESERVATION, until=0, **place)
    # In a statement of its own: one that waited for the lock does not see rows that its former holder added.
    rows = await tx.all(_COOLDOWNS, scopes=[CAMERA, sending.scope], **place)
    until = {row["scope"]: row["until"] for row in rows}
    if not may_send(sending.reason, until.get(sending.scope), until.get(CAMERA), now_ms):
        return Held(Verdict.COOLDOWN, max(until.get(sending.scope, 0), until.get(CAMERA, 0)))
    hour_at = hour_of(now_ms)
    sent = await _count_sent(tx, sending, hour_at)
    if sent is None:
        return Held(Verdict.CAP, hour_at + HOUR_MS)
    await tx.run(_SET_UNTIL, scope=RESERVATION, until=now_ms + RESERVED_MS, **place)
    held_back = next((row["suppressed"] for row in rows if row["scope"] == CAMERA), 0)
    return Reserved(sending, now_ms + RESERVED_MS, hour_at, held_back, sent == sending.hourly_cap)


async def _count_sent(tx: Tx, sending: Sending, hour_at: int) -> int | None:
    """How many the receiver got in this hour, with this one; None when that would be too many."""
    hour = {"receiver_id": sending.receiver_id, "hour_at": hour_at}
    await _ensure_hour(tx, sending.tenant_id, sending.receiver_id, hour_at)
    row = await tx.one(
        "SELECT sent FROM receiver_hours WHERE receiver_id = :receiver_id AND hour_at = :hour_at FOR UPDATE", **hour
    )
    sent = 0 if row is None else int(row["sent"])
    if sending.hourly_cap is not None and sent >= sending.hourly_cap:
        return None
    await tx.run(_ADD_SENT, added=1, **hour)
    return sent + 1


async def _ensure_hour(tx: Tx, tenant_id: int, receiver_id: int, hour_at: int) -> None:
    """Makes the hour's row; with a new one, hours long past go."""
    is_new = await tx.run(_ENSURE_HOUR, tenant_id=tenant_id, receiver_id=receiver_id, hour_at=hour_at)
    if is_new:
        await tx.run(
            "DELETE FROM receiver_hours WHERE receiver_id = :receiver_id AND hour_at < :before",
            receiver_id=receiver_id,
            before=hour_at - HOURS_KEPT * HOUR_MS,
        )


async def look(tx: Tx, sending: Sending, now_ms: int) -> tuple[int | None, int]:
    """Until when the cooldowns would hold a message back, None when they would not; and the count it would tell."""
    rows = await tx.all(
        _COOLDOWNS,
        receiver_id=sending.receiver_id,
        camera_key=sending.camera_key,
        scopes=[CAMERA, sending.scope],
    )
    until = {row["scope"]: row["until"] for row in rows}
    held_back = next((row["suppressed"] for row in rows if row["scope"] == CAMERA), 0)
    if may_send(sending.reason, until.get(sending.scope), until.get(CAMERA), now_ms):
        return None, held_back
    return max(until.get(sending.scope, 0), until.get(CAMERA, 0)), held_back


async def sent(tx: Tx, reserved: Reserved, policy: NotifyPolicy, now_ms: int) -> None:
    """Starts the cooldowns and ends the reservation, in the transaction that ends the delivery."""
    sending = reserved.sending
    place = {"receiver_id": sending.receiver_id, "camera_key": sending.camera_key}
    ends = cooldown_ends(sending.reason, policy, now_ms)
    for scope, until in ((sending.scope, ends[0]), (CAMERA, ends[1])) if ends is not None else ():
        await tx.run(_START, scope=scope, tenant_id=sending.tenant_id, until=until, **place)
    if reserved.held_back:
        # More may have come while it was sent: those are for the next message.
        await tx.run(_TOLD, scope=CAMERA, told=reserved.held_back, **place)
    if not await _end_reservation(tx, reserved):
        # Somebody took it over and gave the hour's place back; but this one was sent.
        await tx.run(_ADD_SENT, added=1, receiver_id=sending.receiver_id, hour_at=reserved.hour_at)


async def given_up(tx: Tx, reserved: Reserved) -> None:
    """After an attempt that failed: no cooldown starts, and the hour gets its place back, once."""
    if await _end_reservation(tx, reserved):
        await tx.run(_ADD_SENT, added=-1, receiver_id=reserved.sending.receiver_id, hour_at=reserved.hour_at)


async def held_back(tx: Tx, tenant_id: int, receiver_id: int, camera_key: int, now_ms: int) -> None:
    """Counts a notice that the receiver does not get, for the next message about this camera."""
    place = {"receiver_id": receiver_id, "camera_key": camera_key}
    await tx.run(_ENSURE, scope=CAMERA, tenant_id=tenant_id, **place)
    await tx.run(
        "UPDATE cooldowns SET suppressed = suppressed + 1 "
        "WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND scope = :scope",
        scope=CAMERA,
        **place,
    )
    hour = {"receiver_id": receiver_id, "hour_at": hour_of(now_ms)}
    await _ensure_hour(tx, tenant_id, receiver_id, hour["hour_at"])
    await tx.run(
        "UPDATE receiver_hours SET suppressed = suppressed + 1 "
        "WHERE receiver_id = :receiver_id AND hour_at = :hour_at",
        **hour,
    )


def _counted_in(until: int) -> int:
    """The hour that a reservation was counted in."""
    return hour_of(until - RESERVED_MS)


async def _end_reservation(tx: Tx, reserved: Reserved) -> bool:
    """False when it ran out and somebody else took it over."""
    ended = await tx.run(
        "UPDATE cooldowns SET until = 0 WHERE receiver_id = :receiver_id AND camera_key = :camera_key "
        "AND scope = :scope AND until = :until",
        receiver_id=reserved.sending.receiver_id,
        camera_key=reserved.sending.camera_key,
        scope=RESERVATION,
        until=reserved.until,
    )
    return ended > 0


_COLUMNS = "(receiver_id, camera_key, scope, tenant_id, until, suppressed)"
_ENSURE = Sql(
    f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, 0) "
    "ON CONFLICT DO NOTHING",
    mariadb=f"INSERT IGNORE INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, 0)",
)
_LOCK = """
SELECT until FROM cooldowns
WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND scope = :scope FOR UPDATE"""
_COOLDOWNS = """
SELECT scope, until, suppressed FROM cooldowns
WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND scope IN (:scopes...)"""
_SET_UNTIL = """
UPDATE cooldowns SET until = :until
WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND scope = :scope"""
_START = Sql(
    f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, :until, 0) "
    "ON CONFLICT (receiver_id, camera_key, scope) DO UPDATE SET until = excluded.until",
    mariadb=f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, :until, 0) "
    "ON DUPLICATE KEY UPDATE until = VALUES(until)",
)
_TOLD = """
UPDATE cooldowns SET suppressed = CASE WHEN suppressed > :told THEN suppressed - :told ELSE 0 END
WHERE receiver_id = :receiver_id AND camera_key = :camera_key AND scope = :scope"""
_ENSURE_HOUR = Sql(
    "INSERT INTO receiver_hours (receiver_id, hour_at, tenant_id, sent, suppressed) "
    "VALUES (:receiver_id, :hour_at, :tenant_id, 0, 0) ON CONFLICT DO NOTHING",
    mariadb="INSERT IGNORE INTO receiver_hours (receiver_id, hour_at, tenant_id, sent, suppressed) "
    "VALUES (:receiver_id, :hour_at, :tenant_id, 0, 0)",
)
_ADD_SENT = """
UPDATE receiver_hours SET sent = CASE WHEN sent + :added < 0 THEN 0 ELSE sent + :added END
WHERE receiver_id = :receiver_id AND hour_at = :hour_at"""
