"""A PATH without some programs, on folders that hold them beside others."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))  # its programs import each other by name, as scripts do

from hidden_programs import NODE_PROGRAMS, path_without


@pytest.fixture
def links(tmp_path: Path) -> Path:
    folder = tmp_path / "links"
    folder.mkdir(mode=0o700)
    return folder


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {path.name} speaks\n")
    path.chmod(0o755)
    return path


def joined(*folders: Path | str) -> str:
    return os.pathsep.join(str(folder) for folder in folders)


def test_neighbours_stay_and_other_folders_are_left_alone(tmp_path: Path, links: Path) -> None:
    for name in ("node", "npm", "make", "python3"):
        program(tmp_path / "both" / name)
    program(tmp_path / "other" / "git")
    path = path_without(["node", "npm"], joined(tmp_path / "both", tmp_path / "other"), links)
    assert shutil.which("node", path=path) is None
    assert shutil.which("npm", path=path) is None
    assert shutil.which("git", path=path) == str(tmp_path / "other" / "git")
    found = shutil.which("python3", path=path)
    assert found is not None
    assert subprocess.run([found], capture_output=True, text=True, check=True).stdout == "python3 speaks\n"
    assert path.split(os.pathsep)[1:] == [str(tmp_path / "other")]
    # A database server that runs as a user of its own finds its programs there.
    assert {folder.stat().st_mode & 0o755 for folder in (links, *links.iterdir())} == {0o755}


def test_order_counts_as_before(tmp_path: Path, links: Path) -> None:
    for folder in ("first", "second"):
        for name in ("node", "tool"):
            program(tmp_path / folder / name)
    path = path_without(["node"], joined(tmp_path / "first", tmp_path / "second"), links)
    found = shutil.which("tool", path=path)
    assert found is not None
    assert os.path.realpath(found) == str(tmp_path / "first" / "tool")


def test_a_folder_under_two_names_is_linked_once(tmp_path: Path, links: Path) -> None:
    program(tmp_path / "usr" / "bin" / "node")
    program(tmp_path / "usr" / "bin" / "tool")
    (tmp_path / "bin").symlink_to(tmp_path / "usr" / "bin")
    path = path_without(["node"], joined(tmp_path / "usr" / "bin", tmp_path / "bin"), links)
    assert os.pathsep not in path
    assert shutil.which("tool", path=path)


def test_what_has_no_fixed_place_is_left_out(tmp_path: Path, links: Path) -> None:
    program(tmp_path / "bin" / "tool")
    path = path_without(["node"], joined("", "node_modules/.bin", tmp_path / "nowhere", tmp_path / "bin"), links)
    assert path == str(tmp_path / "bin")


def test_a_shim_that_points_nowhere_is_hidden_too(tmp_path: Path, links: Path) -> None:
    (tmp_path / "shims").mkdir()
    (tmp_path / "shims" / "node").symlink_to(tmp_path / "not yet")
    path = path_without(["node"], str(tmp_path / "shims"), links)
    program(tmp_path / "not yet")
    assert shutil.which("node", path=path) is None


def test_this_machine_without_node(links: Path) -> None:
    path = path_without(NODE_PROGRAMS, os.environ["PATH"], links)
    assert not [name for name in NODE_PROGRAMS if shutil.which(name, path=path)]
    for name in ("sh", "make", "git"):
        found = shutil.which(name, path=path)
        assert found is not None
        assert os.path.realpath(found) == os.path.realpath(shutil.which(name) or "")
