"""Vocabularies as people choose them: which there are, adding one, and using another.

They hold for the whole installation, so nothing here belongs to a tenant but the audit entry of whoever did it.
"""

from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Principal
from camserver.store import audit, vocabularies
from camserver.store.first_start import lock_home
from camserver.store.tx import Scoped, Tx
from camserver.store.vocabularies import Document

VERSIONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Version:
    schema_version: str
    is_active: bool
    created_at: int
    activated_at: int | None  # when it last became the active one


async def versions(tx: Tx) -> tuple[Version, ...]:
    """Newest first."""
    rows = await tx.all(
        f"""
        SELECT schema_version, active_slot, created_at, activated_at FROM schema_versions
        ORDER BY created_at DESC, schema_version LIMIT {VERSIONS_MAX}"""
    )
    return tuple(
        Version(row["schema_version"], row["active_slot"] == 1, row["created_at"], row["activated_at"])
        for row in rows
    )


async def find(tx: Tx, version: str) -> Document:
    row = await tx.one(
        "SELECT schema_version, document FROM schema_versions WHERE schema_version = :version", version=version
    )
    if row is None:
        raise NotFound(
            f"there is no vocabulary {version}; `camserver vocabulary list` shows those there are",
            reason="no_vocabulary",
            version=version,
        )
    return Document(row["schema_version"], row["document"])


async def add(tx: Tx, principal: Principal, document: Document, address: str, now_ms: int) -> tuple[Version, ...]:
    """Keeps a document that was checked. A version never changes: results refer to it by name."""
    await lock_home(tx)
    known = await versions(tx)
    if document.version in {one.schema_version for one in known}:
        held = await find(tx, document.version)
        if held.parsed() == document.parsed():
            return known
        raise Conflict(
            f"there is a vocabulary {document.version} with other words; give the changed one another schema_version",
            reason="vocabulary_exists",
            version=document.version,
        )
    if len(known) >= VERSIONS_MAX:
        raise Conflict(
            f"there are {VERSIONS_MAX} vocabularies, which is the most that are kept",
            reason="vocabularies_full",
            most=VERSIONS_MAX,
        )
    await vocabularies.add(tx, document, now_ms)
    entry = audit.Entry("vocabulary_added", now_ms, address, "vocabulary", document.version)
    await audit.add_own(Scoped(tx, principal), entry)
    return await versions(tx)


async def use(tx: Tx, principal: Principal, version: str, address: str, now_ms: int) -> tuple[Version, ...]:
    """Makes a version the active one. Dispatchers give it to the analyzers within seconds."""
    await lock_home(tx)
    await find(tx, version)
    before = await vocabularies.active(tx)
    if before.version != version:
        await vocabularies.activate(tx, version, now_ms)
        details = {"before": before.version}
        entry = audit.Entry("vocabulary_activated", now_ms, address, "vocabulary", version, details)
        await audit.add_own(Scoped(tx, principal), entry)
    return await versions(tx)
