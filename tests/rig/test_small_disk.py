"""A small disk gets full whatever others write to it meanwhile, and has room again afterwards."""

import threading
from pathlib import Path

import pytest

from tests.rig.small_disk import fill, small_disk

DISK_BYTES = 64_000_000
PIECE = b"x" * 4096


def test_a_disk_gets_full_beside_somebody_who_writes() -> None:
    with small_disk(DISK_BYTES) as disk:
        full, started = threading.Event(), threading.Event()

        def write() -> None:
            number = 0
            while not full.is_set():
                try:
                    (disk / f"piece-{number}").write_bytes(PIECE)
                except OSError:
                    (disk / f"piece-{number}").unlink(missing_ok=True)
                number += 1
                started.set()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            started.wait()
            fill(disk / "ballast")
        finally:
            full.set()
            writer.join()
        _is_full(disk)
        (disk / "ballast").unlink()
        (disk / "after").write_bytes(PIECE)


def _is_full(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (disk / "one more").write_bytes(b"x" * DISK_BYTES)
