"""Tenants: which one is home, quotas, switching one off, and erasing one with its audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("home_slot", sa.SmallInteger(), nullable=True))
    for name in ("cameras_max", "people_max", "sites_max", "kept_bytes_max"):
        op.add_column("tenants", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("disabled", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("tenants", sa.Column("erasing_at", sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("erasing_by", sa.BigInteger(), nullable=True))
    for name in ("erased_rows", "erased_objects", "erased_bytes"):
        op.add_column("tenants", sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    _mark_home()
    op.create_index("ix_tenants_home_slot", "tenants", ["home_slot"], unique=True)
    dialect = op.get_bind().dialect.name
    for statement in guards("mariadb" if dialect == "mysql" else dialect):
        op.execute(sa.text(statement))


def _mark_home() -> None:
    """Until now it was found by its name."""
    connection = op.get_bind()
    home_id = connection.scalar(
        sa.text(
            "SELECT tenant_id FROM tenants ORDER BY CASE WHEN name = 'default' THEN 0 ELSE 1 END, tenant_id LIMIT 1"
        )
    )
    if home_id is not None:
        connection.execute(
            sa.text("UPDATE tenants SET home_slot = 1 WHERE tenant_id = :home_id"), {"home_id": home_id}
        )


# As store/tables/audit_guards.py had them when this was written.
APPEND_ONLY = "the audit log is append-only"
_ERASED = "EXISTS (SELECT 1 FROM tenants e WHERE e.tenant_id = OLD.tenant_id AND e.erasing_at IS NOT NULL)"
_PRUNED = (
    "EXISTS (SELECT 1 FROM audit_seals s WHERE s.tenant_id = OLD.tenant_id AND s.batch_no = OLD.batch_no "
    "AND s.pruned_at IS NOT NULL)"
)
_RULES = (("audit_log", f"NOT ({_PRUNED} OR {_ERASED})"), ("audit_seals", f"NOT {_ERASED}"))
_SHAPES = {
    "sqlite": (
        "DROP TRIGGER {table}_delete",
        "CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} WHEN {refused} "
        f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END",
    ),
    "mariadb": (
        "DROP TRIGGER {table}_delete",
        "CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW BEGIN IF {refused} THEN "
        f"SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1451, MESSAGE_TEXT = '{APPEND_ONLY}'; END IF; END",
    ),
    # The trigger stays, and finds the new function by its name.
    "postgresql": (
        "CREATE OR REPLACE FUNCTION {table}_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {refused} THEN "
        f"RAISE EXCEPTION '{APPEND_ONLY}' USING ERRCODE = 'restrict_violation'; END IF; RETURN OLD; END $$",
    ),
}


def guards(dialect: str) -> list[str]:
    """The statements that make the triggers anew which refuse a DELETE."""
    return [shape.format(table=table, refused=refused) for table, refused in _RULES for shape in _SHAPES[dialect]]
