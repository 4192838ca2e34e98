"""What tables are made of: the one metadata, and columns as this schema writes them."""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only for a column declared INTEGER PRIMARY KEY.
Key = BigInteger().with_variant(Integer(), "sqlite")
_ONCE = "once"
Json = JSON().with_variant(JSONB(), "postgresql")
Uuid = String(36)


def table(name: str, *items: SchemaItem, by_key: bool = False) -> Table:
    """`by_key`: rows live in the primary key's own tree on SQLite, which saves a second one."""
    is_once = any(isinstance(item, Column) and item.info.get(_ONCE) for item in items)
    return Table(
        name,
        metadata,
        *items,
        sqlite_with_rowid=not by_key,
        sqlite_autoincrement=is_once,
        # SQLAlchemy's mariadb dialect ignores options named mysql_….
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )


def key(name: str) -> Column[int]:
    """A number that is never given twice, also when its row is gone: what still says it, an audit entry or another
    process, must not mean somebody else. SQLite has to be told so; the other two do it anyway."""
    return Column(name, Key, primary_key=True, autoincrement=True, info={_ONCE: True})


def row_key(name: str) -> Column[int]:
    """The same for rows that come all the time and that nothing names by number once they are gone: what the promise
    costs SQLite, another write for each, is spared."""
    return Column(name, Key, primary_key=True, autoincrement=True)


def parent(name: str, target: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, ForeignKey(target), nullable=False, **options)


def number(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, **{"nullable": False, **options})


def flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=text(str(default)))


def count(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def word(name: str, length: int, **options: Any) -> Column[str]:
    return Column(name, String(length), **{"nullable": False, **options})


def has_partial_indexes(*_: Any, dialect: Any, **__: Any) -> bool:
    return dialect.name in ("postgresql", "sqlite")


def lacks_partial_indexes(*_: Any, dialect: Any, **__: Any) -> bool:
    return not has_partial_indexes(dialect=dialect)
