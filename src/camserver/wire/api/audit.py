"""The audit log: entries, seals, chains and what a check of them found."""

from typing import Annotated, Any, Literal

from pydantic import Field

from camserver.wire.api.shapes import Answer, Asked

TenantName = Annotated[str, Field(min_length=1, max_length=128)]


class AuditEntry(Answer):
    entry_id: int
    at: int
    who: str  # a login; "local admin", "system" or "link" where nobody was signed in
    actor_kind: str
    action: str
    object_kind: str
    object_id: str
    object_name: str | None  # of a person, whose id is a number: the login
    details: dict[str, Any] | None
    address: str
    batch_no: int | None  # null: not sealed yet


class AuditPage(Answer):
    entries: list[AuditEntry]
    next_before: str | None


class AuditSeal(Answer):
    """`hash` covers the entries in their order and the seal before; `mac` is its signature."""

    batch_no: int
    first_entry_id: int
    last_entry_id: int
    entries: int
    first_at: int
    last_at: int
    body: str
    previous_hash: str
    hash: str
    key_id: str
    mac: str
    sealed_at: int
    pruned_at: int | None  # when retention deleted the entries


class AuditSeals(Answer):
    seals: list[AuditSeal]
    next_before: int | None


class AuditChain(Answer):
    """One tenant's log, or the installation's."""

    tenant: str | None  # null: the installation's own
    batches: int
    entries: int
    unsealed: int
    last_hash: str | None
    last_sealed_at: int | None
    oldest_unsealed_at: int | None


class AuditChains(Answer):
    chains: list[AuditChain]
    key_id: str


class AuditVerifyAsked(Asked):
    """One part of a check: the first has no `after_batch`, the others what the answer before says."""

    tenant: TenantName | None = None  # null: the caller's own
    installation: bool = False  # the installation's own log instead of a tenant's
    after_batch: Annotated[int, Field(ge=0, lt=2**62)] = 0
    with_key: bool = True  # false leaves out the signatures


class AuditFinding(Answer):
    wrong: Literal[
        "entry_changed",
        "entry_removed",
        "entry_added",
        "seal_changed",
        "seal_missing",
        "chain_cut",
        "chain_gone",
        "anchors_unreadable",
        "forged",
        "other_key",
        "pruned_early",
        "pruned_unlogged",
        "pruned_forged",
    ]
    batch_no: int
    entry_ids: list[int]
    message: str
    what_to_do: str


class AuditVerified(Answer):
    batches: int
    entries: int
    findings: list[AuditFinding]
    next_after: int | None  # null: this was the last part
    key_id: str | None  # the key that signatures were checked with
