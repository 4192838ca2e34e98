"""The only SQL: tables, migrations, one module a noun, hot paths by hand per dialect."""

from camserver.store.core import ScopedStore, Store
from camserver.store.opening import (
    copy_database,
    open_store,
    owned,
    postgres_store,
    restored_store,
    sqlite_reader,
    upgrade_database,
)
from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Scoped, Tx

__all__ = [
    "Dialect",
    "Scoped",
    "ScopedStore",
    "Sql",
    "Store",
    "Tx",
    "copy_database",
    "open_store",
    "owned",
    "postgres_store",
    "restored_store",
    "sqlite_reader",
    "upgrade_database",
]
