"""Replaces the key of stored passwords while everything runs, a bounded step at a time.

Every step can be the last one: whichever values were moved are under the new key, the others under the one before,
and both are kept. The next step goes on, whoever makes it.
"""

import asyncio
from dataclasses import dataclass

from camserver.base.credentials import KeyRing, Sealed, key_id, open_sealed, seal
from camserver.base.errors import BadInput, DataUnusable
from camserver.base.log import get_logger
from camserver.domain.people import Principal
from camserver.store import Store
from camserver.store.credentials import PLACES, Kept, count_of_keys, count_of_other_keys, of_other_keys, reseal

log = get_logger(__name__)

STEP_ROWS = 200


@dataclass(frozen=True, slots=True)
class Step:
    moved: int
    unreadable: int  # sealed with a key that is not there: left as they are
    left: int
    cursor: str | None  # where the next step begins; None: this was the last one


async def is_unfinished(store: Store, keys: KeyRing) -> bool:
    """Whether values of the key before are there: they are moved before there is a newer one still."""
    before = keys.before
    return bool(before) and await store.read(count_of_keys, before) > 0


async def step(store: Store, keys: KeyRing, cursor: str | None, by: Principal, address: str, now_ms: int) -> Step:
    """Moves the next values to the key that seals now."""
    place, after = _position(cursor)
    current = key_id(keys.sealing)
    found = await store.read(of_other_keys, place, current, after, STEP_ROWS)
    moves, unreadable = await asyncio.to_thread(_resealed, keys, found)
    moved = await store.write(reseal, moves, by, address, now_ms) if moves else 0
    left = await store.read(count_of_other_keys, current)
    if len(found) == STEP_ROWS:
        return Step(moved, unreadable, left, f"{place}:{found[-1].row_id}")
    following = PLACES.index(place) + 1
    return Step(moved, unreadable, left, f"{PLACES[following]}:0" if following < len(PLACES) else None)


def _resealed(keys: KeyRing, found: tuple[Kept, ...]) -> tuple[tuple[tuple[Kept, Sealed], ...], int]:
    moves: list[tuple[Kept, Sealed]] = []
    unreadable = 0
    for kept in found:
        try:
            plain = open_sealed(keys, kept.tenant_id, kept.owner, kept.sealed)
        except DataUnusable as error:
            log.warning("a stored password can't be moved to the new key", place=kept.place, cause=error.message)
            unreadable += 1
            continue
        moves.append((kept, seal(keys, kept.tenant_id, kept.owner, plain)))
    return tuple(moves), unreadable


def _position(cursor: str | None) -> tuple[str, int]:
    if cursor is None:
        return PLACES[0], 0
    place, _, after = cursor.partition(":")
    if place not in PLACES or not after.isdecimal() or len(after) > 18:
        raise BadInput("this is no position of a rotation; begin again without one", reason="bad_cursor")
    return place, int(after)
