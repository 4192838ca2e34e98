"""How many rows each table has, for a report."""

from camserver.store.tables import metadata
from camserver.store.tx import Tx


async def count_all(tx: Tx) -> dict[str, int]:
    found = {}
    for table in metadata.sorted_tables:
        row = await tx.one(f"SELECT count(*) AS n FROM {table.name}")
        found[table.name] = 0 if row is None else int(row["n"])
    return found
