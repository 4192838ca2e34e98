import errno
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from camserver.base.errors import DataUnusable
from camserver.base.folders import FREE_MIN_BYTES, make_usable


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_usable(folder, "server.data_dir")
    assert list(folder.iterdir()) == []


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataUnusable, match=r"data is not a folder; choose another folder with server\.data_dir"):
        make_usable(tmp_path / "data", "server.data_dir")
    with pytest.raises(DataUnusable, match="is not a folder"):
        make_usable(tmp_path / "data" / "below", "server.data_dir")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.EROFS, "read-only disk"),
        (errno.EACCES, "may not be written by this user"),
        (errno.ENOSPC, "no free disk space"),
        (errno.EIO, "can't be used (Input/output error)"),
    ],
)
def test_what_the_system_says_is_put_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def fail(fd: int) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataUnusable) as caught:
        make_usable(tmp_path, "server.data_dir")
    assert words in caught.value.message


def test_too_little_room_is_told_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, FREE_MIN_BYTES - 1))
    with pytest.raises(DataUnusable, match="49 MB of free disk space"):
        make_usable(tmp_path, "server.data_dir")
