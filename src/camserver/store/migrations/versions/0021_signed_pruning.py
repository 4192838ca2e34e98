"""What retention deletes of the audit log is signed: a seal is marked only together with a signature."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.add_column("audit_seals", sa.Column("pruned_key_id", sa.String(length=16), server_default="", nullable=False))
    op.add_column("audit_seals", sa.Column("pruned_mac", sa.String(length=64), server_default="", nullable=False))
    dialect = op.get_bind().dialect.name
    for statement in guards("mariadb" if dialect == "mysql" else dialect):
        op.execute(sa.text(statement))


# As store/tables/audit_guards.py had them when this was written.
APPEND_ONLY = "the audit log is append-only"
_KEPT = ("tenant_id", "batch_no", "first_entry_id", "last_entry_id", "entries", "first_at", "last_at", "body",
         "previous_hash", "hash", "key_id", "mac", "sealed_at")  # fmt: skip
_REFUSED = (
    "NOT (OLD.pruned_at IS NULL AND NEW.pruned_at IS NOT NULL AND NEW.leaves = '' AND NEW.pruned_mac <> '' "
    "AND {same})"
)
_EQUALS = {"sqlite": "IS", "postgresql": "IS NOT DISTINCT FROM", "mariadb": "<=>"}
_SHAPES = {
    "sqlite": (
        "DROP TRIGGER audit_seals_update",
        "CREATE TRIGGER audit_seals_update BEFORE UPDATE ON audit_seals WHEN {refused} "
        f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END",
    ),
    "mariadb": (
        "DROP TRIGGER audit_seals_update",
        "CREATE TRIGGER audit_seals_update BEFORE UPDATE ON audit_seals FOR EACH ROW BEGIN IF {refused} THEN "
        f"SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1451, MESSAGE_TEXT = '{APPEND_ONLY}'; END IF; END",
    ),
    # The trigger stays, and finds the new function by its name.
    "postgresql": (
        "CREATE OR REPLACE FUNCTION audit_seals_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {{refused}} THEN RAISE EXCEPTION '{APPEND_ONLY}' USING ERRCODE = 'restrict_violation'; END IF; "
        "RETURN NEW; END $$",
    ),
}


def guards(dialect: str) -> list[str]:
    """The statements that make the trigger anew which refuses to change a seal."""
    same = " AND ".join(f"NEW.{column} {_EQUALS[dialect]} OLD.{column}" for column in _KEPT)
    return [shape.format(refused=_REFUSED.format(same=same)) for shape in _SHAPES[dialect]]
