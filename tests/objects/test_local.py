"""Objects as files: whole or not there, listed in order, and clear words when the disk does not do its part."""

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.base.errors import Unavailable
from camserver.objects.keys import is_draft
from camserver.objects.local import LocalObjects, _walk
from tests.rig.effort import times
from tests.rig.small_disk import small_disk


@pytest.fixture
def objects(tmp_path: Path) -> LocalObjects:
    return LocalObjects(tmp_path / "objects")


async def test_deleting_the_last_object_leaves_no_folder_behind(objects: LocalObjects) -> None:
    await objects.put("e1/t1/c1/a.jpg", b"x")
    await objects.put("e1/t2/b.jpg", b"x")
    await objects.delete("e1/t1/c1/a.jpg")
    assert sorted(path.name for path in (objects.root / "e1").iterdir()) == ["t2"]
    await objects.delete("e1/t2/b.jpg")
    assert list(objects.root.iterdir()) == []


parts = st.text("ab-0.", min_size=1, max_size=3).filter(lambda part: not part.startswith("."))
keys = st.lists(parts, min_size=1, max_size=3).map(lambda found: "/".join(["e1", *found]))


@settings(max_examples=times(30, 300))
@given(wanted=st.sets(keys, max_size=12), page=st.integers(1, 4))
def test_pages_hold_every_key_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, wanted: set[str], page: int
) -> None:
    # A name is a file or a folder, not both.
    files = {key for key in wanted if not any(other.startswith(key + "/") for other in wanted)}
    objects = LocalObjects(tmp_path_factory.mktemp("listed"))

    async def paged() -> list[str]:
        for key in files:
            await objects.put(key, b"")
        found: list[str] = []
        while keys := await objects.list("e1/", page, found[-1] if found else ""):
            assert len(keys) <= page
            found += keys
        return found

    assert asyncio.run(paged()) == sorted(files)


def test_folders_that_were_listed_before_are_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / "e1" / folder).mkdir(parents=True)
        (tmp_path / "e1" / folder / "x.jpg").touch()
    opened: list[str] = []
    scandir = os.scandir

    def noted(path: Path) -> object:
        opened.append(str(Path(path).relative_to(tmp_path)))
        return scandir(path)

    monkeypatch.setattr("camserver.objects.local.os.scandir", noted)
    assert list(_walk(tmp_path, "e1/", "e1/b/x.jpg")) == ["e1/c/x.jpg"]
    assert "e1/a" not in opened


async def test_a_full_disk_says_so_and_leaves_nothing_half_written() -> None:
    with small_disk(1 << 20) as disk:
        objects = LocalObjects(disk / "objects")
        await objects.put("e1/kept.jpg", b"k" * 1000)
        with pytest.raises(Unavailable, match=r"no space left.*free space"):
            await objects.put("e1/big.jpg", b"b" * (4 << 20))
        assert await objects.list("e1/", 10) == ["e1/kept.jpg"]
        assert await objects.get("e1/kept.jpg") == b"k" * 1000
        await objects.put("e1/small.jpg", b"s" * 1000)
        assert (await objects.free_bytes() or 0) > 0


@contextmanager
def _failing(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(f"camserver.objects.local.os.{name}", fail)
        yield


async def test_a_put_that_could_not_be_synced_fails(objects: LocalObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    with _failing(monkeypatch, "fsync", errno.EIO), pytest.raises(Unavailable, match="check the folder"):
        await objects.put("e1/a.jpg", b"x")
    assert await objects.list("e1/", 10) == []


async def test_what_a_killed_writer_left_is_listed_as_a_draft(objects: LocalObjects) -> None:
    await objects.put("e1/a.jpg", b"x")
    (objects.root / "e1" / "b.jpg.draft-0123").write_bytes(b"half")
    keys = await objects.list("e1/", 10)
    assert [key for key in keys if is_draft(key)] == ["e1/b.jpg.draft-0123"]
