"""Cooldowns and hourly caps of receivers, and the right to send to one about a camera.

A cooldown starts only with a message that was sent (decision 24). So that two dispatchers never both find it over,
whoever is about to send *reserves* the receiver for the camera first; the reservation ends with the attempt, or by
itself when its holder died. What is held back is counted here, and the next message takes the count along.

A receiver and camera have up to a few rows: '' is the camera's cooldown and its count, the primary event's or issue's
own scope is another, and '~' is the reservation, whose `until` tells one holder from the next.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

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


Place = tuple[int, int]  # a receiver and a camera
Answer = Reserved | Busy | Held


async def reserve(tx: Tx, sending: Sending, now_ms: int) -> Answer:
    """Takes the right to send, when the cooldowns are over and the hour has room. The hour's count is raised here,
    so that a cap is never passed; an attempt that fails gives it back."""
    [answer] = await reserve_each(tx, (sending,), now_ms)
    return answer


async def reserve_each(tx: Tx, sendings: tuple[Sending, ...], now_ms: int) -> tuple[Answer, ...]:
    """As `reserve` for one after the other, in one transaction and with few statements. Receivers and cameras are
    locked in their order and hours behind them, so that two who do this don't wait for each other in turn."""
    held = await _lock_reservations(tx, {_place(one): one.tenant_id for one in sendings})
    # In statements of their own: one that waited for a lock does not see rows that its former holder added.
    cooling = await _read_cooldowns(tx, sendings)
    ran_out = {place: until for place, until in held.items() if 0 < until <= now_ms}
    held = {place: 0 if place in ran_out else until for place, until in held.items()}
    # Whoever held these died, or takes so long that it is as good as dead: the hours get their places back.
    await _add_sent(tx, Counter((place[0], _counted_in(until)) for place, until in ran_out.items()), -1)
    hour_at = hour_of(now_ms)
    wanted = {
        one.receiver_id: one.tenant_id for one in sendings if not held[_place(one)] and cooling.lets(one, now_ms)
    }
    sent = await _lock_hours(tx, wanted, hour_at)
    before = dict(sent)
    answers: list[Answer] = []
    for one in sendings:
        place, receiver_id = _place(one), one.receiver_id
        if held[place]:
            answers.append(Busy(held[place]))
        elif not cooling.lets(one, now_ms):
            answers.append(Held(Verdict.COOLDOWN, cooling.ends(one)))
        elif one.hourly_cap is not None and sent[receiver_id] >= one.hourly_cap:
            answers.append(Held(Verdict.CAP, hour_at + HOUR_MS))
        else:
            sent[receiver_id] += 1
            held[place] = now_ms + RESERVED_MS
            is_last = sent[receiver_id] == one.hourly_cap
            answers.append(Reserved(one, held[place], hour_at, cooling.suppressed(one), is_last))
    added = {(receiver_id, hour_at): count - before[receiver_id] for receiver_id, count in sent.items()}
    await _add_sent(tx, added, 1)
    reserved = {_place(one.sending) for one in answers if isinstance(one, Reserved)}
    await _set_reservations(tx, {place: held[place] for place in reserved | ran_out.keys()})
    return tuple(answers)


def _place(sending: Sending) -> Place:
    return sending.receiver_id, sending.camera_key


@dataclass(frozen=True, slots=True)
class _Cooling:
    """Cooldowns as they were read, by receiver, camera and scope: until when, and how many were held back."""

    rows: Mapping[tuple[int, int, str], tuple[int, int]]

    def _until(self, sending: Sending, scope: str) -> int | None:
        row = self.rows.get((*_place(sending), scope))
        return None if row is None else row[0]

    def lets(self, sending: Sending, now_ms: int) -> bool:
        return may_send(sending.reason, self._until(sending, sending.scope), self._until(sending, CAMERA), now_ms)

    def ends(self, sending: Sending) -> int:
        return max(self._until(sending, sending.scope) or 0, self._until(sending, CAMERA) or 0)

    def suppressed(self, sending: Sending) -> int:
        return self.rows.get((*_place(sending), CAMERA), (0, 0))[1]


async def _read_cooldowns(tx: Tx, sendings: Sequence[Sending]) -> _Cooling:
    scopes = sorted({CAMERA, *(one.scope for one in sendings)})
    found: dict[tuple[int, int, str], tuple[int, int]] = {}
    for receiver_id, camera_keys in _by_receiver(_place(one) for one in sendings):
        rows = await tx.all(_COOLDOWNS, receiver_id=receiver_id, camera_keys=camera_keys, scopes=scopes)
        for row in rows:
            found[receiver_id, row["camera_key"], row["scope"]] = row["until"], row["suppressed"]
    return _Cooling(found)


def _by_receiver(places: Iterable[Place]) -> Iterator[tuple[int, list[int]]]:
    """The cameras of each receiver, all in order."""
    for receiver_id, group in groupby(sorted(set(places)), key=lambda place: place[0]):
        yield receiver_id, [camera_key for _, camera_key in group]


