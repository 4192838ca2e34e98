"""What keeps the audit log append-only, in the database itself: triggers, the same rules in three dialects.

An entry is added without a batch, gets its batch once, and is deleted only when the seal of its batch says that its
entries went (`pruned_at`). A seal changes once, when retention deletes its entries and signs that, and is never
deleted. Both go with their tenant: while it is being erased (`erasing_at`), which the home tenant's log tells.
Whoever owns the database can drop triggers, and whoever writes to it can set these columns; then the seals tell
(domain/audit.py). MariaDB fires none at TRUNCATE, for which one needs the privilege to drop the table; SQLite fires
one for a row that REPLACE deletes only on connections that ask for it, as ours do (sqlite_tx.py).
"""

from sqlalchemy import DDL, Table, event

_ENTRY_KEPT = ("entry_id", "tenant_id", "at", "actor_kind", "actor_id", "action", "object_kind", "object_id",
               "details", "address")  # fmt: skip
_SEAL_KEPT = ("tenant_id", "batch_no", "first_entry_id", "last_entry_id", "entries", "first_at", "last_at", "body",
              "previous_hash", "hash", "key_id", "mac", "sealed_at")  # fmt: skip
APPEND_ONLY = "the audit log is append-only"
_PRUNED = (
    "EXISTS (SELECT 1 FROM audit_seals s WHERE s.tenant_id = OLD.tenant_id AND s.batch_no = OLD.batch_no "
    "AND s.pruned_at IS NOT NULL)"
)
_ERASED = "EXISTS (SELECT 1 FROM tenants e WHERE e.tenant_id = OLD.tenant_id AND e.erasing_at IS NOT NULL)"
# What is refused, by trigger: table, action, condition with `{same}` for "these columns are unchanged".
_RULES = (
    ("audit_log", "INSERT", "NEW.batch_no IS NOT NULL", ()),
    ("audit_log", "UPDATE", "NOT (OLD.batch_no IS NULL AND NEW.batch_no IS NOT NULL AND {same})", _ENTRY_KEPT),
    ("audit_log", "DELETE", f"NOT ({_PRUNED} OR {_ERASED})", ()),
    ("audit_seals", "UPDATE", "NOT (OLD.pruned_at IS NULL AND NEW.pruned_at IS NOT NULL AND NEW.leaves = '' "
     "AND NEW.pruned_mac <> '' AND {same})", _SEAL_KEPT),
    ("audit_seals", "DELETE", f"NOT {_ERASED}", ()),
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


def names(dialect: str) -> list[str]:
    """Of the triggers; on PostgreSQL their functions have the same."""
    found = [f"{table}_{action.lower()}" for table, action, _, _ in _RULES]
    return [*found, "audit_log_truncate", "audit_seals_truncate"] if dialect == "postgresql" else found


def drops(dialect: str) -> list[str]:
    """The statements that remove them again, for whoever repairs or tests."""
    if dialect == "postgresql":
        return [f"DROP FUNCTION IF EXISTS {name}() CASCADE" for name in names(dialect)]
    return [f"DROP TRIGGER IF EXISTS {name}" for name in names(dialect)]


def guard(last_made: Table) -> None:
    """Has the triggers made with the schema, when the last of their tables is."""
    for dialect in _EQUALS:
        for statement in guards(dialect):
            made = DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy has it untyped
            event.listen(last_made, "after_create", made.execute_if(dialect=dialect))
