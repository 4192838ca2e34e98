"""Who workers at other sites are: one-time tokens and certificates. Rows are the truth; a certificate without one
does not count, whoever signed it.

Tokens and certificates of a tenant are given under the tenant's lock, so that two workers never get one name.
"""

from dataclasses import dataclass

from camserver.base.errors import BadInput, Conflict, Forbidden, NotFound
from camserver.store import audit, tenants
from camserver.store.tx import Row, Scoped, Tx

# Tokens that wait to be used, of one tenant.
TOKENS_OPEN_MAX = 500
# A used or expired token is forgotten after this long; what was done with it is in the audit log.
TOKEN_KEPT_MS = 7 * 86_400_000
# More than anybody revokes between two looks.
REVOKED_READ_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Invited:
    """What a token is for."""

    site: str  # its name
    worker_id: str | None
    expires_at: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """A token that can be used now."""

    tenant_id: int
    tenant_uuid: str
    site_id: int
    site_uuid: str
    site: str
    worker_id: str | None


@dataclass(frozen=True, slots=True)
class CertificateRow:
    serial: str
    sha256: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Known:
    """The worker of a certificate."""

    tenant_id: int
    tenant_uuid: str
    site_id: int
    site_uuid: str
    site: str
    worker_id: str
    revoked: bool


# Tokens --------------------------------------------------------------------------------------------------------


async def invite(
    tx: Scoped, token_hash: str, site: str | None, worker_id: str | None, ttl_ms: int, address: str, now_ms: int
) -> Invited:
    """Keeps a new token. Without a site it is for the only one within the principal's reach."""
    # Or the site might be removed meanwhile, with the tokens that are for it.
    await tenants.lock(tx)
    place = await tenants.find_site(tx, site) if site is not None else await _only_site(tx)
    if worker_id is not None:
        elsewhere = await tx.one(_ELSEWHERE, worker_id=worker_id, site_id=place.site_id, now_ms=now_ms)
        _refuse_elsewhere(worker_id, elsewhere)
    await _forget_tokens(tx, now_ms)
    row = await tx.one(
        "SELECT count(*) AS open FROM worker_enrolments WHERE tenant_id = :tenant_id AND used_at IS NULL"
    )
    if row is not None and row["open"] >= TOKENS_OPEN_MAX:
        raise Conflict(
            f"{TOKENS_OPEN_MAX} tokens wait to be used already; wait until some have expired",
            reason="tokens_full",
            most=TOKENS_OPEN_MAX,
        )
    await tx.run(
        """
        INSERT INTO worker_enrolments (tenant_id, site_id, worker_id, token_hash, created_at, expires_at)
        VALUES (:tenant_id, :site_id, :worker_id, :token_hash, :now_ms, :expires_at)""",
        site_id=place.site_id,
        worker_id=worker_id,
        token_hash=token_hash,
        now_ms=now_ms,
        expires_at=now_ms + ttl_ms,
    )
    details: dict[str, str | int] = {"site": place.name, "expires_at": now_ms + ttl_ms}
    entry = audit.Entry("worker_token_made", now_ms, address, "worker", worker_id or "", details)
    await audit.add_own(tx, entry)
    return Invited(place.name, worker_id, now_ms + ttl_ms)


async def _only_site(tx: Scoped) -> tenants.Site:
    rows = await tx.all(
        "SELECT site_id, site_uuid, name FROM sites "
        "WHERE tenant_id = :tenant_id AND removed_at IS NULL AND IN_SITE_REACH() LIMIT 2",
    )
    if len(rows) != 1:
        raise BadInput("say for which site the worker is, by its name or id", reason="which_site")
    return tenants.Site(rows[0]["site_id"], rows[0]["site_uuid"], rows[0]["name"])


async def _forget_tokens(tx: Scoped, now_ms: int) -> None:
    await tx.run(
        "DELETE FROM worker_enrolments WHERE tenant_id = :tenant_id "
        "AND (expires_at < :before OR (used_at IS NULL AND expires_at <= :now_ms))",
        before=now_ms - TOKEN_KEPT_MS,
        now_ms=now_ms,
    )


