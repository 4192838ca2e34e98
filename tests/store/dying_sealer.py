"""Adds entries to the audit log and dies by kill -9 before they are sealed, or in the middle of sealing them.

python -c "from tests.store.dying_sealer import start; start()" URL unsealed|sealing

Imported, so that the writer of SQLite finds these operations by their module's name.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from camserver.domain import audit as rules
from camserver.domain.audit import Seal, SealKey
from camserver.store import Tx, audit, audit_seals, open_store

KEY = SealKey(b"k" * 32)
NOW_MS = 1_767_225_600_000
ENTRIES = 3


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def add(tx: Tx, count: int) -> None:
    for number in range(count):
        await audit.add(tx, audit.INSTALLATION, None, audit.Entry("did", NOW_MS, "", "thing", str(number)))


async def put_and_die(tx: Tx, seal: Seal, entry_ids: Sequence[int]) -> None:
    """Where the transaction runs: on SQLite it is the writer that dies."""
    await audit_seals.put(tx, seal, entry_ids)
    die()


async def main(url: str, moment: str) -> None:
    store = await open_store(url)
    await store.write(add, ENTRIES)
    if moment == "sealing":
        found = await store.read(audit_seals.unsealed, audit.INSTALLATION)
        made = rules.seal(found.last, audit.INSTALLATION, found.entries, KEY, NOW_MS)
        try:
            await store.write(put_and_die, made, [one.entry_id for one in found.entries])
        finally:
            die()
    die()


def start() -> None:
    asyncio.run(main(*sys.argv[1:]))
