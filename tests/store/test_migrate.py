"""Migrations: what they make equals store/tables, and an upgrade never costs data, wherever it is cut off."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy.engine import Connection

from camserver.base.errors import Fatal, StoreTooNew, StoreTooOld, StoreUnavailable, UpgradeFailed
from camserver.base.secrets import Secret
from camserver.domain.vocabulary import INVESTIGATION_ONLY, parse_vocabulary
from camserver.store import Dialect, Store, dumps, migrate, open_store, sqlite_schema, upgrade_database, vocabularies
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.check import check_database
from camserver.store.marks import Mark
from camserver.store.migrate import on_database, status, upgrade
from camserver.store.tables import metadata
from tests.rig.databases import DatabaseServer
from tests.rig.polling import poll
from tests.rig.ports import free_port
from tests.store.dying import MADE
from tests.store.upgrading import MOMENTS

TENANTS = 3

NOW_REVISION = sqlite_schema.newest_revision()
NEXT_REVISION = f"{int(NOW_REVISION) + 1:04}"
# A further migration: a column with a value made from another one, a table, and something a repeat would show.
NEXT = '''
"""A test's next schema."""

import os
import signal

import sqlalchemy as sa
from alembic import op

revision = "<NEXT>"
down_revision = "<NOW>"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("nick", sa.String(64), nullable=False, server_default=""))
    op.execute("UPDATE tenants SET nick = name")
    op.execute("UPDATE tenants SET created_at = created_at + 1")
    if os.environ.get("CAMSERVER_TEST_DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    op.create_table("toys", sa.Column("toy_id", sa.BigInteger, primary_key=True))
'''.replace("<NOW>", NOW_REVISION).replace("<NEXT>", NEXT_REVISION)
FAILING = NEXT.replace('    op.create_table("toys"', '    op.execute("THIS IS NO SQL")\n    op.create_table("toys"')


@pytest.fixture
def empty_url(db_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database without a schema."""
    if db_kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'data' / 'camserver.db'}"
        return
    server: DatabaseServer = request.getfixturevalue(db_kind)
    name = f"empty_{uuid.uuid4().hex[:12]}"
    server.create(name)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def next_migrations(tmp_path: Path) -> Path:
    """The program's migrations and one more."""
    folder = tmp_path / "next" / "migrations"
    shutil.copytree(sqlite_schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT_REVISION}_next.py").write_text(NEXT)
    return folder


@pytest.fixture
def newer_program(next_migrations: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """From here on the program is the next version."""
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    return next_migrations


def fill(url: str) -> None:
    def insert(connection: Connection) -> None:
        for number in range(TENANTS):
            values = {"uuid": f"u{number}", "name": f"tenant {number} 日本 'x'", "at": number * 10}
            connection.execute(
                sa.text("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES (:uuid, :name, :at)"), values
            )

    on_database(url, insert)


def tenants(url: str, columns: str = "name, created_at") -> list[tuple[object, ...]]:
    def select(connection: Connection) -> list[tuple[object, ...]]:
        return [
            tuple(row) for row in connection.execute(sa.text(f"SELECT {columns} FROM tenants ORDER BY tenant_uuid"))
        ]

    return on_database(url, select)


OLD_ROWS = [(f"tenant {number} 日本 'x'", number * 10) for number in range(TENANTS)]
NEW_ROWS = [(name, created_at + 1, name) for name, created_at in OLD_ROWS]
NEW_COLUMNS = "name, created_at, nick"


# Fresh equals migrated


def picture(connection: Connection) -> dict[str, list[str]]:
    """The schema in the database's own words, in an order that does not depend on how it came about."""
    match connection.dialect.name:
        case "sqlite":
            rows = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
            return {name: sorted(_parts(sql)) for name, sql in rows}
        case "postgresql":
            return {name: sorted(map(str, connection.execute(sa.text(sql)))) for name, sql in _CATALOGUE.items()}
        case _:
            names = sa.inspect(connection).get_table_names()
            shown = {name: connection.execute(sa.text(f"SHOW CREATE TABLE {name}")).one()[1] for name in names}
            triggers = connection.execute(
                sa.text(
                    "SELECT trigger_name, event_manipulation, event_object_table, action_timing, action_statement "
                    "FROM information_schema.triggers WHERE trigger_schema = database()"
                )
            )
            return {
                **{name: sorted(line.strip(" ,") for line in sql.splitlines()) for name, sql in shown.items()},
                "triggers": sorted(map(str, triggers)),
            }


def _parts(sql: str) -> list[str]:
    """The columns and constraints of a statement; those that were added later stand on one line with others."""
    parts, depth = [""], 0
    for letter in sql:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += letter
    return [" ".join(part.split()).rstrip(" )").replace("( ", "(") for part in parts]


_CATALOGUE = {
    "columns": """
        SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'",
    "constraints": """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'""",
    "triggers": "SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
}


def test_what_migrations_make_equals_the_page(db_url: str, empty_url: str) -> None:
    if dialect_of(empty_url) is Dialect.SQLITE:
        sqlite_path(empty_url).parent.mkdir()
    on_database(empty_url, metadata.create_all)
    fresh, migrated = on_database(empty_url, picture), on_database(db_url, picture)
    migrated.pop("alembic_version", None)
    assert migrated.keys() == fresh.keys()
    for name, lines in fresh.items():
        assert migrated[name] == lines, name


def test_the_picture_shows_what_matters(db_url: str) -> None:
    """The comparison above would be worth nothing if it did not see these."""
    shown = " ".join(line for lines in on_database(db_url, picture).values() for line in lines).lower()
    words = {
        Dialect.SQLITE: ["priority desc", "not null", "where status = 'queued'", "default 0"],
        Dialect.POSTGRES: [
            "priority desc",
            "'no', none",
            "where ((status)::text = 'queued'::text)",
            "double precision",
        ],
        Dialect.MARIADB: ["`priority` desc", "not null", "utf8mb4_bin", "default 0", "double"],
    }[dialect_of(db_url)]
    for word in [*words, "fk_sites_tenant_id", "uq_frames_camera_key", "the audit log is append-only"]:
        assert word in shown
    assert " float" not in shown


# From one schema to the next, with rows


@pytest.fixture
def first_schema(empty_url: str, tmp_path: Path) -> str:
    """A database as the first version left it, with a camera that has seen something."""
    folder = tmp_path / "first" / "migrations"
    later = shutil.ignore_patterns("__pycache__", "000[2-9]*", "00[1-9]*")
    shutil.copytree(sqlite_schema.MIGRATIONS, folder, ignore=later)
    with pytest.MonkeyPatch.context() as older:
        older.setattr(sqlite_schema, "MIGRATIONS", folder)
        assert upgrade(empty_url).current == "0001"
    on_database(empty_url, _fill_first)
    return empty_url


def _fill_first(connection: Connection) -> None:
    for sql in FIRST_ROWS:
        connection.execute(sa.text(sql))


FIRST_ROWS = [
    "INSERT INTO tenants (tenant_id, tenant_uuid, name, created_at) VALUES (1, 't', 'first', 5)",
    "INSERT INTO sites (site_id, tenant_id, site_uuid, name, created_at) VALUES (1, 1, 's', 'main', 5)",
    """INSERT INTO cameras (camera_key, tenant_id, site_id, camera_id, name, created_at, updated_at)
    VALUES (7, 1, 1, 'cam_1', '門', 5, 5)""",
    """INSERT INTO camera_overrides (camera_key, tenant_id, polling_interval_sec, updated_at)
    VALUES (7, 1, 2.5, 5)""",
    "INSERT INTO camera_state (camera_key, tenant_id, health, updated_at) VALUES (7, 1, 'up', 5)",
    """INSERT INTO frames (frame_id, frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at,
      worker_at, received_at, collector_status) VALUES (1, 'f', 1, 1, 7, 1, 1, 5, 5, 5, 'ok')""",
    """INSERT INTO events (event_id, event_uuid, tenant_id, site_id, camera_key, incident_id, open_key, state,
      primary_event, start_at, last_seen_at, retention_class, created_at, updated_at)
    VALUES (1, 'e', 1, 1, 7, 1, 7, 'open', 'human', 5, 5, 'normal', 5, 5)""",
    """INSERT INTO events (event_id, event_uuid, tenant_id, site_id, camera_key, incident_id, state, primary_event,
      start_at, last_seen_at, retention_class, created_at, updated_at)
    VALUES (2, 'u', 1, 1, 7, 1, 'closed', 'human', 6, 9, 'normal', 5, 5)""",
    """INSERT INTO frames (frame_id, frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at,
      worker_at, received_at, collector_status, unknown_flag, event_id)
    VALUES (2, 'g', 1, 1, 7, 1, 2, 8, 8, 8, 'ok', 1, 2)""",
    """INSERT INTO deliveries (delivery_id, delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id,
      status, attempt, available_at, last_error, created_at)
    VALUES (3, 'd', 1, 1, 7, 'notify', 'continues', 1, 'delayed', 2, 9, '日本', 5)""",
]


def test_rows_of_the_first_schema_are_there_after_the_upgrade(first_schema: str) -> None:
    assert upgrade(first_schema).up_to_date

    def select(connection: Connection) -> list[tuple[object, ...]]:
        return [
            tuple(connection.execute(sa.text(sql)).one())
            for sql in (
                "SELECT camera_id, name FROM cameras",
                "SELECT polling_interval_sec, rotation, privacy_masks, clip_sec FROM camera_overrides",
                "SELECT health, health_cause, issues FROM camera_state",
                "SELECT frame_uuid, structure FROM frames WHERE frame_id = 1",
                "SELECT event_uuid, open_key, subject, issue_key, unknown_flag FROM events WHERE event_id = 1",
                "SELECT event_uuid, unknown_flag FROM events WHERE event_id = 2",
                "SELECT delivery_id, delivery_uuid, camera_key, status, attempt, last_error FROM deliveries",
                "SELECT count(*) FROM receivers",
                "SELECT count(*) FROM errands",
                "SELECT count(*) FROM clips",
            )
        ]

    assert on_database(first_schema, select) == [
        ("cam_1", "門"),
        (2.5, None, None, None),
        ("up", "", None),
        ("f", None),
        ("e", 7, "", None, 0),
        ("u", 1),
        (3, "d", 7, "delayed", 2, "日本"),
        (0,),
        (0,),
        (0,),
    ]


@pytest.fixture
def sixth_schema(empty_url: str, tmp_path: Path) -> str:
    """A database from before there was a search, with a memo and a note."""
    folder = tmp_path / "sixth" / "migrations"
    shutil.copytree(
        sqlite_schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__", "000[7-9]*", "00[1-9]*")
    )
    with pytest.MonkeyPatch.context() as older:
        older.setattr(sqlite_schema, "MIGRATIONS", folder)
        assert upgrade(empty_url).current == "0006"
    on_database(empty_url, _fill_sixth)
    return empty_url


def _fill_sixth(connection: Connection) -> None:
    for sql in [
        *FIRST_ROWS[:3],
        FIRST_ROWS[6],
        """INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label,
          memo, created_at) VALUES ('r', 1, 7, 1, 1, 'p', 'm', 'person', 'Red ﾄﾗｯｸ', 5)""",
        """INSERT INTO cases (case_id, case_uuid, tenant_id, title, state, created_at, updated_at)
        VALUES (1, 'c', 1, 'case', 'open', 5, 5)""",
        "INSERT INTO case_notes (note_id, case_id, tenant_id, body, created_at) VALUES (3, 1, 1, '裏口', 6)",
    ]:
        connection.execute(sa.text(sql))


def test_notes_and_memos_from_before_are_found(sixth_schema: str) -> None:
    assert upgrade(sixth_schema).up_to_date

    def select(connection: Connection) -> list[tuple[object, ...]]:
        sql = "SELECT kind, token, at, object_id FROM search_tokens WHERE tenant_id = 1"
        texts = connection.execute(sa.text("SELECT kind, object_id, compared FROM search_texts ORDER BY kind"))
        return [tuple(row) for row in connection.execute(sa.text(sql))] + [tuple(row) for row in texts]

    found = on_database(sixth_schema, select)
    assert ("memo", "トラ", 5, 1) in found
    assert ("memo", "red", 5, 1) in found
    assert ("note", "裏口", 6, 3) in found
    assert found[-2:] == [("memo", 1, " red トラック "), ("note", 3, " 裏口 ")]


@pytest.fixture
def nineteenth_schema(empty_url: str, tmp_path: Path) -> str:
    """A database from before texts were found by three letters, with a memo, a note and one of another tenant."""
    folder = tmp_path / "nineteenth" / "migrations"
    shutil.copytree(sqlite_schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__", "00[2-9]*"))
    with pytest.MonkeyPatch.context() as older:
        older.setattr(sqlite_schema, "MIGRATIONS", folder)
        assert upgrade(empty_url).current == "0019"
    on_database(empty_url, _fill_nineteenth)
    return empty_url


def _fill_nineteenth(connection: Connection) -> None:
    text = "INSERT INTO search_texts (kind, object_id, tenant_id, compared) VALUES (:kind, :id, :tenant, :text)"
    token = (
        "INSERT INTO search_tokens (tenant_id, kind, token, at, object_id) VALUES (:tenant, :kind, :token, :at, :id)"
    )
    for kind, object_id, tenant, at, compared, tokens in (
        ("memo", 1, 1, 5, " red トラック ", ("re", "red", "ト", "ラ", "ッ", "ク", "トラ", "ラッ", "ック")),
        ("memo", 2, 2, 7, " 裏口の ", ("裏", "口", "の", "裏口", "口の")),
        ("note", 1, 1, 6, " 裏口 ", ("裏", "口", "裏口")),
    ):
        of_text = {"kind": kind, "id": object_id, "tenant": tenant}
        connection.execute(sa.text(text), {**of_text, "text": compared})
        connection.execute(sa.text(token), [{**of_text, "at": at, "token": one} for one in tokens])


def test_texts_from_before_are_found_by_three_letters(nineteenth_schema: str) -> None:
    def select(connection: Connection) -> set[tuple[object, ...]]:
        sql = "SELECT tenant_id, kind, token, at, object_id FROM search_tokens"
        return {tuple(row) for row in connection.execute(sa.text(sql))}

    before = on_database(nineteenth_schema, select)
    assert upgrade(nineteenth_schema).up_to_date
    assert on_database(nineteenth_schema, select) - before == {
        (1, "memo", "トラッ", 5, 1),
        (1, "memo", "ラック", 5, 1),
        (2, "memo", "裏口の", 7, 2),
    }


def test_what_the_active_vocabulary_hides_is_listed_from_the_upgrade_on(nineteenth_schema: str) -> None:
    document = vocabularies.shipped()

    def fill(connection: Connection) -> None:
        sql = "INSERT INTO schema_versions (schema_version, document, active_slot, created_at) VALUES (:v, :d, :a, 1)"
        other = document.text.replace('"investigation_only"', '"notify_safe"')
        rows = [{"v": "now", "d": document.text, "a": 1}, {"v": "other", "d": other, "a": None}]
        connection.execute(sa.text(sql), rows)

    def select(connection: Connection) -> set[str]:
        return set(connection.execute(sa.text("SELECT tag_id FROM hidden_tags")).scalars())

    on_database(nineteenth_schema, fill)
    assert upgrade(nineteenth_schema).up_to_date
    tags = parse_vocabulary(document.parsed()).tags
    assert on_database(nineteenth_schema, select) == {tag.id for tag in tags if tag.group == INVESTIGATION_ONLY}


# Opening


async def test_an_empty_database_is_set_up_on_opening(empty_url: str) -> None:
    assert (await asyncio.to_thread(status, empty_url)).current is None
    store = await open_store(empty_url)
    await store.close()
    assert (await asyncio.to_thread(status, empty_url)).up_to_date
    assert await check_database(empty_url) == ()


async def test_a_set_up_that_another_process_has_begun_is_waited_for(
    empty_url: str, db_kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB keeps each migration as it is made: half-way, its database looks like one of an older program."""
    if db_kind != "mariadb":
        pytest.skip("the others show a set-up when it is whole")
    second: list[asyncio.Task[Store]] = []
    loop = asyncio.get_running_loop()

    def slowly(connection: Connection) -> None:
        monkeypatch.undo()
        command.upgrade(migrate._config(connection), "0002")
        loop.call_soon_threadsafe(lambda: second.append(asyncio.create_task(open_store(empty_url))))
        poll(lambda: bool(second) and (second[0].done() or is_somebody_waiting(connection)), "the second one waits")
        migrate.to_newest(connection)

    monkeypatch.setattr(migrate, "to_newest", slowly)
    first = await open_store(empty_url)
    await first.close()
    await (await second[0]).close()


def is_somebody_waiting(connection: Connection) -> bool:
    waiting = "SELECT count(*) FROM information_schema.processlist WHERE state = 'User lock'"
    return bool(connection.scalar(sa.text(waiting)))


async def test_an_older_server_database_is_refused_and_an_older_file_upgraded(
    db_url: str, newer_program: Path, tmp_path: Path
) -> None:
    await asyncio.to_thread(fill, db_url)
    if dialect_of(db_url) is not Dialect.SQLITE:
        with pytest.raises(StoreTooOld, match="camserver db upgrade"):
            await open_store(db_url)
        assert (await asyncio.to_thread(status, db_url)).current == NOW_REVISION
        return
    store = await open_store(db_url, backup_dir=tmp_path / "backups")
    await store.close()
    assert tenants(db_url, NEW_COLUMNS) == NEW_ROWS
    (backup,) = (tmp_path / "backups").iterdir()
    assert tenants(f"sqlite:///{backup}") == OLD_ROWS


async def test_a_newer_database_is_refused_and_left_alone(
    db_url: str, next_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(fill, db_url)
    with monkeypatch.context() as newer:
        newer.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
        await upgrade_database(Secret(db_url), None)
    for attempt in (open_store(db_url), upgrade_database(Secret(db_url), None), check_database(db_url)):
        with pytest.raises(StoreTooNew, match=rf"{NEXT_REVISION}.*install that version again, or restore the backup"):
            await attempt
    assert await asyncio.to_thread(tenants, db_url, NEW_COLUMNS) == NEW_ROWS


# Upgrading


def restored(backup: Path, empty_url: str, db_kind: str) -> str:
    """Does with a backup what an operator would do."""
    if db_kind == "sqlite":
        sqlite_path(empty_url).parent.mkdir(exist_ok=True)
        shutil.copy(backup, sqlite_path(empty_url))
    else:
        dumps.load(empty_url, backup)
    return empty_url


def test_an_upgrade_makes_a_backup_that_restores(
    db_url: str, empty_url: str, db_kind: str, newer_program: Path, tmp_path: Path
) -> None:
    fill(db_url)
    assert upgrade(db_url, tmp_path / "backups").current == NEXT_REVISION
    assert tenants(db_url, NEW_COLUMNS) == NEW_ROWS
    (backup,) = (tmp_path / "backups").iterdir()
    assert NOW_REVISION in backup.name
    assert (tmp_path / "backups").stat().st_mode & 0o077 == 0
    again = restored(backup, empty_url, db_kind)
    assert status(again).current == NOW_REVISION
    assert tenants(again) == OLD_ROWS


def test_an_upgrade_of_what_is_up_to_date_does_nothing(db_url: str, tmp_path: Path) -> None:
    assert upgrade(db_url, tmp_path / "backups").up_to_date
    assert not (tmp_path / "backups").exists()


def test_without_a_backup_there_is_no_upgrade(
    db_url: str, newer_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db_url)
    if dialect_of(db_url) is Dialect.SQLITE:
        (tmp_path / "backups").write_text("a file where the folder should be")
        with pytest.raises(OSError, match="backups"):
            upgrade(db_url, tmp_path / "backups")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UpgradeFailed, match=r"dump.*not installed.*--no-backup"):
            upgrade(db_url, tmp_path / "backups")
    assert status(db_url).current == NOW_REVISION
    assert tenants(db_url) == OLD_ROWS


def test_a_migration_that_fails_says_where_the_backup_is(db_url: str, newer_program: Path, tmp_path: Path) -> None:
    (newer_program / "versions" / f"{NEXT_REVISION}_next.py").write_text(FAILING)
    fill(db_url)
    with pytest.raises(UpgradeFailed, match=rf"(?s)from {NOW_REVISION} to {NEXT_REVISION} failed.*the backup is in"):
        upgrade(db_url, tmp_path / "backups")
    assert status(db_url).current == NOW_REVISION
    if dialect_of(db_url) is not Dialect.MARIADB:  # which can't roll a schema back
        assert tenants(db_url) == OLD_ROWS
        (newer_program / "versions" / f"{NEXT_REVISION}_next.py").write_text(NEXT)
        assert upgrade(db_url).current == NEXT_REVISION
        assert tenants(db_url, NEW_COLUMNS) == NEW_ROWS


def start_upgrade(migrations: Path, url: str, moment: str = "") -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.store.upgrading", str(migrations), url, *([moment] if moment else [])]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_upgrade_at_once_do_it_once(db_url: str, db_kind: str, newer_program: Path) -> None:
    if db_kind == "sqlite":
        pytest.skip("one process owns a SQLite file; see test_sqlite_owner.py")
    fill(db_url)
    processes = [start_upgrade(newer_program, db_url) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert tenants(db_url, NEW_COLUMNS) == NEW_ROWS
    assert len(list((newer_program.parent / "backups").iterdir())) == 1


# MariaDB, which can't undo what was done to a schema


def killed(work: str, migrations: Path, url: str, moment: str) -> None:
    argv = [sys.executable, "-m", "tests.store.dying", work, str(migrations), url, moment]
    died = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr


@pytest.mark.parametrize("moment", MADE)
async def test_a_set_up_that_was_killed_is_made_anew(empty_url: str, db_url: str, db_kind: str, moment: str) -> None:
    if db_kind == "sqlite":
        pytest.skip("a file gets its place when it is whole")
    await asyncio.to_thread(killed, "open", sqlite_schema.MIGRATIONS, empty_url, moment)
    await (await open_store(empty_url)).close()
    pictures = [await asyncio.to_thread(on_database, url, picture) for url in (db_url, empty_url)]
    for one in pictures:
        one.pop(Mark.MAKING, None)  # nothing minds it
    assert pictures[0] == pictures[1]


async def test_what_a_set_up_left_marked_is_not_taken_for_empty(
    empty_url: str, db_kind: str, next_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if db_kind != "mariadb":
        pytest.skip("the others undo it")
    await asyncio.to_thread(killed, "open", sqlite_schema.MIGRATIONS, empty_url, "before the mark goes")
    await asyncio.to_thread(fill, empty_url)
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    await upgrade_database(Secret(empty_url), None)
    assert await asyncio.to_thread(tenants, empty_url, NEW_COLUMNS) == NEW_ROWS


async def test_after_half_an_upgrade_nobody_starts_until_the_backup_is_back(
    db_url: str, empty_url: str, db_kind: str, next_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if db_kind != "mariadb":
        pytest.skip("the others undo it")
    await asyncio.to_thread(fill, db_url)
    monkeypatch.setenv("CAMSERVER_TEST_DIE", "1")
    await asyncio.to_thread(killed, "upgrade", next_migrations, db_url, "inside")
    monkeypatch.delenv("CAMSERVER_TEST_DIE")
    (backup,) = (next_migrations.parent / "backups").iterdir()
    # The old program does not know what may be there, the new one can't go on.
    with pytest.raises(StoreTooNew, match=NEXT_REVISION):
        await open_store(db_url)
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    with pytest.raises(StoreTooOld, match="broken off"):
        await open_store(db_url)
    with pytest.raises(UpgradeFailed, match="put that back first"):
        await upgrade_database(Secret(db_url), backup.parent)
    assert list(backup.parent.iterdir()) == [backup], "half an upgrade is no backup"
    again = await asyncio.to_thread(restored, backup, empty_url, db_kind)
    await upgrade_database(Secret(again), None)
    assert await asyncio.to_thread(tenants, again, NEW_COLUMNS) == NEW_ROWS


async def test_an_upgrade_that_was_whole_but_for_its_mark_is_whole(
    db_url: str, db_kind: str, next_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if db_kind != "mariadb":
        pytest.skip("the others undo it")
    await asyncio.to_thread(fill, db_url)
    await asyncio.to_thread(killed, "upgrade", next_migrations, db_url, "before the mark goes")
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    await (await open_store(db_url)).close()
    assert await asyncio.to_thread(tenants, db_url, NEW_COLUMNS) == NEW_ROWS


def leave_rows_in_the_log(path: Path) -> None:
    """As a killed server leaves its file: committed rows that are in the write-ahead log only."""
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA journal_mode = WAL'); c.execute('PRAGMA wal_autocheckpoint = 0');"
        "c.execute(\"INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ('z', 'in the log', 7)\");"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.with_name(path.name + "-wal").stat().st_size > 0


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_in_the_middle_leaves_the_old_file_or_the_new_one(
    sqlite_template: object, next_migrations: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url: str = sqlite_template.fresh()  # type: ignore[attr-defined]  # a SqliteTemplate
    fill(url)
    leave_rows_in_the_log(sqlite_path(url))
    process = start_upgrade(next_migrations, url, moment)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    found = status_of_either(url, next_migrations, monkeypatch)
    assert found == (NEXT_REVISION if moment == "after:replace" else NOW_REVISION)
    # Whichever it is, it is whole, and the next start goes on from it.
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    assert upgrade(url).current == NEXT_REVISION
    assert tenants(url, NEW_COLUMNS) == [*NEW_ROWS, ("in the log", 8, "in the log")]
    left = [path.name for path in sqlite_path(url).parent.iterdir() if "upgrading" in path.name]
    assert left == []


def status_of_either(url: str, next_migrations: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    with monkeypatch.context() as newer:
        newer.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
        return status(url).current


def test_a_file_that_another_program_reads_is_not_replaced_under_it(
    sqlite_template: object, next_migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url: str = sqlite_template.fresh()  # type: ignore[attr-defined]  # a SqliteTemplate
    fill(url)
    leave_rows_in_the_log(sqlite_path(url))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", next_migrations)
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM tenants").fetchone() == (TENANTS + 1,)
        with pytest.raises(UpgradeFailed, match=r"open in another program|locked"):
            upgrade(url)
        assert status(url).current == NOW_REVISION
    assert upgrade(url).current == NEXT_REVISION
    assert tenants(url, "name")[-1] == ("in the log",)


# Addresses


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:////tmp/x.db", Dialect.SQLITE),
        ("postgresql://h/d", Dialect.POSTGRES),
        ("postgres://h/d", Dialect.POSTGRES),
        ("mysql://h/d", Dialect.MARIADB),
        ("mariadb://h/d", Dialect.MARIADB),
    ],
)
def test_the_dialect_follows_from_the_scheme(url: str, dialect: Dialect) -> None:
    assert dialect_of(url) is dialect


def test_another_scheme_is_refused_with_what_there_is() -> None:
    with pytest.raises(Fatal, match=r"'oracle'; use sqlite"):
        dialect_of("oracle://h/d")


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a%20b%25.db"
    assert upgrade(url).up_to_date
    assert [path.name for path in tmp_path.iterdir()] == ["a b%.db"]


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_server_that_is_not_there_is_unavailable_and_its_password_unsaid(scheme: str) -> None:
    with pytest.raises(StoreUnavailable, match="check that it runs") as caught:
        status(f"{scheme}://someone:hunter22222@127.0.0.1:{free_port()}/db")
    assert "hunter22222" not in str(caught.value)
