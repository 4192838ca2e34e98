"""`camserver db copy` as it is typed, and the installation on its new database."""

import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from tests.rig.databases import DatabaseServer
from tests.rig.ports import free_port


def run(folder: Path, *words: str, **variables: str) -> Result:
    # Nobody listens at that port, so each command opens the store itself.
    settings = {"LC_ALL": "C.UTF-8", "CAMSERVER_WEB_PORT": str(free_port()), **variables}
    return CliRunner(env=settings).invoke(cli.main, ["--data-dir", str(folder), *words])


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_people_and_numbers_are_on_the_new_database(
    request: pytest.FixtureRequest, kind: str, tmp_path: Path
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    name = f"moved_{uuid.uuid4().hex[:12]}"
    server.create(name)
    for login in ("guard", "gone"):
        assert run(tmp_path, "user", "add", login).exit_code == 0
    assert run(tmp_path, "user", "remove", "gone", "--yes").exit_code == 0
    copied = run(tmp_path, "db", "copy", CAMSERVER_COPY_URL=server.url(name))
    assert (copied.exit_code, "compared them all" in copied.output) == (Exit.OK, True), copied.output
    again = run(tmp_path, "db", "copy", server.url(name))
    assert again.exit_code == Exit.REFUSED
    assert "new, empty database" in again.output
    assert server.password not in again.output
    there = {"CAMSERVER_STORE_URL": server.url(name)}
    assert "guard" in run(tmp_path, "user", "list", **there).output
    assert run(tmp_path, "user", "add", "next", **there).exit_code == 0
    assert server.admin("SELECT max(user_id) FROM users", name).strip().endswith("3")
    server.drop(name)