async def _lock_reservations(tx: Tx, tenant_ids: Mapping[Place, int]) -> dict[Place, int]:
    """Until when each place is reserved; makes the rows that are missing."""
    found: dict[Place, int] = {}
    for receiver_id, camera_keys in _by_receiver(tenant_ids):
        found |= await _locked(tx, receiver_id, camera_keys)
        missing = [(receiver_id, key) for key in camera_keys if (receiver_id, key) not in found]
        if missing:
            rows = [_row(place, tenant_ids[place], scope=RESERVATION) for place in missing]
            await tx.at_once(_ENSURE, rows)
            found |= await _locked(tx, receiver_id, [key for _, key in missing])
    return found


async def _locked(tx: Tx, receiver_id: int, camera_keys: list[int]) -> dict[Place, int]:
    rows = await tx.all(_LOCK, receiver_id=receiver_id, camera_keys=camera_keys, scope=RESERVATION)
    return {(receiver_id, row["camera_key"]): row["until"] for row in rows}


def _row(place: Place, tenant_id: int | None = None, **columns: object) -> dict[str, object]:
    tenant = {} if tenant_id is None else {"tenant_id": tenant_id}
    return {"receiver_id": place[0], "camera_key": place[1], **tenant, **columns}


async def _set_reservations(tx: Tx, until: Mapping[Place, int]) -> None:
    if until:
        rows = [_row(place, scope=RESERVATION, until=until[place]) for place in sorted(until)]
        await tx.by_key(_SET_UNTIL, rows)


async def _lock_hours(tx: Tx, tenant_ids: Mapping[int, int], hour_at: int) -> dict[int, int]:
    """How many each receiver got in this hour; makes the rows that are missing, and with a new one, hours long past
    go."""
    if not tenant_ids:
        return {}
    found = await _hours(tx, sorted(tenant_ids), hour_at)
    missing = [receiver_id for receiver_id in sorted(tenant_ids) if receiver_id not in found]
    if missing:
        hours = [{"receiver_id": one, "hour_at": hour_at, "tenant_id": tenant_ids[one]} for one in missing]
        await tx.at_once(_ENSURE_HOUR, hours)
        before = hour_at - HOURS_KEPT * HOUR_MS
        await tx.run(_PRUNE_HOURS, receiver_ids=missing, before=before)
        found |= await _hours(tx, missing, hour_at)
    return found


async def _hours(tx: Tx, receiver_ids: list[int], hour_at: int) -> dict[int, int]:
    rows = await tx.all(_LOCK_HOURS, receiver_ids=receiver_ids, hour_at=hour_at)
    return {row["receiver_id"]: int(row["sent"]) for row in rows}


async def _add_sent(tx: Tx, counts: Mapping[tuple[int, int], int], sign: int) -> None:
    """Adds to, or takes from, what receivers got in hours."""
    rows = [
        {"receiver_id": receiver_id, "hour_at": hour_at, "added": sign * count}
        for (receiver_id, hour_at), count in sorted(counts.items())
        if count
    ]
    if rows:
        await tx.by_key(_ADD_SENT, rows)


async def look(tx: Tx, sending: Sending, now_ms: int) -> tuple[int | None, int]:
    """Until when the cooldowns would hold a message back, None when they would not; and the count it would tell."""
    cooling = await _read_cooldowns(tx, (sending,))
    until = None if cooling.lets(sending, now_ms) else cooling.ends(sending)
    return until, cooling.suppressed(sending)


async def sent(tx: Tx, reserved: Reserved, policy: NotifyPolicy, now_ms: int) -> None:
    """Starts the cooldowns and ends the reservation, in the transaction that ends the delivery."""
    await sent_each(tx, ((reserved, policy, now_ms),))


async def sent_each(tx: Tx, messages: Sequence[tuple[Reserved, NotifyPolicy, int]]) -> None:
    """As `sent` for one after the other, with few statements."""
    started: dict[tuple[Place, str], dict[str, object]] = {}
    told: Counter[Place] = Counter()
    for reserved, policy, now_ms in messages:
        sending = reserved.sending
        place = _place(sending)
        told[place] += reserved.held_back
        ends = cooldown_ends(sending.reason, policy, now_ms)
        for scope, until in ((sending.scope, ends[0]), (CAMERA, ends[1])) if ends is not None else ():
            started[place, scope] = _row(place, sending.tenant_id, scope=scope, until=until)
    if started:
        await tx.at_once(_START, [started[key] for key in sorted(started)])
    # More may have come while they were sent: those are for the next message.
    told_rows = [_row(place, scope=CAMERA, told=count) for place, count in sorted(told.items()) if count]
    if told_rows:
        await tx.by_key(_TOLD, told_rows)
    ended = await _end_reservations(tx, [reserved for reserved, _, _ in messages])
    # Somebody took these over and gave the hours' places back; but they were sent.
    await _add_sent(
        tx, Counter(_hour(one) for (one, _, _), is_own in zip(messages, ended, strict=True) if not is_own), 1
    )


async def given_up(tx: Tx, reserved: Reserved) -> None:
    """After an attempt that failed: no cooldown starts, and the hour gets its place back, once."""
    await given_up_each(tx, ((reserved,),))


