"""The only SQL: tables, migrations, one module a noun, hot paths by hand per dialect."""

from camserver.store.core import ScopedStore, Store
from camserver.store.opening import open_store, postgres_store, upgrade_database
from camserver.store.sql import Dialect, Sql
from camserver.store.tx import Scoped, Tx

__all__ = [
    "Dialect",
    "Scoped",
    "ScopedStore",
    "Sql",
    "Store",
    "Tx",
    "open_store",
    "postgres_store",
    "upgrade_database",
]
