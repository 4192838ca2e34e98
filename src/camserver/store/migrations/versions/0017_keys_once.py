"""Numbers are never given twice on SQLite either, and those who were removed keep their names in what they did."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

MARIADB: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}
# Tables whose rows something may name by number after they are gone.
KEYS = {
    "api_tokens": "token_id",
    "camera_streams": "stream_id",
    "cameras": "camera_key",
    "case_items": "item_id",
    "case_notes": "note_id",
    "cases": "case_id",
    "epochs": "epoch_id",
    "grants": "grant_id",
    "notify_rules": "rule_id",
    "password_links": "link_id",
    "push_subscriptions": "subscription_id",
    "receivers": "receiver_id",
    "scoring_files": "file_id",
    "scoring_runs": "run_id",
    "scoring_sheets": "sheet_id",
    "sessions": "session_id",
    "setup_links": "link_id",
    "shares": "share_id",
    "sites": "site_id",
    "snoozes": "snooze_id",
    "tenants": "tenant_id",
    "user_identities": "identity_id",
    "users": "user_id",
    "worker_certificates": "certificate_id",
    "worker_enrolments": "enrolment_id",
    "workers": "worker_key",
}
ERASED_UP_TO = "FROM settings WHERE tenant_id = 0 AND name = 'tenants.erased_up_to'"


def upgrade() -> None:
    op.create_table(
        "removed_users",
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("login", sa.String(length=128), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_removed_users_tenant_id"),
        sa.PrimaryKeyConstraint("user_id"),
        sqlite_with_rowid=False,
        **MARIADB,
    )
    op.create_index("ix_removed_users_tenant_id_login", "removed_users", ["tenant_id", "login"])
    if op.get_bind().dialect.name == "sqlite":
        _never_twice(op.get_bind())
    op.execute(f"DELETE {ERASED_UP_TO}")


def _never_twice(connection: sa.Connection) -> None:
    """The tables stay as they are on disk; only what SQLite knows of them changes. To make them anew would take as
    long as they are large, and with them all that point to them."""
    # Brings about the table in which SQLite remembers the highest numbers.
    connection.execute(sa.text("CREATE TABLE numbered (number INTEGER PRIMARY KEY AUTOINCREMENT)"))
    connection.execute(sa.text("DROP TABLE numbered"))
    (version,) = connection.execute(sa.text("PRAGMA schema_version")).one()
    connection.execute(sa.text("PRAGMA writable_schema = ON"))
    for table, key in KEYS.items():
        found = {"type": "table", "name": table}
        sql = connection.scalar(sa.text("SELECT sql FROM sqlite_master WHERE type = :type AND name = :name"), found)
        connection.execute(
            sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = :type AND name = :name"),
            {"sql": _autoincrementing(sql, key), **found},
        )
    # Every connection reads the schema anew, this one too.
    connection.execute(sa.text(f"PRAGMA schema_version = {version + 1}"))
    connection.execute(sa.text("PRAGMA writable_schema = OFF"))
    connection.execute(
        sa.text(f"INSERT INTO sqlite_sequence (name, seq) SELECT 'tenants', CAST(value AS INTEGER) {ERASED_UP_TO}")
    )


def _autoincrementing(sql: str, key: str) -> str:
    column, constraint = f"\t{key} INTEGER NOT NULL, ", f"\n\tPRIMARY KEY ({key})"
    if sql.count(column) != 1 or sql.count(constraint) != 1:
        raise RuntimeError(f"the table with the key {key} is not as it was made: {sql}")
    sql = sql.replace(column, f"\t{key} INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, ")
    before, _, after = sql.partition(constraint)
    # It stands between others, or is the last one.
    return before + after.removeprefix(", ") if after.startswith(",") else before.rstrip().rstrip(",") + after