async def given_up_each(tx: Tx, attempts: Sequence[tuple[Reserved]]) -> None:
    """As `given_up` for one after the other, with few statements."""
    given = [reserved for (reserved,) in attempts]
    ended = await _end_reservations(tx, given)
    await _add_sent(tx, Counter(_hour(one) for one, is_own in zip(given, ended, strict=True) if is_own), -1)


async def held_back(tx: Tx, tenant_id: int, receiver_id: int, camera_key: int, now_ms: int) -> None:
    """Counts a notice that the receiver does not get, for the next message about this camera."""
    await held_back_each(tx, ((tenant_id, receiver_id, camera_key, now_ms),))


async def held_back_each(tx: Tx, notices: Sequence[tuple[int, int, int, int]]) -> None:
    """As `held_back` for one after the other, with few statements."""
    tenant_ids = {receiver_id: tenant_id for tenant_id, receiver_id, _, _ in notices}
    places = Counter((receiver_id, camera_key) for _, receiver_id, camera_key, _ in notices)
    await tx.at_once(
        _HOLD_BACK,
        [_row(place, tenant_ids[place[0]], scope=CAMERA, added=places[place]) for place in sorted(places)],
    )
    hours = Counter((hour_of(now_ms), receiver_id) for _, receiver_id, _, now_ms in notices)
    for hour_at, group in groupby(sorted(hours), key=lambda hour: hour[0]):
        receiver_ids = [receiver_id for _, receiver_id in group]
        await _lock_hours(tx, {one: tenant_ids[one] for one in receiver_ids}, hour_at)
        counts = [{"receiver_id": one, "hour_at": hour_at, "added": hours[hour_at, one]} for one in receiver_ids]
        await tx.by_key(_HOLD_BACK_HOUR, counts)


def _counted_in(until: int) -> int:
    """The hour that a reservation was counted in."""
    return hour_of(until - RESERVED_MS)


def _hour(reserved: Reserved) -> tuple[int, int]:
    return reserved.sending.receiver_id, reserved.hour_at


async def _end_reservations(tx: Tx, reserved: Sequence[Reserved]) -> list[bool]:
    """False for those that ran out and that somebody else took over."""
    held: dict[Place, int] = {}
    for receiver_id, camera_keys in _by_receiver(_place(one.sending) for one in reserved):
        held |= await _locked(tx, receiver_id, camera_keys)
    ended: dict[Place, int] = {}
    answers = []
    for one in reserved:
        place = _place(one.sending)
        is_own = held.get(place) == one.until
        if is_own:
            held[place] = ended[place] = 0
        answers.append(is_own)
    await _set_reservations(tx, ended)
    return answers


_COLUMNS = "(receiver_id, camera_key, scope, tenant_id, until, suppressed)"
_ENSURE = Sql(
    f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, 0) "
    "ON CONFLICT DO NOTHING",
    mariadb=f"INSERT IGNORE INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, 0)",
)
_LOCK = """
SELECT camera_key, until FROM cooldowns
WHERE receiver_id = :receiver_id AND camera_key IN (:camera_keys...) AND scope = :scope
ORDER BY camera_key FOR UPDATE"""
_COOLDOWNS = """
SELECT camera_key, scope, until, suppressed FROM cooldowns
WHERE receiver_id = :receiver_id AND camera_key IN (:camera_keys...) AND scope IN (:scopes...)"""
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
_HOLD_BACK = Sql(
    f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, :added) "
    "ON CONFLICT (receiver_id, camera_key, scope) "
    "DO UPDATE SET suppressed = cooldowns.suppressed + excluded.suppressed",
    mariadb=f"INSERT INTO cooldowns {_COLUMNS} VALUES (:receiver_id, :camera_key, :scope, :tenant_id, 0, :added) "
    "ON DUPLICATE KEY UPDATE suppressed = suppressed + VALUES(suppressed)",
)
_LOCK_HOURS = """
SELECT receiver_id, sent FROM receiver_hours
WHERE receiver_id IN (:receiver_ids...) AND hour_at = :hour_at ORDER BY receiver_id FOR UPDATE"""
_PRUNE_HOURS = "DELETE FROM receiver_hours WHERE receiver_id IN (:receiver_ids...) AND hour_at < :before"
_HOLD_BACK_HOUR = """
UPDATE receiver_hours SET suppressed = suppressed + :added
WHERE receiver_id = :receiver_id AND hour_at = :hour_at"""
_ENSURE_HOUR = Sql(
    "INSERT INTO receiver_hours (receiver_id, hour_at, tenant_id, sent, suppressed) "
    "VALUES (:receiver_id, :hour_at, :tenant_id, 0, 0) ON CONFLICT DO NOTHING",
    mariadb="INSERT IGNORE INTO receiver_hours (receiver_id, hour_at, tenant_id, sent, suppressed) "
    "VALUES (:receiver_id, :hour_at, :tenant_id, 0, 0)",
)
_ADD_SENT = """
UPDATE receiver_hours SET sent = CASE WHEN sent + :added < 0 THEN 0 ELSE sent + :added END
WHERE receiver_id = :receiver_id AND hour_at = :hour_at"""
