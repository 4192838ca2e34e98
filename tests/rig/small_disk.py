"""A disk of a few megabytes, to be filled up: a tmpfs, which only root may mount."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

# Of filling it, beside somebody who writes; reaching it means that nothing is filled at all.
ATTEMPTS_MAX = 1_000


class CantMount(Exception):
    """Why there is no small disk here."""


@contextmanager
def mounted_disk(size_bytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cs-disk-") as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode != 0:
            who = "root" if os.geteuid() == 0 else "not root"
            raise CantMount(f"full disks need a tmpfs, and mounting one failed ({who}): {mounted.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def small_disk(size_bytes: int) -> Iterator[Path]:
    """Skips the test, loudly, where a tmpfs can't be mounted."""
    with ExitStack() as stack:
        try:
            place = stack.enter_context(mounted_disk(size_bytes))
        except CantMount as error:
            pytest.skip(f"NOT TESTED: {error}")
        yield place


def fill(ballast: Path) -> None:
    """Takes all that is free on a disk for a new file, while others go on writing there."""
    taken = 0
    with ballast.open("wb") as file:
        for _ in range(ATTEMPTS_MAX):
            found = os.statvfs(ballast)
            free = found.f_bavail * found.f_frsize
            if not free:
                return
            try:
                os.posix_fallocate(file.fileno(), taken, free)
                taken += free
            except OSError as error:
                # Somebody else was quicker; what is left is less.
                if error.errno != errno.ENOSPC:
                    raise
    raise RuntimeError(f"the disk of {ballast} did not get full in {ATTEMPTS_MAX} attempts")
