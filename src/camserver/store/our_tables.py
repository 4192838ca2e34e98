"""Which of a server's tables are camserver's, whether they hold anything, and dropping them; those of other programs
in the same database stay."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from camserver.store import marks
from camserver.store.tables import audit_guards, metadata

VERSION_TABLE = "alembic_version"


def there(connection: Connection) -> list[str]:
    """Tables, the schema's version and marks."""
    known = {*metadata.tables, VERSION_TABLE, *marks.names()}
    return [name for name in sa.inspect(connection).get_table_names() if name in known]


def first_full(connection: Connection) -> str | None:
    """A table that holds rows."""
    found = set(sa.inspect(connection).get_table_names())
    for table in metadata.sorted_tables:
        if table.name in found and connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first():
            return table.name
    return None


def drop(connection: Connection, keeping: Collection[str]) -> None:
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        for statement in audit_guards.drops("postgresql"):
            connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 0")
    for name in set(there(connection)) - set(keeping):
        connection.exec_driver_sql(f"DROP TABLE {name}{' CASCADE' if is_postgres else ''}")
    if not is_postgres:
        # The connection may go on with making tables.
        connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 1")
