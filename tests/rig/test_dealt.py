"""By a run of pytest of its own, over files that lie where those of services do."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.rig.dealt import SERVERS, server_of
from tests.rig.processes import REPOSITORY

PLAIN = "def test_{name}(db_kind): pass\n"
COLLECT = """
import json, pathlib, pytest, sys
from tests.rig.dealt import dealt

class Plugin:
    @pytest.fixture(params=["sqlite", "postgres", "mariadb"])
    def db_kind(self, request):
        return request.param

    @pytest.fixture
    def two_stores(self, db_kind):
        return db_kind

    def pytest_collection_finish(self, session):
        left = [item.nodeid for item in dealt(session.items)]
        pathlib.Path("left.json").write_text(json.dumps(left))

sys.exit(pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "tests"], plugins=[Plugin()]))
"""


def kept(folder: Path, files: Mapping[str, str]) -> dict[str, set[str]]:
    """The databases that each test is left with."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-c", COLLECT]
    done = subprocess.run(argv, cwd=folder, env={"PYTHONPATH": str(REPOSITORY)}, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    found: dict[str, set[str]] = {}
    for nodeid in json.loads((folder / "left.json").read_text()):
        name, _, kind = nodeid.rstrip("]").partition("[")
        found.setdefault(name, set()).add(kind)
    return found


def test_a_test_of_a_service_runs_on_sqlite_and_one_server(tmp_path: Path) -> None:
    names = [str(number) for number in range(12)]
    left = kept(tmp_path, {"tests/services/test_a.py": "".join(PLAIN.format(name=name) for name in names)})
    assert left == {name: {"sqlite", server_of(name)} for name in left}
    assert len(left) == len(names)
    assert {server_of(name) for name in left} == set(SERVERS), "both servers get some"


def test_what_the_database_decides_runs_on_every_one(tmp_path: Path) -> None:
    every = {"sqlite", *SERVERS}
    named = "import pytest\n@pytest.mark.parametrize('db_kind', ['postgres', 'mariadb'], indirect=True)\n"
    left = kept(
        tmp_path,
        {
            "tests/store/test_a.py": PLAIN.format(name="sql"),
            "tests/services/test_b.py": "EVERY_DATABASE = True\n" + PLAIN.format(name="b"),
            "tests/services/test_c.py": "def test_race(two_stores): pass\n",
            "tests/services/test_d.py": named + PLAIN.format(name="named"),
        },
    )
    assert left == {
        "tests/store/test_a.py::test_sql": every,
        "tests/services/test_b.py::test_b": every,
        "tests/services/test_c.py::test_race": every,
        "tests/services/test_d.py::test_named": set(SERVERS),
    }
