import errno
import os
import shutil
import time
from pathlib import Path
from typing import NoReturn

import pytest

from camserver.base.errors import DataUnusable
from camserver.base.folders import FREE_MIN_BYTES, make_usable, write_whole


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


def test_a_file_is_written_whole_and_drafts_of_the_dead_are_swept(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    old, young, others = (tmp_path / name for name in (".kept.json-a.draft", ".kept.json-b.draft", ".other-a.draft"))
    for draft in (old, young, others):
        draft.write_text("half")
    for draft in (old, others):
        os.utime(draft, (time.time() - 90_000, time.time() - 90_000))
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert {one.name for one in tmp_path.iterdir()} == {path.name, young.name, others.name}


def test_what_can_not_be_written_leaves_the_file_before_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.json"
    write_whole(path, b"one")

    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"two")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("kept.json", b"one")]
