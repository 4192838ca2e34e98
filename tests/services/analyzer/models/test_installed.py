"""Installed models: whole or not there, and one of them in use."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from camserver.base.errors import Conflict, DataUnusable, ModelUnusable, NotFound
from camserver.services.analyzer.models.installed import InstalledModels, Pointer
from tests.services.analyzer.models.made import BYTES_MAX, Made, seeing


@pytest.fixture
def models(tmp_path: Path) -> InstalledModels:
    return InstalledModels(tmp_path / "data", BYTES_MAX)


def test_at_first_there_is_none(models: InstalledModels) -> None:
    assert models.all() == []
    assert models.active() is None
    with pytest.raises(NotFound, match="models list"):
        models.read(Pointer("yard", "1.0"))


def test_what_is_installed_is_listed_newest_first_and_read_again(models: InstalledModels, tmp_path: Path) -> None:
    for name, version in (("yard", "1.9"), ("yard", "1.10"), ("gate", "3")):
        models.add(Made(name, version).bundle(tmp_path))
    assert models.all() == [Pointer("gate", "3"), Pointer("yard", "1.10"), Pointer("yard", "1.9")]
    assert models.read(Pointer("yard", "1.9")).contents == {"model.onnx": seeing(0.9)}


def test_the_same_bundle_twice_is_fine_and_another_of_that_version_is_not(
    models: InstalledModels, tmp_path: Path
) -> None:
    made = Made()
    assert models.add(made.bundle(tmp_path)) == models.add(made.bundle(tmp_path))
    with pytest.raises(Conflict, match="a version of its own"):
        models.add(replace(made, files={"model.onnx": seeing(0.5)}).bundle(tmp_path))
    assert models.read(Pointer("yard", "1.0")).contents == {"model.onnx": seeing(0.9)}


@pytest.mark.parametrize("name", ["model.onnx", "model.toml"])
def test_a_file_that_changed_on_disk_is_noticed(models: InstalledModels, tmp_path: Path, name: str) -> None:
    pointer = models.add(Made().bundle(tmp_path))
    path = tmp_path / "data" / "models" / "yard" / "1.0" / name
    path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))
    with pytest.raises(ModelUnusable):
        models.read(pointer)


def test_a_model_in_another_ones_place_is_noticed(models: InstalledModels, tmp_path: Path) -> None:
    models.add(Made().bundle(tmp_path))
    folder = tmp_path / "data" / "models" / "yard"
    (folder / "1.0").rename(folder / "2.0")
    with pytest.raises(ModelUnusable, match=r"that of yard 1\.0"):
        models.read(Pointer("yard", "2.0"))


def test_choosing_changes_the_stamp_the_same_one_too(models: InstalledModels, tmp_path: Path) -> None:
    pointer = models.add(Made().bundle(tmp_path))
    stamps = [models.active_stamp()]
    for choice in (pointer, pointer, None):
        models.use(choice)
        assert models.active() == choice
        stamps.append(models.active_stamp())
    assert stamps[0] is stamps[3] is None
    assert stamps[1] != stamps[2]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"name": "../x", "version": "1"}', '{"name": "yard", "version": "x"}', "[" * 9000]
)
def test_a_choice_that_is_none_is_said(models: InstalledModels, tmp_path: Path, text: str) -> None:
    models.add(Made().bundle(tmp_path))
    (tmp_path / "data" / "models" / "active.json").write_text(text)
    with pytest.raises(ModelUnusable, match="camserver models use"):
        models.active()


def test_the_one_in_use_is_not_removed(models: InstalledModels, tmp_path: Path) -> None:
    pointer = models.add(Made().bundle(tmp_path))
    models.use(pointer)
    with pytest.raises(Conflict, match="in use"):
        models.remove(pointer)
    models.use(None)
    models.remove(pointer)
    assert models.all() == []
    with pytest.raises(NotFound):
        models.remove(pointer)
    assert list((tmp_path / "data" / "models").glob(".staging-*")) == []


def test_old_versions_go_but_not_the_one_in_use(models: InstalledModels, tmp_path: Path) -> None:
    for version in ("1", "2", "3", "4"):
        models.add(Made(version=version).bundle(tmp_path))
    models.add(Made("gate").bundle(tmp_path))
    models.use(Pointer("yard", "1"))
    models.forget_old("yard", 2)
    assert [str(one) for one in models.all()] == ["gate 1.0", "yard 4", "yard 3", "yard 1"]


def test_what_a_broken_off_installation_left_is_swept_after_a_day(models: InstalledModels, tmp_path: Path) -> None:
    models.add(Made().bundle(tmp_path))
    folder = tmp_path / "data" / "models"
    for name, age_sec in ((".staging-old", 100_000), (".staging-new", 10)):
        (folder / name).mkdir()
        os.utime(folder / name, (time.time() - age_sec,) * 2)
    models.add(Made(version="2").bundle(tmp_path))
    assert [path.name for path in folder.glob(".staging-*")] == [".staging-new"]
    assert len(models.all()) == 2


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    models = InstalledModels(tmp_path / "data", BYTES_MAX)
    with pytest.raises(DataUnusable, match=r"yard 1\.0"):
        models.add(Made().bundle(tmp_path))
    with pytest.raises(DataUnusable, match=r"active\.json"):
        models.use(Pointer("yard", "1.0"))


def test_two_that_install_the_same_at_once_both_have_it(models: InstalledModels, tmp_path: Path) -> None:
    bundle = Made().bundle(tmp_path)
    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(models.add, [bundle] * 12)) == {Pointer(bundle.manifest.name, bundle.manifest.version)}
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(models.use, models.all() * 12))
    assert models.active() == models.all()[0]
    assert not [one for one in (tmp_path / "data" / "models").iterdir() if one.name.startswith(".")]