async def invitation(tx: Tx, token_hash: str, now_ms: int) -> Invitation:
    """What a token opens. Forbidden when it is none, was used or is over."""
    row = await tx.one(
        """
        SELECT e.tenant_id, t.tenant_uuid, e.site_id, s.site_uuid, s.name AS site, e.worker_id, e.used_at,
          e.expires_at
        FROM worker_enrolments e
        JOIN tenants t ON t.tenant_id = e.tenant_id
        JOIN sites s ON s.site_id = e.site_id
        WHERE e.token_hash = :token_hash""",
        token_hash=token_hash,
    )
    if row is None:
        raise Forbidden("there is no such token; make one with `camserver worker token`", reason="token_unknown")
    if row["used_at"] is not None:
        raise Forbidden(
            "this token was used already; make another with `camserver worker token`", reason="token_used"
        )
    if row["expires_at"] <= now_ms:
        raise Forbidden(
            "this token's time is over; make another with `camserver worker token`", reason="token_expired"
        )
    return Invitation(
        row["tenant_id"], row["tenant_uuid"], row["site_id"], row["site_uuid"], row["site"], row["worker_id"]
    )


async def enrol(
    tx: Tx, token_hash: str, worker_id: str, certificate: CertificateRow, address: str, now_ms: int
) -> Invitation:
    """Uses a token up for a certificate, together. Of any number of racing calls one succeeds."""
    row = await tx.one(
        "SELECT tenant_id FROM worker_enrolments WHERE token_hash = :token_hash", token_hash=token_hash
    )
    if row is not None:
        await tx.one("SELECT tenant_id FROM tenants WHERE tenant_id = :id FOR UPDATE", id=row["tenant_id"])
    invited = await invitation(tx, token_hash, now_ms)
    if invited.worker_id is None:
        await _refuse_taken(tx, invited.tenant_id, worker_id, now_ms)
    elif invited.worker_id != worker_id:
        raise Forbidden(
            f"this token is for the worker {invited.worker_id}, not for {worker_id}", reason="token_for_another"
        )
    else:
        # Asked again: the name may have been taken since the token was made.
        name = {"tenant_id": invited.tenant_id, "worker_id": worker_id}
        elsewhere = await tx.one(_ELSEWHERE, **name, site_id=invited.site_id, now_ms=now_ms)
        _refuse_elsewhere(worker_id, elsewhere)
        # Whoever had the name before is replaced.
        await _revoke_all(tx, invited.tenant_id, worker_id, now_ms)
    await tx.run(
        "UPDATE worker_enrolments SET used_at = :now_ms WHERE token_hash = :token_hash",
        token_hash=token_hash,
        now_ms=now_ms,
    )
    await _add(tx, invited.tenant_id, invited.site_id, worker_id, certificate, now_ms)
    details = {"site": invited.site, "serial": certificate.serial}
    entry = audit.Entry("worker_enrolled", now_ms, address, "worker", worker_id, details)
    await audit.add(tx, invited.tenant_id, None, entry)
    return invited


async def _refuse_taken(tx: Tx, tenant_id: int, worker_id: str, now_ms: int) -> None:
    """A token that names nobody makes a new worker; it must not take the place of one that is there."""
    row = await tx.one(
        """
        SELECT 1 AS taken FROM workers WHERE tenant_id = :tenant_id AND worker_id = :worker_id
        UNION ALL
        SELECT 1 FROM worker_certificates WHERE tenant_id = :tenant_id AND worker_id = :worker_id
          AND revoked_at IS NULL AND expires_at > :now_ms""",
        tenant_id=tenant_id,
        worker_id=worker_id,
        now_ms=now_ms,
    )
    if row is not None:
        raise Conflict(
            f"there is a worker {worker_id} already; choose another name, or replace it with a token made by "
            f"`camserver worker token --name {worker_id}`",
            reason="worker_exists",
            worker_id=worker_id,
        )


def _refuse_elsewhere(worker_id: str, elsewhere: Row | None) -> None:
    """A name belongs to the site where its worker stands: whoever replaced it from another site would be taken for
    the holder of cameras that its people may not even see."""
    if elsewhere is not None:
        raise Conflict(
            f"there is a worker {worker_id} at another site already; a worker keeps its site, so choose another name",
            reason="worker_elsewhere",
            worker_id=worker_id,
        )


# Certificates --------------------------------------------------------------------------------------------------


async def known(tx: Tx, serial: str) -> Known | None:
    row = await tx.one(
        """
        SELECT c.tenant_id, t.tenant_uuid, c.site_id, s.site_uuid, s.name AS site, c.worker_id, c.revoked_at
        FROM worker_certificates c
        JOIN tenants t ON t.tenant_id = c.tenant_id
        JOIN sites s ON s.site_id = c.site_id
        WHERE c.serial = :serial""",
        serial=serial,
    )
    return None if row is None else _known(row)


