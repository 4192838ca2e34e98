"""The audit log: who did what, when, from where. Rows are only ever added here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from camserver.store.tx import Scoped, Tx

# Rows about the installation as a whole, such as a sign-in under a name nobody has.
INSTALLATION = 0
ADDRESS_MAX_CHARS = 64

_INSERT = """
INSERT INTO audit_log (tenant_id, at, actor_kind, actor_id, action, object_kind, object_id, details, address)
VALUES (:tenant_id, :now_ms, :actor_kind, :actor_id, :action, :object_kind, :object_id, :details, :address)"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was done. `details` never holds a secret."""

    action: str
    now_ms: int
    address: str = ""
    object_kind: str = ""
    object_id: str = ""
    details: Mapping[str, str | int] | None = None

    def columns(self) -> dict[str, object]:
        return {
            "action": self.action,
            "now_ms": self.now_ms,
            "address": self.address[:ADDRESS_MAX_CHARS],
            "object_kind": self.object_kind,
            "object_id": self.object_id,
            "details": None if self.details is None else json.dumps(dict(self.details), ensure_ascii=False),
        }


async def add(tx: Tx, tenant_id: int, user_id: int | None, entry: Entry) -> None:
    """Where nobody is signed in yet. `user_id` None: it is not known who."""
    kind, actor_id = ("system", "") if user_id is None else ("user", str(user_id))
    await tx.run(_INSERT, tenant_id=tenant_id, actor_kind=kind, actor_id=actor_id, **entry.columns())


async def add_own(tx: Scoped, entry: Entry) -> None:
    """In the principal's name; the local admin token has no user and counts as the system.

    What a program did with a token is its user's deed; the token is noted among the details.
    """
    principal = tx.principal
    kind, actor_id = (
        ("system", "local_admin_token") if principal.user_id is None else ("user", str(principal.user_id))
    )
    if principal.token_id is not None:
        entry = replace(entry, details={**(entry.details or {}), "token_id": principal.token_id})
    await tx.run(_INSERT, actor_kind=kind, actor_id=actor_id, **entry.columns())
