"""The Makefile explains itself and runs every test there is."""

import os
import re
import shutil
import subprocess

import pytest

from .tree import ROOT, repository_files

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = sorted(set(re.findall(r"^([a-z][a-z%-]*):(?!=)", MAKEFILE, re.MULTILINE)))


def make(*arguments: str, cwd=ROOT) -> subprocess.CompletedProcess[str]:
    # MAKEFLAGS of an outer `make test` (such as -j or a jobserver) must not leak in.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=cwd, env=kept, capture_output=True, text=True, check=False, timeout=120
    )


def test_help_is_the_default_and_lists_every_target():
    shown = make()
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == make("help").stdout
    listed = re.findall(r"^  make (\S+) +\S", shown.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(target.replace("%", "NAME") for target in TARGETS)


def test_every_target_but_the_pattern_is_phony():
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE.replace("\\\n", " "), re.MULTILINE)
    assert phony is not None
    assert set(TARGETS) - set(phony.group(1).split()) == {"bench-%"}


def test_promised_targets_exist():
    promised = {"help", "run", "test", "check", "lock", "wheel", "fresh", "soak", "bench-%", "clean"}
    assert promised <= set(TARGETS)


def test_every_test_file_is_run_exactly_once():
    planned = make("--dry-run", "test").stdout
    command = next(line for line in planned.splitlines() if "-m pytest" in line)
    paths = [word for word in command.split() if word.startswith("tests/")]
    for file in repository_files():
        name = file.relative_to(ROOT).as_posix()
        if re.match(r"tests/(.*/)?test_\w+\.py$", name):
            covering = [path for path in paths if name == path or name.startswith(f"{path}/")]
            assert len(covering) == 1, f"{name} is covered by {covering}"


def test_quick_tests_come_first_and_pytest_speaks_last():
    lines = [line for line in make("--dry-run", "test").stdout.splitlines() if line.strip()]
    assert "-m pytest" in lines[-1]
    words = lines[-1].split()
    existing = [f"tests/{name}" for name in ("base", "domain", "store", "services", "e2e", "chaos")]
    order = [words.index(name) for name in existing if name in words]
    assert order == sorted(order)


def test_folders_with_tests_are_packages():
    # Without __init__.py two test files of the same name in different folders collide.
    folders = {file.parent for file in repository_files() if re.match(r"test_\w+\.py$", file.name)}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_unknown_bench_lists_the_known_ones(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "queue_depth.py").touch()
    asked = make("--old-file=setup-dev", "bench-nothing", cwd=tmp_path)
    assert asked.returncode != 0
    assert "no bench named 'nothing'. There are: queue-depth" in asked.stderr


def test_missing_python_is_said_clearly():
    asked = make("PYTHON=/nowhere/python3", "setup")
    assert "camserver needs Python 3.11 or newer; there is no '/nowhere/python3'" in asked.stderr
    assert "Error 3" in asked.stderr


@pytest.mark.parametrize("name", [".ci/run", "tools/setup.py"])
def test_entry_programs_can_be_executed(name):
    assert os.access(ROOT / name, os.X_OK)


def test_build_machine_runs_make_test():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert "make test" in script
