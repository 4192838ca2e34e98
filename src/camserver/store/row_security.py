"""Row-level security on PostgreSQL: a second belt for what web does in somebody's name.

A role of its own, which web uses besides the ordinary one (`belt.py`), sees the rows of one tenant only: that of the
setting `camserver.tenant`, set for each transaction, and none without it. Whoever owns the tables (the ordinary role)
is not held by it. Everything here can be repeated.
"""

import re
from dataclasses import dataclass

from camserver.base.errors import Fatal
from camserver.store.erasure import LAST, TABLES
from camserver.store.sql import Dialect
from camserver.store.tx import Tx

POLICY = "camserver_tenant"
USUAL_ROLE = "camserver_web"
# Empty is what a setting of an ended transaction leaves behind.
_OWN = "tenant_id = NULLIF(current_setting('camserver.tenant', true), '')::bigint"
# All tables with a tenant.
HELD = tuple(sorted([*(table.name for table in TABLES), *LAST]))
# Of the installation, and read in somebody's name, too.
READ = ("analyzers", "epochs", "hidden_tags", "schema_versions", "streamers")
_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Status:
    roles: tuple[str, ...]  # that policies hold
    missing: tuple[str, ...]  # tables without one

    @property
    def is_on(self) -> bool:
        return bool(self.roles) and not self.missing


async def status(tx: Tx) -> Status:
    require_postgres(tx.dialect)
    rows = await tx.all(
        "SELECT c.relname AS name, array_to_string(p.roles, ',') AS roles FROM pg_class c "
        "JOIN pg_policies p ON p.tablename = c.relname AND p.schemaname = current_schema() "
        "WHERE p.policyname = :policy AND c.relnamespace = current_schema()::regnamespace AND c.relrowsecurity",
        policy=POLICY,
    )
    roles = {role for row in rows for role in row["roles"].split(",")}
    on = {row["name"] for row in rows}
    return Status(tuple(sorted(roles)), tuple(name for name in HELD if name not in on))


async def enable(tx: Tx, role: str) -> Status:
    """Gives the role its rights and holds it, on every table that there is now."""
    require_postgres(tx.dialect)
    await _require_role(tx, role)
    named = f'"{role}"'
    for table in HELD:
        await tx.run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        await tx.run(f"DROP POLICY IF EXISTS {POLICY} ON {table}")
        await tx.run(f"CREATE POLICY {POLICY} ON {table} TO {named} USING ({_OWN}) WITH CHECK ({_OWN})")
    schema = await _schema(tx)
    await _take_rights(tx, role, schema)
    await tx.run(f"GRANT USAGE ON SCHEMA {schema} TO {named}")
    await tx.run(f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {named}")
    await tx.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(HELD)} TO {named}")
    # What was done stays written, is sealed by another hand, and tenants come, change and go by another, too.
    await tx.run(f"REVOKE UPDATE, DELETE ON audit_log FROM {named}")
    await tx.run(f"REVOKE INSERT, UPDATE, DELETE ON audit_seals, tenants FROM {named}")
    # The one column that is changed in somebody's name; without any, a row can't be locked either.
    await tx.run(f"GRANT UPDATE (cameras_running_max) ON tenants TO {named}")
    await tx.run(f"GRANT SELECT ON {', '.join(READ)} TO {named}")
    return await status(tx)


async def disable(tx: Tx) -> Status:
    """Takes the belt off. The roles lose their rights, which nothing would hold any more."""
    found = await status(tx)
    for table in HELD:
        await tx.run(f"DROP POLICY IF EXISTS {POLICY} ON {table}")
        await tx.run(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    schema = await _schema(tx)
    for role in found.roles:
        await _take_rights(tx, role, schema)
    return await status(tx)


async def refresh(tx: Tx) -> None:
    """After the schema changed: new tables are held as the others are. Nothing happens where none is."""
    for role in (await status(tx)).roles:
        await enable(tx, role)


async def check_held(tx: Tx) -> None:
    """Fatal unless whoever asks is held on every table; asked as the role itself."""
    rows = await tx.all(
        "SELECT t.name FROM unnest(:tables::text[]) AS t(name) WHERE NOT row_security_active(t.name) "
        "OR NOT EXISTS (SELECT 1 FROM pg_policies p WHERE p.tablename = t.name AND p.schemaname = current_schema() "
        "AND p.policyname = :policy AND current_user = ANY (p.roles))",
        tables=list(HELD),
        policy=POLICY,
    )
    if rows:
        raise Fatal(
            f"the role of web.store_url is not held to one tenant on {len(rows)} tables (such as {rows[0]['name']}); "
            "run: camserver db rls --enable"
        )


def require_postgres(dialect: Dialect) -> None:
    if dialect is not Dialect.POSTGRES:
        raise Fatal("row-level security is there on PostgreSQL only; leave web.store_url out on other databases")


async def _require_role(tx: Tx, role: str) -> None:
    if not _ROLE.fullmatch(role):
        raise Fatal(f"{role!r} is no plain name of a role; use letters, digits, - and _")
    row = await tx.one("SELECT rolsuper OR rolbypassrls AS is_free FROM pg_roles WHERE rolname = :role", role=role)
    if row is None:
        raise Fatal(
            f"PostgreSQL has no role {role}; make it first: CREATE ROLE \"{role}\" LOGIN PASSWORD '…' NOINHERIT"
        )
    if row["is_free"]:
        raise Fatal(f"the role {role} is a superuser or bypasses row-level security; use one that does not")
    owned = await tx.one(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tableowner = :role LIMIT 1",
        role=role,
    )
    if owned is not None:
        raise Fatal(f"the role {role} owns tables, so nothing holds it; use one for web alone")


async def _take_rights(tx: Tx, role: str, schema: str) -> None:
    await tx.run(f'REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM "{role}"')
    await tx.run(f'REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM "{role}"')


async def _schema(tx: Tx) -> str:
    row = await tx.one("SELECT quote_ident(current_schema()) AS name")
    assert row is not None
    return str(row["name"])
