import tempfile
from pathlib import Path

import pytest

from tests.rig import memory
from tests.rig.memory import quick_folder


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp"])
def test_who_chooses_a_folder_gets_it(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert quick_folder() == Path(folder)


def test_where_memory_is_scarce_it_is_the_usual_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(memory, "ROOM_MIN_BYTES", 2**60)
    assert quick_folder() == Path(tempfile.gettempdir()) != memory.MEMORY
