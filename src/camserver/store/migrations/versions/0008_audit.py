"""The audit log sealed: batches, seals, and triggers that keep both append-only."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("audit_log", sa.Column("batch_no", sa.BigInteger(), nullable=True))
    for name, columns in (
        ("ix_audit_log_actor", ["tenant_id", "actor_kind", "actor_id", "at", "entry_id"]),
        ("ix_audit_log_action", ["tenant_id", "action", "at", "entry_id"]),
        ("ix_audit_log_batch", ["tenant_id", "batch_no", "entry_id"]),
    ):
        op.create_index(name, "audit_log", columns, unique=False)
    op.create_table(
        "audit_seals",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("batch_no", sa.BigInteger(), nullable=False),
        sa.Column("first_entry_id", sa.BigInteger(), nullable=False),
        sa.Column("last_entry_id", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.String(length=64), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=False),
        sa.Column("mac", sa.String(length=64), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=False),
        sa.Column("leaves", sa.Text(), nullable=False),
        sa.Column("pruned_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "batch_no"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_audit_seals_pruned_at", "audit_seals", ["tenant_id", "pruned_at", "batch_no"], unique=False)
    dialect = op.get_bind().dialect.name
    for statement in guards("mariadb" if dialect == "mysql" else dialect):
        op.execute(sa.text(statement))


# As store/tables/audit_guards.py had them when this was written.
_ENTRY_KEPT = ("entry_id", "tenant_id", "at", "actor_kind", "actor_id", "action", "object_kind", "object_id",
               "details", "address")  # fmt: skip
_SEAL_KEPT = ("tenant_id", "batch_no", "first_entry_id", "last_entry_id", "entries", "first_at", "last_at", "body",
              "previous_hash", "hash", "key_id", "mac", "sealed_at")  # fmt: skip
APPEND_ONLY = "the audit log is append-only"
_GONE = "SELECT 1 FROM audit_seals s WHERE s.tenant_id = OLD.tenant_id AND s.batch_no = OLD.batch_no"
# What is refused, by trigger: table, action, condition with `{same}` for "these columns are unchanged".
_RULES = (
    ("audit_log", "INSERT", "NEW.batch_no IS NOT NULL", ()),
    ("audit_log", "UPDATE", "NOT (OLD.batch_no IS NULL AND NEW.batch_no IS NOT NULL AND {same})", _ENTRY_KEPT),
    ("audit_log", "DELETE", f"NOT EXISTS ({_GONE} AND s.pruned_at IS NOT NULL)", ()),
    ("audit_seals", "UPDATE", "NOT (OLD.pruned_at IS NULL AND NEW.pruned_at IS NOT NULL AND NEW.leaves = '' "
     "AND {same})", _SEAL_KEPT),
    ("audit_seals", "DELETE", "1 = 1", ()),
)  # fmt: skip
_EQUALS = {"sqlite": "IS", "postgresql": "IS NOT DISTINCT FROM", "mariadb": "<=>"}
_SHAPES = {
    "sqlite": "CREATE TRIGGER {name} BEFORE {action} ON {table} WHEN {refused} "
    f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END",
    # 1451 is the number of a row that others refer to: the driver takes it for a refusal, not for an outage.
    "mariadb": "CREATE TRIGGER {name} BEFORE {action} ON {table} FOR EACH ROW BEGIN IF {refused} THEN "
    f"SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1451, MESSAGE_TEXT = '{APPEND_ONLY}'; END IF; END",
}
_POSTGRES_FUNCTION = (
    "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {refused} THEN "
    f"RAISE EXCEPTION '{APPEND_ONLY}' USING ERRCODE = 'restrict_violation'; END IF; RETURN {{row}}; END $$"
)
_POSTGRES_TRIGGER = "CREATE TRIGGER {name} BEFORE {action} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
_POSTGRES_TRUNCATE = (
    "CREATE FUNCTION {table}_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"RAISE EXCEPTION '{APPEND_ONLY}' USING ERRCODE = 'restrict_violation'; END $$",
    "CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT "
    "EXECUTE FUNCTION {table}_truncate()",
)


def guards(dialect: str) -> list[str]:
    """The statements that make the triggers, by SQLAlchemy's name of the dialect."""
    made: list[str] = []
    for table, action, condition, kept in _RULES:
        same = " AND ".join(f"NEW.{column} {_EQUALS[dialect]} OLD.{column}" for column in kept)
        values = {
            "name": f"{table}_{action.lower()}",
            "table": table,
            "action": action,
            "refused": condition.format(same=same),
            "row": "OLD" if action == "DELETE" else "NEW",
        }
        shapes = [_POSTGRES_FUNCTION, _POSTGRES_TRIGGER] if dialect == "postgresql" else [_SHAPES[dialect]]
        made += [shape.format(**values) for shape in shapes]
    if dialect == "postgresql":
        made += [shape.format(table=table) for table in ("audit_log", "audit_seals") for shape in _POSTGRES_TRUNCATE]
    return made
