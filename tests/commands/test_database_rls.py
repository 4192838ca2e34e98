"""`camserver db rls` as it is typed."""

import json
import uuid
from pathlib import Path

from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from tests.rig.databases import PostgresServer
from tests.rig.templates import PostgresTemplate


def run(folder: Path, url: str, *words: str) -> Result:
    settings = {"LC_ALL": "C.UTF-8", **({"CAMSERVER_STORE_URL": url} if url else {})}
    return CliRunner(env=settings).invoke(cli.main, ["--data-dir", str(folder), "db", "rls", *words])


def test_it_is_switched_on_told_and_switched_off(
    postgres: PostgresServer, postgres_template: PostgresTemplate, tmp_path: Path
) -> None:
    url, role = postgres_template.fresh(), f"web_{uuid.uuid4().hex[:12]}"
    postgres.admin(f"CREATE ROLE {role} LOGIN")
    assert "is off" in run(tmp_path, url).output
    enabled = run(tmp_path, url, "--enable", "--role", role)
    assert (enabled.exit_code, role in enabled.output) == (0, True), enabled.output
    told = json.loads(run(tmp_path, url, "--json").stdout)
    assert (told["is_on"], told["roles"], told["missing"]) == (True, [role], [])
    assert "is off" in run(tmp_path, url, "--disable").output
    postgres_template.discard(url)
    postgres.admin(f"DROP ROLE {role}")


def test_a_database_without_its_tables_is_told_what_comes_first(postgres: PostgresServer, tmp_path: Path) -> None:
    name = f"empty_{uuid.uuid4().hex[:12]}"
    postgres.create(name)
    refused = run(tmp_path, postgres.url(name), "--enable")
    assert refused.exit_code == Exit.STORE_TOO_OLD, refused.output
    assert "camserver db upgrade" in refused.output
    postgres.drop(name)


def test_other_databases_have_none(tmp_path: Path) -> None:
    refused = run(tmp_path, "", "--enable")
    assert refused.exit_code != 0
    assert "PostgreSQL only" in refused.output
