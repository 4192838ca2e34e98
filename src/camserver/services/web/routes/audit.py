"""The audit log: read, checked, and taken away as a file.

It holds what was done at all sites, so only somebody who reaches all of them may read it. A system administrator also
reads the installation's own log, and may check that of every tenant; a check tells numbers, never content.
"""

from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from camserver.base.errors import NotFound
from camserver.domain.audit import SealKey
from camserver.domain.audit_words import what_is_wrong, what_to_do
from camserver.domain.people import Permission
from camserver.services.web import audit_check
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.routes.filters import Cursor, From, To, check_times
from camserver.services.web.routing import Routes
from camserver.services.web.streamed import Streamed
from camserver.store import audit, audit_pages, audit_seals, tenants
from camserver.store.audit import INSTALLATION
from camserver.store.audit_pages import AuditFilter
from camserver.store.tenant_desk import being_erased
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
SEALS_MAX = 200
# Above every number there is.
_NEWEST = 2**62
JSON_LINES = "application/x-ndjson"

Word = Annotated[str | None, Query(min_length=1, max_length=128)]
OfInstallation = Annotated[bool, Query(description="The installation's own log; for system administrators.")]


@routes.get("/api/audit", Permission.READ_AUDIT)
async def list_audit(
    call: TheCall,
    who: Word = None,
    action: Word = None,
    object_kind: Word = None,
    object_id: Word = None,
    from_ms: From = None,
    to_ms: To = None,
    installation: OfInstallation = False,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=audit_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.AuditPage:
    """What was done, newest first. Filters narrow; `who` is a login, `local admin`, `system` or `link`."""
    tenant_id = _own(call, installation)
    check_times(from_ms, to_ms)
    wanted = AuditFilter(who, action, object_kind, object_id, from_ms, to_ms)
    store = call.web.store.as_(replace(call.principal, tenant_id=tenant_id))
    found = await store.read(audit_pages.page, wanted, before, limit)
    return api.AuditPage(
        entries=[api.AuditEntry.model_validate(asdict(line)) for line in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )


@routes.get("/api/audit/seals", Permission.READ_AUDIT)
async def list_audit_seals(
    call: TheCall,
    installation: OfInstallation = False,
    before: Annotated[int, Query(ge=1, le=_NEWEST)] = _NEWEST,
    limit: Annotated[int, Query(ge=1, le=SEALS_MAX)] = PAGE_USUAL,
) -> api.AuditSeals:
    """Seals, newest first. Whoever keeps one elsewhere can tell later whether the log up to it is still the same."""
    found = await call.web.store.read(audit_seals.seals, _own(call, installation), before, limit)
    return api.AuditSeals(
        seals=[api.AuditSeal.model_validate(asdict(one)) for one in found],
        next_before=found[-1].batch_no if len(found) == limit else None,
    )


@routes.get("/api/audit/chains", Permission.READ_AUDIT)
async def list_audit_chains(call: TheCall) -> api.AuditChains:
    """The chains that the caller may check: their tenant's, for system administrators everybody's."""
    call.principal.require_all_sites()
    tenant_ids: tuple[int, ...] = (call.principal.tenant_id,)
    if call.principal.may(Permission.MANAGE_SYSTEM):
        tenant_ids = await call.web.store.read(audit_seals.tenants)
    found = await call.web.store.read(audit_seals.chains, tenant_ids)
    shown = [
        api.AuditChain.model_validate(
            {**asdict(one), "tenant": one.tenant or None, "last_hash": one.last_hash or None}
        )
        for one in found
    ]
    return api.AuditChains(chains=shown, key_id=_key(call).key_id)


@routes.post("/api/audit/verify", Permission.READ_AUDIT)
async def verify_audit(call: TheCall, asked: api.AuditVerifyAsked) -> api.AuditVerified:
    """Checks a part of a chain: whether an entry was changed, removed or added since it was sealed."""
    tenant_id = await _chosen(call, asked)
    key = _key(call) if asked.with_key else None
    data_dir = call.web.settings.server.data_dir
    part = await audit_check.check_here(call.web.store, tenant_id, asked.after_batch, key, data_dir, call.now_ms)
    findings = [
        api.AuditFinding(
            wrong=one.wrong.value,
            batch_no=one.batch_no,
            entry_ids=list(one.entry_ids),
            message=getattr(what_is_wrong(one), call.language),
            what_to_do=getattr(what_to_do(one), call.language),
        )
        for one in part.findings
    ]
    return api.AuditVerified(
        batches=part.batches,
        entries=part.entries,
        findings=findings,
        next_after=part.next_after,
        key_id=None if key is None else key.key_id,
    )


@routes.get(
    "/api/audit/export",
    Permission.READ_AUDIT,
    response_class=Response,
    responses={200: {"content": {JSON_LINES: {}}}},
)
async def export_audit(call: TheCall, installation: OfInstallation = False) -> Response:
    """The sealed log with its seals, a JSON object a line. `camserver audit verify --file` checks it anywhere."""
    tenant_id = _own(call, installation)
    with ExitStack() as held:
        held.enter_context(call.web.exports.one(call.principal))
        store = call.web.store.as_(replace(call.principal, tenant_id=tenant_id))
        await store.write(audit.add_own, audit.Entry("audit_exported", call.now_ms, call.address))
        [chain] = await call.web.store.read(audit_seals.chains, (tenant_id,))
        name = "audit.jsonl"
        headers = {
            "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}",
            "Cache-Control": "no-store",
        }
        lines = audit_check.export_lines(call, chain, chain.tenant or "installation")
        return Streamed(lines, JSON_LINES, headers, held.pop_all().close)


def _own(call: Call, installation: bool) -> int:
    call.principal.require_all_sites()
    if not installation:
        return call.principal.tenant_id
    call.principal.require(Permission.MANAGE_SYSTEM)
    return INSTALLATION


async def _chosen(call: Call, asked: api.AuditVerifyAsked) -> int:
    if asked.tenant is None or asked.installation:
        return _own(call, asked.installation)
    call.principal.require_all_sites()
    tenant_id = await call.web.store.read(tenants.find, asked.tenant)
    if tenant_id != call.principal.tenant_id:
        call.principal.require(Permission.MANAGE_SYSTEM)
    if tenant_id is None:
        raise NotFound(f"there is no tenant {asked.tenant}", reason="no_tenant", tenant=asked.tenant)
    if tenant_id not in await call.web.store.read(audit_seals.tenants):
        raise being_erased(asked.tenant)
    return tenant_id


def _key(call: Call) -> SealKey:
    return SealKey(call.web.secrets.audit_key_bytes())
