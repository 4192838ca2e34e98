"""A worker needs no database: neither drivers nor what is built on them are there, and it loads and answers."""

import subprocess
import sys

import pytest

BLOCKED = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"asyncpg", "asyncmy", "sqlalchemy", "alembic", "greenlet"}:
            raise ImportError(name + " is not installed here")
        return None

sys.meta_path.insert(0, Blocked())
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_blocking_works() -> None:
    assert "sqlalchemy is not installed here" in run("import camserver.store.tables").stderr


@pytest.mark.parametrize("words", [("run", "--help"), ("enroll", "--help"), ("token", "--help")])
def test_commands_answer_without_database_drivers(words: tuple[str, ...]) -> None:
    done = run("from camserver.cli import main; main()", "worker", *words)
    assert done.returncode == 0, done.stderr
    assert "camserver worker" in done.stdout


def test_the_worker_loads_without_database_drivers() -> None:
    code = (
        "import camserver.parts, camserver.services.worker.service, camserver.services.worker.enrolling\n"
        "assert not [name for name in sys.modules if name.startswith('camserver.store')]\n"
        "assert 'sqlite3' not in sys.modules\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_a_worker_that_was_not_enrolled_says_what_to_do(tmp_path: object) -> None:
    code = (
        "import os; os.environ['CAMSERVER_WORKER_SERVER_URL'] = 'https://cams.example.com:8443'\n"
        "from camserver.cli import main; main()"
    )
    done = run(code, "--data-dir", f"{tmp_path}/data", "worker", "run")
    assert done.returncode != 0
    assert "camserver worker enroll https://cams.example.com:8443" in done.stderr
