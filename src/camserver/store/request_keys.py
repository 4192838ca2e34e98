"""Requests that must not be done twice: the key they carry is written in the transaction of what they change.

So a key is there if and only if its request was done. What was answered is written down right behind it; when that
did not come to pass (the process died between the two), it is known that the request was done, and not what was said.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from camserver.base.errors import Conflict, TooManyTries
from camserver.domain.people import Principal
from camserver.store.core import in_name_logged, unlogged
from camserver.store.sql import Sql
from camserver.store.tx import Scoped, Tx

R = TypeVar("R")

KEPT_MS = 86_400_000
KEYS_PER_CALLER_MAX = 10_000
# Fits the column on all databases, whatever its characters are.
BODY_MAX_BYTES = 60_000
SWEEP_BATCH = 1_000


class Repeated(Conflict):
    """The same key was used before. Whoever claims it looks up what was answered then."""

    code = "repeated"


@dataclass(frozen=True, slots=True)
class Claim:
    caller: str
    key_hash: str
    fingerprint: str
    now_ms: int

    def columns(self) -> dict[str, object]:
        return {"caller": self.caller, "key_hash": self.key_hash}


@dataclass(frozen=True, slots=True)
class Kept:
    fingerprint: str
    status: int | None  # None: what was answered is not known
    body: str | None


async def find(tx: Scoped, claim: Claim) -> Kept | None:
    row = await tx.one(
        "SELECT fingerprint, status, body FROM request_keys WHERE tenant_id = :tenant_id AND caller = :caller "
        "AND key_hash = :key_hash AND created_at > :before",
        before=claim.now_ms - KEPT_MS,
        **claim.columns(),
    )
    return None if row is None else Kept(row["fingerprint"], row["status"], row["body"])


async def once(
    tx: Tx,
    principal: Principal,
    claim: Claim,
    operation: Callable[..., Coroutine[Any, Any, R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> R:
    """The operation, in one transaction with its key; Repeated when the key was used. A racing one waits for this."""
    await _claim(Scoped(tx, principal), claim)
    return await in_name_logged(tx, principal, operation, args, kwargs)


async def once_beyond(
    tx: Tx,
    principal: Principal,
    claim: Claim,
    operation: Callable[..., Coroutine[Any, Any, R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> R:
    """The same for an operation that goes beyond the principal's tenant. Its key is kept at the principal's own."""
    await _claim(Scoped(tx, principal), claim)
    return await operation(tx, principal, *args, **kwargs)


async def _claim(tx: Scoped, claim: Claim) -> None:
    row = await tx.one(
        "SELECT count(*) AS used FROM request_keys WHERE tenant_id = :tenant_id AND caller = :caller",
        caller=claim.caller,
    )
    if row is not None and row["used"] >= KEYS_PER_CALLER_MAX:
        raise TooManyTries(
            f"{KEYS_PER_CALLER_MAX} requests with an Idempotency-Key were made in a day; send it only where needed",
            reason="request_keys_full",
            retry_after_sec=3600,
        )
    values = {"fingerprint": claim.fingerprint, "now_ms": claim.now_ms, **claim.columns()}
    if await tx.run(_INSERT, **values):
        return
    # One that is over and was not swept yet is used anew.
    if not await tx.run(
        "UPDATE request_keys SET fingerprint = :fingerprint, created_at = :now_ms, status = NULL, body = NULL "
        "WHERE tenant_id = :tenant_id AND caller = :caller AND key_hash = :key_hash AND created_at <= :before",
        before=claim.now_ms - KEPT_MS,
        **values,
    ):
        raise Repeated("a request with this Idempotency-Key was made already", reason="repeat_no_answer")


_VALUES = """request_keys (tenant_id, caller, key_hash, fingerprint, created_at)
VALUES (:tenant_id, :caller, :key_hash, :fingerprint, :now_ms)"""
_INSERT = Sql(f"INSERT INTO {_VALUES} ON CONFLICT DO NOTHING", mariadb=f"INSERT IGNORE INTO {_VALUES}")


@unlogged("what was answered, so that a repeated request gets it again; what it did is logged by itself")
async def keep(tx: Scoped, claim: Claim, status: int, body: str | None) -> None:
    """What was answered; `body` None when it is nothing to be kept."""
    await tx.run(
        "UPDATE request_keys SET status = :status, body = :body WHERE tenant_id = :tenant_id AND caller = :caller "
        "AND key_hash = :key_hash AND created_at = :now_ms",
        status=status,
        body=body,
        now_ms=claim.now_ms,
        **claim.columns(),
    )


async def sweep(tx: Tx, now_ms: int) -> int:
    """Removes keys that are over; answers how many."""
    rows = await tx.all(
        "SELECT tenant_id, caller, key_hash FROM request_keys WHERE created_at <= :before "
        f"ORDER BY created_at LIMIT {SWEEP_BATCH}",
        before=now_ms - KEPT_MS,
    )
    if rows:
        await tx.many(
            "DELETE FROM request_keys WHERE tenant_id = :tenant_id AND caller = :caller AND key_hash = :key_hash",
            [{name: row[name] for name in ("tenant_id", "caller", "key_hash")} for row in rows],
        )
    return len(rows)
