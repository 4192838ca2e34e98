"""Spools looks until it is killed, again and again: imports once and forks a writer for each line on stdin.

It prints `pid N` for each writer and `ended` when that was killed; the writer prints `durable SEQ` after each look.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.services.worker.build import look, roomy_spool


async def write_for_ever(folder: Path) -> None:
    spool = roomy_spool(folder)
    await spool.open()
    first = spool.highest_seq("cam_1", 1) + 1
    seq = first
    while True:
        if await spool.add(look(seq, size_bytes=seq * 7919 % 200_000)):
            os.write(1, f"durable {seq}\n".encode())
        # Some leave as they do when they were sent, so that the folder changes in every way.
        if seq % 5 == 0 and (entry := spool.take(0, fresh_first=False)) is not None:
            os.write(1, f"leaving {entry.name.seq}\n".encode())
            await spool.acknowledged(entry)
        seq += 1


def main() -> None:
    folder = Path(sys.argv[1])
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            asyncio.run(write_for_ever(folder))
        os.write(1, f"pid {pid}\n".encode())
        os.waitpid(pid, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
