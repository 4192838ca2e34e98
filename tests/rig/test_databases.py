import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import conftest
from tests.rig.databases import DatabaseServer, MariadbServer, MissingServer, PostgresServer, mariadb_server
from tests.rig.polling import poll
from tests.rig.processes import REPOSITORY
from tests.rig.templates import MariadbTemplate, PostgresTemplate, SqliteTemplate, Template

TCP_LISTEN = "0A"  # in /proc/net/tcp
NOTE = "CREATE TABLE notes (note_key INTEGER PRIMARY KEY, text VARCHAR(50)); INSERT INTO notes VALUES (1, '一');"

HOLDER = """
import sys, time
from tests.rig.databases import {kind}_server
with {kind}_server() as server:
    print(server.process.pid, server.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture(params=["postgres", "mariadb"])
def holder(request: pytest.FixtureRequest) -> Iterator[tuple["subprocess.Popen[bytes]", int, Path]]:
    """A process that runs a server of its own; with the server's pid and folder."""
    request.getfixturevalue(request.param)  # skips when it is not installed
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(kind=request.param)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    pid, folder = process.stdout.readline().decode().split()
    yield process, int(pid), Path(folder)
    process.kill()
    process.communicate()


def test_a_server_dies_with_killed_tests_and_leaves_no_folder(
    holder: tuple["subprocess.Popen[bytes]", int, Path],
) -> None:
    process, pid, folder = holder
    assert not gone(pid)
    process.kill()
    poll(lambda: gone(pid), "end of the server")
    poll(lambda: not folder.exists(), "removal of the server's folder")


def test_a_server_dies_with_its_guard(holder: tuple["subprocess.Popen[bytes]", int, Path]) -> None:
    process, pid, folder = holder
    guard_pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard_pid, signal.SIGKILL)
    poll(lambda: gone(pid), "end of the server")
    process.communicate()
    assert not folder.exists()


def test_an_orderly_end_leaves_nothing(holder: tuple["subprocess.Popen[bytes]", int, Path]) -> None:
    process, pid, folder = holder
    process.communicate()
    assert process.returncode == 0
    assert gone(pid)
    assert not folder.exists()


def test_committed_rows_survive_a_crash_of_the_server(server: DatabaseServer) -> None:
    server.create("crash")
    try:
        server.admin(NOTE, "crash")
        pid = server.process.pid
        server.crash()
        assert gone(pid)
        server.start()
        assert server.admin("SELECT text FROM notes", "crash") == "一\n"
    finally:
        server.drop("crash")


def test_a_wrong_password_is_refused(server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "password", "wrong")
    with pytest.raises(RuntimeError, match=r"(?i)password"):
        server.admin("SELECT 1")


def test_nothing_listens_beyond_loopback(server: DatabaseServer) -> None:
    sockets = [line.split() for file in ("tcp", "tcp6") for line in _lines(f"/proc/net/{file}")]
    listening = {address for _, address, _, state, *_ in sockets if state == TCP_LISTEN}
    assert {address for address in listening if int(address.rpartition(":")[2], 16) == server.port} == {
        f"0100007F:{server.port:04X}"
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()[1:]


def test_server_templates_copy_tables_and_rows_each_time(server: DatabaseServer) -> None:
    def migrate(url: str) -> None:
        server.admin(NOTE, url.rpartition("/")[2])

    template: Template
    if isinstance(server, PostgresServer):
        template = PostgresTemplate(server, migrate, name="notes_template")
    else:
        assert isinstance(server, MariadbServer)
        template = MariadbTemplate(server, migrate, name="notes_template")
    first, second = template.fresh(), template.fresh()
    server.admin("INSERT INTO notes VALUES (2, '二')", first.rpartition("/")[2])
    assert server.admin("SELECT text FROM notes ORDER BY note_key", first.rpartition("/")[2]) == "一\n二\n"
    assert server.admin("SELECT text FROM notes", second.rpartition("/")[2]) == "一\n"
    for url in (first, second):
        template.discard(url)
        with pytest.raises(RuntimeError):
            server.admin("SELECT 1", url.rpartition("/")[2])
    server.drop("notes_template")


def test_sqlite_templates_copy_also_what_is_in_the_log(tmp_path: Path) -> None:
    def migrate(url: str) -> None:
        # Left open on purpose: its rows are in the write-ahead log only.
        connections.append(sqlite3.connect(url.removeprefix("sqlite://")))
        connections[0].execute("PRAGMA journal_mode = WAL")
        connections[0].executescript(NOTE)

    connections: list[sqlite3.Connection] = []
    template = SqliteTemplate(tmp_path, migrate)
    connections[0].close()
    url = template.fresh()
    with closing(sqlite3.connect(url.removeprefix("sqlite://"))) as copy:
        assert copy.execute("SELECT text FROM notes").fetchall() == [("一",)]
    template.discard(url)
    assert not Path(url.removeprefix("sqlite://")).exists()


def test_a_missing_server_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingServer, match="apt-get install mariadb-server"), mariadb_server():
        pass


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_server_skips_but_fails_where_ci_is_set(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="install it"):
        conftest._missing(MissingServer("install it"))
