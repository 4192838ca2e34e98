"""Checks a chain of the audit log, a bounded part at a time; writes it out as a file that can be checked anywhere."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from camserver.base.errors import DataUnusable
from camserver.base.log import get_logger
from camserver.domain.audit import (
    Finding,
    SealKey,
    Wrong,
    check_batch,
    check_pruning,
    genesis,
)
from camserver.domain.audit_files import entry_line, file_end, file_head, seal_line
from camserver.services.web.calls import Call
from camserver.store import Store, audit_anchors, audit_pages, audit_seals, erasures_asked
from camserver.store.audit import INSTALLATION
from camserver.store.audit_anchors import Anchor
from camserver.store.audit_seals import Batch, Chain

log = get_logger(__name__)

# Batches of one part: at most 10,000 entries.
PART_BATCHES = 20
EXPORT_BATCHES = 5
FINDINGS_MAX = 50


@dataclass(frozen=True, slots=True)
class Part:
    batches: int
    entries: int
    findings: tuple[Finding, ...]
    next_after: int | None  # where the next part begins; None: this was the last


async def check_here(
    store: Store, tenant_id: int, after_no: int, key: SealKey | None, data_dir: Path, now_ms: int
) -> Part:
    """The same with what this machine remembers. What it remembers of tenants whose chains are not there any more is
    told with the installation's chain."""
    try:
        anchors = await asyncio.to_thread(audit_anchors.read, data_dir)
        beside: list[Finding] = []
    except DataUnusable as error:
        log.error("audit_anchors_unreadable", why=error.message)
        anchors, beside = {}, [Finding(Wrong.ANCHORS_UNREADABLE, 0)]
    part = await check_part(store, tenant_id, after_no, key, anchors.get(tenant_id), now_ms)
    if part.next_after is not None:
        return part
    if tenant_id == INSTALLATION:
        beside += await _gone(store, anchors)
    return replace(part, findings=(*beside, *part.findings)[:FINDINGS_MAX])


async def _gone(store: Store, anchors: Mapping[int, Anchor]) -> list[Finding]:
    """Chains that this machine remembers of tenants that are not there, and that nobody asked to erase."""
    missing = anchors.keys() - set(await store.read(audit_seals.tenants))
    if not missing:
        return []
    missing -= await store.read(erasures_asked.asked, sorted(missing))
    return [Finding(Wrong.CHAIN_GONE, anchors[one].batch_no, tenant_id=one) for one in sorted(missing)]


async def check_part(
    store: Store, tenant_id: int, after_no: int, key: SealKey | None, anchor: Anchor | None, now_ms: int
) -> Part:
    """Checks the batches behind one. The last part also looks at what lies beside them."""
    before = await store.read(audit_seals.seal_of, tenant_id, after_no)
    found = await store.read(audit_seals.batches, tenant_id, after_no, PART_BATCHES)
    previous = genesis(tenant_id) if before is None else before.hash
    wrong = await asyncio.to_thread(_check, found, after_no, previous, key, now_ms)
    whole = len(found) < PART_BATCHES
    if whole:
        wrong += await _beside(store, tenant_id, anchor)
    return Part(
        batches=len(found),
        entries=sum(len(batch.entries) for batch in found),
        findings=tuple(wrong[:FINDINGS_MAX]),
        next_after=None if whole else found[-1].seal.batch_no,
    )


def _check(found: tuple[Batch, ...], after_no: int, previous: str, key: SealKey | None, now_ms: int) -> list[Finding]:
    wrong: list[Finding] = []
    expected = after_no + 1
    for batch in found:
        if batch.seal.batch_no != expected:
            wrong.append(Finding(Wrong.SEAL_MISSING, expected))
            # What it should be chained to is gone, so it is taken at its word.
            previous = batch.seal.previous_hash
        wrong += check_batch(batch.seal, batch.entries, previous, key, now_ms)
        previous, expected = batch.seal.hash, batch.seal.batch_no + 1
    return wrong


async def _beside(store: Store, tenant_id: int, anchor: Anchor | None) -> list[Finding]:
    wrong: list[Finding] = []
    if anchor is not None:
        remembered = await store.read(audit_seals.seal_of, tenant_id, anchor.batch_no)
        if not anchor.is_held_by(remembered):
            wrong.append(Finding(Wrong.CHAIN_CUT, anchor.batch_no))
    pruned, last_no = await store.read(audit_seals.pruned, tenant_id)
    wrong += check_pruning(pruned, last_no, await store.read(audit_seals.pruned_up_to, tenant_id))
    strays: dict[int, list[int]] = {}
    for batch_no, entry_id in await store.read(audit_seals.strays, tenant_id):
        strays.setdefault(batch_no, []).append(entry_id)
    wrong += [Finding(Wrong.SEAL_MISSING, batch_no, tuple(sorted(ids))) for batch_no, ids in sorted(strays.items())]
    return wrong


async def export_lines(call: Call, chain: Chain, tenant: str) -> AsyncGenerator[bytes, None]:
    """The sealed entries of a chain with their seals. What is not sealed yet is not among them."""
    store = call.web.store
    people = store.as_(replace(call.principal, tenant_id=chain.tenant_id))
    seals = entries = after_no = 0
    yield file_head(tenant, chain.tenant_id, call.now_ms).encode()
    while found := await store.read(audit_seals.batches, chain.tenant_id, after_no, EXPORT_BATCHES):
        actors = {(entry.actor_kind, entry.actor_id) for batch in found for entry in batch.entries}
        who = await people.read(audit_pages.names, tuple(sorted(actors)))
        yield await asyncio.to_thread(_lines, found, who)
        seals += len(found)
        entries += sum(len(batch.entries) for batch in found)
        after_no = found[-1].seal.batch_no
    yield file_end(seals, entries).encode()


def _lines(found: tuple[Batch, ...], who: dict[tuple[str, str], str]) -> bytes:
    lines: list[str] = []
    for batch in found:
        lines.append(seal_line(batch.seal))
        lines += [entry_line(entry, who[entry.actor_kind, entry.actor_id]) for entry in batch.entries]
    return "".join(lines).encode()
