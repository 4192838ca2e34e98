"""Who people are at an OpenID Connect provider, as administrators say it."""

from dataclasses import dataclass

from camserver.base.errors import Conflict
from camserver.store.tx import Scoped, Tx

LINK = """
INSERT INTO user_identities (tenant_id, user_id, issuer, subject, created_at)
VALUES (:tenant_id, :user_id, :issuer, :subject, :now_ms)"""


@dataclass(frozen=True, slots=True)
class Identity:
    """An empty subject: nobody."""

    issuer: str
    subject: str


async def put(tx: Scoped, user_id: int, identity: Identity, now_ms: int) -> None:
    """Says who a user of the principal's tenant is at the provider; an empty subject: nobody."""
    await tx.run(
        "DELETE FROM user_identities WHERE user_id = :user_id AND issuer = :issuer AND tenant_id = :tenant_id",
        user_id=user_id,
        issuer=identity.issuer,
    )
    if not identity.subject:
        return
    # Subjects are one namespace over all tenants, as logins are.
    taken = await tx.one(
        "SELECT user_id FROM user_identities WHERE issuer = :issuer AND subject = :subject "
        "AND (tenant_id = :tenant_id OR tenant_id <> :tenant_id)",
        issuer=identity.issuer,
        subject=identity.subject,
    )
    if taken is not None:
        raise _taken()
    await tx.run(LINK, user_id=user_id, issuer=identity.issuer, subject=identity.subject, now_ms=now_ms)


async def refuse_elsewhere(tx: Tx, tenant_id: int, identity: Identity) -> None:
    """Conflict when somebody of another tenant is linked to the subject."""
    row = await tx.one(
        "SELECT user_id FROM user_identities WHERE issuer = :issuer AND subject = :subject "
        "AND tenant_id <> :tenant_id",
        issuer=identity.issuer,
        subject=identity.subject,
        tenant_id=tenant_id,
    )
    if row is not None:
        raise _taken()


def _taken() -> Conflict:
    return Conflict("somebody else is linked to this subject already; unlink them first", reason="subject_taken")
