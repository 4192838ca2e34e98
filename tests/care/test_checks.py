"""`camserver check`: what is wrong is found beside a running server, and what is safe is repaired."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from camserver.base.certificates import make_authority
from camserver.base.clock import StoreClock
from camserver.base.errors import CheckFailed, DataOwned
from camserver.care import backup, checks, doctor
from camserver.care.checks import run_checks
from camserver.config import Settings, load, make_secrets
from camserver.objects.local import LocalObjects
from camserver.store import Tx, open_store, tenants
from camserver.store.check import AREAS, CHECKS
from camserver.store.first_start import prepare_store
from camserver.store.repairs import REPAIRS
from tests.rig.templates import Template


@pytest.fixture
async def here(tmp_path: Path, sqlite_template: Template) -> AsyncIterator[Settings]:
    """An installation without a flaw."""
    url = sqlite_template.fresh()
    values = {"CAMSERVER_STORE_URL": url, "CAMSERVER_RETENTION_FREE_MIN_BYTES": "0"}
    settings = load(None, values, tmp_path / "data")
    make_secrets(settings)
    store = await open_store(url)
    await prepare_store(store, None, 1)
    await store.close()
    yield settings
    sqlite_template.discard(url)


def change(settings: Settings, *statements: str) -> None:
    assert settings.store.url.path is not None
    with closing(sqlite3.connect(settings.store.url.path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def kinds(settings: Settings, fix: bool = False) -> dict[str, bool]:
    return {one.kind: one.fixed for one in await run_checks(settings, True, fix)}


async def test_nothing_is_found_where_nothing_is_wrong_beside_its_owner(here: Settings) -> None:
    store = await open_store(here.store.url.reveal())
    assert await run_checks(here, True, False) == []
    with pytest.raises(DataOwned):
        await run_checks(here, True, True)
    await store.close()


FLAWS = (
    "INSERT INTO frame_tags (frame_id, tag_id, tenant_id, tag_group) VALUES (77, 'x', 1, 'g')",
    "INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at) VALUES (1, 9, 1, 1, 5)",
    "INSERT INTO frame_gaps (camera_key, generation, first_seq, last_seq, tenant_id, noted_at) "
    "VALUES (1, 3, 1, 2, 1, 1)",
)
UNFOUNDED = "UPDATE camera_sessions SET worker_key = 1, state = 'ACTIVE', lease_expires_at = 1, generation = 4"


async def test_rows_are_repaired_where_that_loses_nothing(here: Settings) -> None:
    change(here, *_camera(), *FLAWS)
    expected = {"orphan_frame_tags", "lease_without_session", "orphan_frame_gaps", "generation_behind"}
    assert await kinds(here) == dict.fromkeys(expected, False)
    assert await kinds(here, fix=True) == dict.fromkeys(expected, True)
    assert await kinds(here) == {}


async def test_a_camera_that_is_held_without_a_lease_is_given_anew(here: Settings) -> None:
    change(here, *_camera(), UNFOUNDED)
    assert await kinds(here, fix=True) == {"session_without_lease": True}
    assert await kinds(here) == {}
    assert here.store.url.path is not None
    with closing(sqlite3.connect(here.store.url.path)) as connection:
        found = connection.execute("SELECT generation, worker_key, state FROM camera_sessions").fetchall()
    assert found == [(5, None, "ORPHANED")]


async def test_what_can_be_repaired_says_by_what(here: Settings) -> None:
    change(here, *_camera(), *FLAWS)
    found = await run_checks(here, True, False)
    assert found
    assert all("camserver check --fix" in one.message for one in found if one.fixable)
    assert any("camera_key 1" in one.message for one in found)


def _camera() -> tuple[str, ...]:
    return (
        "INSERT INTO cameras (camera_key, tenant_id, site_id, camera_id, name, created_at, updated_at) "
        "SELECT 1, 1, min(site_id), 'door', 'door', 1, 1 FROM sites",
        "INSERT INTO camera_sessions (camera_key, tenant_id, site_id, updated_at) VALUES (1, 1, 1, 1)",
        "INSERT INTO camera_state (camera_key, tenant_id, updated_at) VALUES (1, 1, 1)",
    )


def test_only_what_is_checked_is_repaired() -> None:
    assert set(REPAIRS) <= {check.kind for check in CHECKS}
    assert set(AREAS.values()) <= set(checks.AREAS)


async def test_objects_and_rows_are_held_against_each_other(here: Settings) -> None:
    objects = LocalObjects(here.objects.dir)
    change(
        here,
        "INSERT INTO epochs (epoch_id, owner, started_at, seen_at, ended_at) VALUES (3, 'gone', 1, 1, 2)",
        "INSERT INTO epochs (epoch_id, owner, started_at, seen_at) VALUES (4, 'x', 1, 1)",
        *_camera(),
        *(
            "INSERT INTO frames (frame_id, frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, "
            "worker_at, received_at, collector_status, verdict, epoch_id, infer_bytes) VALUES "
            f"({number}, 'uuid{number}', 1, 1, 1, 0, {number}, 1, 1, 1, 'ok', 'skip', 3, 5)"
            for number in range(1, 4)
        ),
        "INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at, ended_at, last_seq) "
        "VALUES (1, 0, 1, 1, 1, 2, 3)",
    )
    for number in (1, 2):
        await objects.put(f"e3/t1/c1/d0/uuid{number}.infer.jpg", b"12345")
    for key in ("e3/t1/c1/d0/other.infer.jpg", "e4/t1/c1/d0/coming.infer.jpg"):
        await objects.put(key, b"12345")
    assert await kinds(here) == {"object_missing": False, "object_rowless": False}
    assert await kinds(here, fix=True) == {"object_missing": True, "object_rowless": True}
    assert await kinds(here) == {}
    assert await objects.list("e4/", 10), "a writer that lives may be about to name it"
    for number in (1, 2):
        await objects.delete(f"e3/t1/c1/d0/uuid{number}.infer.jpg")
    found = await run_checks(here, True, True)
    assert any("is their disk mounted" in one.message for one in found)
    assert not any(one.fixed for one in found), "so much can't be gone: nothing is changed"


async def test_secrets_certificates_clock_and_versions_are_looked_at(here: Settings, tmp_path: Path) -> None:
    (here.server.secrets_dir / "push_key").chmod(0o644)
    here.worker.identity_dir.mkdir(parents=True)
    (here.worker.identity_dir / "worker.pem").write_text("no certificate")
    now_ms = checks.StoreClock().now_ms()
    change(
        here,
        "INSERT INTO receivers (receiver_uuid, tenant_id, name, kind, config, key_id, nonce, ciphertext, created_at, "
        "updated_at) VALUES ('u', 1, 'n', 'webhook', '{}', 'otherkey', x'00', x'00', 1, 1)",
        f"INSERT INTO epochs (owner, started_at, seen_at) VALUES ('x', 1, {now_ms + 3_600_000})",
        "INSERT INTO workers (tenant_id, site_id, worker_id, version, capacity, last_seen_at, created_at) "
        f"SELECT 1, min(site_id), 'w1', '0.0.1', '{{}}', {now_ms}, 1 FROM sites",
        "INSERT INTO worker_certificates (tenant_id, site_id, worker_id, serial, sha256, created_at, expires_at) "
        f"SELECT 1, min(site_id), 'w1', '1', 'x', 1, {now_ms + 1000} FROM sites",
    )
    assert set(await kinds(here)) == {
        *("secret_open", "key_missing", "certificates_unknown", "clock_behind", "worker_version"),
    }
    (here.worker.identity_dir / "worker.pem").write_text(make_authority())
    assert "worker_certificate" in await kinds(here)


async def test_work_that_is_left_undone_is_found_while_a_server_runs(here: Settings) -> None:
    now_ms = StoreClock().now_ms()
    job = (
        "INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority, available_at, "
        "created_at, finished_at) VALUES (1, {0}, 1, 1, '{1}', 1, 1, {2}, {3})"
    )
    change(
        here,
        # What came first was skipped, since too many wait.
        job.format(1, "skipped", now_ms - 3_600_000, now_ms - 1_800_000),
        job.format(3, "queued", now_ms - 1000, "NULL"),
        "INSERT INTO deliveries (delivery_uuid, tenant_id, kind, reason, status, attempt, available_at, created_at, "
        f"finished_at) VALUES ('u', 1, 'message', 'x', 'dead', 3, 1, 1, {now_ms - 1000})",
    )
    assert not {"analysis_stalled", "deliveries_dead"} & (await kinds(here)).keys(), "nobody runs who would do it"
    change(here, f"INSERT INTO epochs (owner, started_at, seen_at) VALUES ('somebody', 1, {now_ms})")
    assert {"analysis_stalled", "deliveries_dead"} <= (await kinds(here)).keys()
    change(here, job.format(2, "done", now_ms - 3_600_000, now_ms - 1000))
    assert "analysis_stalled" not in await kinds(here)


async def test_a_damaged_database_is_found_told_and_not_backed_up(here: Settings, tmp_path: Path) -> None:
    damage(here)
    found = {one.kind: one.message for one in await run_checks(here, False, False)}
    assert "damaged" in found["database_unknown"]
    text = await doctor.report(here, ())
    assert "the SQLite database is damaged" in text
    assert "== disk ==" in text, "the rest of the report is there"
    with pytest.raises(CheckFailed, match="an older one"):
        await backup.back_up(here, backup.Wanted(tmp_path / "monday", "copy", None), lambda *_: None)
    assert not [name for name in os.listdir(tmp_path) if "monday" in name]


def damage(settings: Settings) -> None:
    """Overwrites the root page of a table, as a disk does that loses what it was given."""
    path = settings.store.url.path
    assert path is not None
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'camera_leases'").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)


async def test_a_database_that_is_not_there_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    settings = load(None, {}, tmp_path / "data")
    assert set(await kinds(settings)) == {"schema_old"}
    os.makedirs(tmp_path / "data")
    (tmp_path / "data" / "camserver.db").write_text("no database at all" * 100)
    assert "database_away" in await kinds(settings)


async def test_repairs_run_on_each_database(db_url: str, tmp_path: Path) -> None:
    settings = load(None, {"CAMSERVER_STORE_URL": db_url}, tmp_path / "data")
    store = await open_store(db_url)
    await prepare_store(store, None, 1)
    await store.write(_flaws)
    await store.close()
    found = {one.kind: one.fixed for one in await run_checks(settings, True, True) if one.area != "disk"}
    assert found == {"orphan_frame_tags": True, "lease_without_session": True}


async def _flaws(tx: Tx) -> None:
    await tenants.ensure(tx, "acme", 1)
    await tx.run("INSERT INTO frame_tags (frame_id, tag_id, tenant_id, tag_group) VALUES (77, 'x', 1, 'g')")
    await tx.run(
        "INSERT INTO cameras (tenant_id, site_id, camera_id, name, created_at, updated_at) "
        "SELECT min(tenant_id), min(site_id), 'door', 'door', 1, 1 FROM sites"
    )
    await tx.run(
        "INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at) "
        "SELECT max(camera_key), 9, 1, 1, 5 FROM cameras"
    )
