"""A disk of a few megabytes, to be filled up: a tmpfs, which only root may mount."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


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
