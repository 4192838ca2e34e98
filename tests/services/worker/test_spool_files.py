import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput, DataOwned, DataUnusable
from camserver.services.worker import spool_files
from camserver.services.worker.spool_files import LookName, SpoolFiles, decode, encode
from tests.services.worker.build import look

NAMES = st.builds(
    LookName,
    captured_at=st.integers(0, 10**15),
    camera_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    generation=st.integers(1, 2**63 - 1),
    seq=st.integers(1, 2**63 - 1),
    quiet=st.booleans(),
)


@pytest.fixture
def files(tmp_path: Path) -> SpoolFiles:
    opened = SpoolFiles(tmp_path)
    opened.open()
    return opened


@given(NAMES)
def test_name_says_what_it_was_made_of_and_fits_a_file_system(name: LookName) -> None:
    assert LookName.parse(name.file_name) == name
    assert len(name.file_name) + len(spool_files.DRAFT_SUFFIX) <= 255


@given(st.text(max_size=60))
def test_no_other_name_is_taken_for_a_look(text: str) -> None:
    parsed = LookName.parse(text)
    assert parsed is None or parsed.file_name == text


@given(st.data())
def test_any_damage_is_seen(data: st.DataObject) -> None:
    whole = encode(look(size_bytes=50))
    cut = data.draw(st.integers(0, len(whole) - 1))
    for broken in (whole[:cut], whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :], whole + b"x"):
        with pytest.raises(BadInput):
            decode(broken)


def test_look_comes_back_as_it_was_written(files: SpoolFiles) -> None:
    written = look(7, quiet=False)
    found = files.write(written)
    assert found is not None
    assert files.read(found.name) == written


def test_files_are_their_owners_alone(files: SpoolFiles, tmp_path: Path) -> None:
    found = files.write(look())
    assert found is not None
    path = tmp_path / "looks" / found.name.file_name
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_next_run_finds_looks_clears_drafts_and_sets_unknown_files_aside(files: SpoolFiles, tmp_path: Path) -> None:
    found = files.write(look())
    assert found is not None
    looks = tmp_path / "looks"
    (looks / (found.name.file_name + ".tmp")).write_bytes(b"half")
    (looks / "strange.look").write_bytes(b"?")
    (looks / "folder").mkdir()
    files.close()
    assert SpoolFiles(tmp_path).open() == [found]
    assert sorted(os.listdir(looks)) == sorted(["folder", found.name.file_name])
    assert os.listdir(tmp_path / "refused") == ["strange.look"]


def test_file_with_another_look_in_it_is_refused(files: SpoolFiles, tmp_path: Path) -> None:
    found, other = files.write(look(1)), files.write(look(2))
    assert found is not None
    assert other is not None
    looks = tmp_path / "looks"
    os.replace(looks / other.name.file_name, looks / found.name.file_name)
    with pytest.raises(BadInput, match="another look"):
        files.read(found.name)


def test_file_that_is_gone_is_refused(files: SpoolFiles) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        files.read(LookName.of(look()))


def test_one_folder_has_one_worker(files: SpoolFiles, tmp_path: Path) -> None:
    with pytest.raises(DataOwned, match=r"worker\.spool_dir"):
        SpoolFiles(tmp_path).open()
    files.close()
    SpoolFiles(tmp_path).open()


def test_folder_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text("a file where a folder belongs")
    with pytest.raises(DataUnusable, match=str(tmp_path)):
        SpoolFiles(tmp_path).open()


def test_failed_write_leaves_nothing(files: SpoolFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for good_calls in (0, 1):  # the file's fsync fails, then the folder's
        calls = iter(range(10))

        def fsync(fd: int, calls: Iterator[int] = calls, failing: int = good_calls) -> None:
            if next(calls) == failing:
                raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", fsync)
        assert files.write(look()) is None
        assert os.listdir(tmp_path / "looks") == []


def test_what_is_set_aside_is_bounded_in_number_and_bytes(
    files: SpoolFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_files, "SET_ASIDE_FILES_MAX", 3)
    names = []
    for seq in range(1, 6):
        found = files.write(look(seq))
        assert found is not None
        files.set_aside(found.name)
        path = tmp_path / "refused" / found.name.file_name
        os.utime(path, ns=(seq * 10**9, seq * 10**9))
        names.append(found.name.file_name)
    files.set_aside(LookName.of(look(99)))  # not there: nothing happens
    assert sorted(os.listdir(tmp_path / "refused")) == names[2:]
    monkeypatch.setattr(spool_files, "SET_ASIDE_BYTES_MAX", 1500)
    files.close()
    SpoolFiles(tmp_path).open()
    assert os.listdir(tmp_path / "refused") == names[4:]


def test_a_power_cut_takes_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a disk has for certain: files and folder entries that were synced, in this order."""
    steps: list[str] = []
    sync, rename = os.fsync, Path.rename

    def noted_sync(fd: int) -> None:
        steps.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), tmp_path))
        sync(fd)

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append(f"rename to {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    files = SpoolFiles(tmp_path / "worker" / "spool")
    files.open()
    # Every folder that was made is named in a folder that was synced.
    assert steps == [".", "worker", "worker/spool", "worker/spool"]
    steps.clear()
    found = files.write(look(1))
    assert found is not None
    name = found.name.file_name
    folder = "worker/spool/looks"
    assert steps == [f"{folder}/{name}.tmp", f"rename to {name}", folder]
    steps.clear()
    SpoolFiles.close(files)
    again = SpoolFiles(tmp_path / "worker" / "spool")
    again.open()
    assert steps == []
    again.close()


def test_a_disk_that_does_not_answer_has_no_room(files: SpoolFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> os.statvfs_result:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "statvfs", broken)
    assert files.free_bytes() == 0
