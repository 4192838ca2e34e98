"""The import contracts hold, and each of them would notice a breach."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .tree import ROOT

BREACHES = [
    pytest.param("breach.py", "", "Imports go down", id="unlisted-top-module"),
    pytest.param("base/breach.py", "import camserver.domain", "Imports go down", id="base-domain"),
    pytest.param("wire/breach.py", "import camserver.store", "Imports go down", id="wire-store"),
    pytest.param("media/breach.py", "import camserver.objects", "Imports go down", id="media-objects"),
    pytest.param("services/web/breach.py", "import camserver.services.control", "Services talk", id="web-control"),
    pytest.param("services/kiosk/breach.py", "", "Services talk", id="unlisted-service"),
    pytest.param("services/worker/breach.py", "import camserver.store", "A worker", id="worker-store"),
    pytest.param("domain/breach.py", "import asyncio", "Rules do no I/O", id="domain-asyncio"),
    pytest.param("domain/breach.py", "from pathlib import Path", "Rules do no I/O", id="domain-pathlib"),
    pytest.param("domain/breach.py", "import time", "Rules do no I/O", id="domain-time"),
    pytest.param("services/web/breach.py", "import sqlite3", "Only the store", id="service-sqlite3"),
    pytest.param("breach.py", "from asyncpg import connect", "Only the store", id="top-module-asyncpg"),
]


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    # The wide terminal keeps a contract's name and its verdict on one line.
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "COLUMNS": "400"}
    program = "import importlinter.cli as cli; cli.lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def copy_source(destination: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", destination / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", destination)


def add_module(project: Path, name: str, text: str) -> None:
    path = project / "src" / "camserver" / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(f"{text}\n")


def test_contracts_hold():
    linted = lint(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(("module", "text", "contract"), BREACHES)
def test_breach_is_found(tmp_path, module, text, contract):
    copy_source(tmp_path)
    for service in ("control", "web", "worker"):
        add_module(tmp_path, f"services/{service}/present.py", "")
    add_module(tmp_path, module, text)
    linted = lint(tmp_path)
    broken = [line for line in linted.stdout.splitlines() if " BROKEN" in line]
    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert [line for line in broken if line.startswith(contract)], linted.stdout
