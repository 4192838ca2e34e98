"""Crash tests keep their files on the disk, as in earnest; others keep them in memory (tests/rig/memory.py)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cs-chaos-") as folder:
        yield Path(folder)