async def renewed(
    tx: Tx, serial: str, certificate: CertificateRow, forgotten_before: int, now_ms: int
) -> Known | None:
    """Adds the certificate that follows another one; None when that one is revoked or not there."""
    before = await known(tx, serial)
    if before is None:
        return None
    # Locks the row: a revocation waits for this one, or this one sees it.
    matched = await tx.run(
        "UPDATE worker_certificates SET renewed_at = :now_ms WHERE serial = :serial AND revoked_at IS NULL",
        serial=serial,
        now_ms=now_ms,
    )
    if not matched:
        return None
    await _add(tx, before.tenant_id, before.site_id, before.worker_id, certificate, now_ms)
    await tx.run(
        """
        DELETE FROM worker_certificates
        WHERE tenant_id = :tenant_id AND worker_id = :worker_id AND expires_at < :forgotten_before""",
        tenant_id=before.tenant_id,
        worker_id=before.worker_id,
        forgotten_before=forgotten_before,
    )
    return before


async def revoke(tx: Scoped, worker_id: str, address: str, now_ms: int) -> int:
    """Ends all certificates of a worker and the tokens that name it; how many certificates there were."""
    row = await tx.one(
        "SELECT count(*) AS held FROM worker_certificates WHERE tenant_id = :tenant_id AND worker_id = :worker_id "
        "AND revoked_at IS NULL AND IN_SITE_REACH()",
        worker_id=worker_id,
    )
    if row is None or not row["held"]:
        raise NotFound(
            f"worker {worker_id!r} has no certificate to revoke; `camserver worker list` names the workers",
            reason="no_certificate",
            worker_id=worker_id,
        )
    count = 0
    # Again until there is none: one that was being renewed meanwhile has a successor.
    while ended := await tx.run(_REVOKE, worker_id=worker_id, now_ms=now_ms):
        count += ended
    await tx.run(
        "DELETE FROM worker_enrolments WHERE tenant_id = :tenant_id AND worker_id = :worker_id AND used_at IS NULL",
        worker_id=worker_id,
    )
    details = {"certificates": count}
    await audit.add_own(tx, audit.Entry("worker_revoked", now_ms, address, "worker", worker_id, details))
    return count


async def revoked_since(tx: Tx, since: int) -> tuple[str, ...]:
    """Serials of certificates that were revoked at that moment or later."""
    rows = await tx.all(
        "SELECT serial FROM worker_certificates WHERE revoked_at >= :since ORDER BY revoked_at DESC LIMIT :most",
        since=since,
        most=REVOKED_READ_MAX,
    )
    return tuple(row["serial"] for row in rows)


async def _revoke_all(tx: Tx, tenant_id: int, worker_id: str, now_ms: int) -> None:
    everywhere = {"all_sites": 1, "site_ids": []}
    while await tx.run(_REVOKE, tenant_id=tenant_id, worker_id=worker_id, now_ms=now_ms, **everywhere):
        continue


async def _add(
    tx: Tx, tenant_id: int, site_id: int, worker_id: str, certificate: CertificateRow, now_ms: int
) -> None:
    await tx.run(
        """
        INSERT INTO worker_certificates (tenant_id, site_id, worker_id, serial, sha256, created_at, expires_at)
        VALUES (:tenant_id, :site_id, :worker_id, :serial, :sha256, :now_ms, :expires_at)""",
        tenant_id=tenant_id,
        site_id=site_id,
        worker_id=worker_id,
        serial=certificate.serial,
        sha256=certificate.sha256,
        expires_at=certificate.expires_at,
        now_ms=now_ms,
    )


def _known(row: Row) -> Known:
    return Known(
        row["tenant_id"],
        row["tenant_uuid"],
        row["site_id"],
        row["site_uuid"],
        row["site"],
        row["worker_id"],
        row["revoked_at"] is not None,
    )


_REVOKE = """
UPDATE worker_certificates SET revoked_at = :now_ms
WHERE tenant_id = :tenant_id AND worker_id = :worker_id AND revoked_at IS NULL
  AND IN_SITE_REACH()"""

_ELSEWHERE = """
SELECT 1 AS taken FROM workers w JOIN sites s ON s.site_id = w.site_id AND s.removed_at IS NULL
WHERE w.tenant_id = :tenant_id AND w.worker_id = :worker_id AND w.site_id <> :site_id
UNION ALL
SELECT 1 FROM worker_certificates c JOIN sites s ON s.site_id = c.site_id AND s.removed_at IS NULL
WHERE c.tenant_id = :tenant_id AND c.worker_id = :worker_id AND c.site_id <> :site_id
  AND c.revoked_at IS NULL AND c.expires_at > :now_ms"""
