"""Each thing that `camserver db check` can find, brought about by hand."""

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from camserver.base.errors import DataOwned
from camserver.base.secrets import Secret
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.store import Dialect, Store, Tx, open_store
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.check import CHECKS, Finding, _run_checks, check, check_database
from camserver.store.jobs import ClaimTerms, claim
from camserver.store.vocabularies import activate, add, shipped
from tests.rig.templates import Template
from tests.store.conftest import KINDS, wipe
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

TERMS = ClaimTerms(JobPolicy(), EventPolicy(), INTERVAL_MS)


async def run(tx: Tx, statements: tuple[str, ...]) -> None:
    for statement in statements:
        await tx.run(statement)


async def furnished(store: Store) -> Scene:
    """Cameras with looks, a gap, jobs in several states, an open event with its clip, and a feed."""
    scene = await furnish(store)
    looks = [look(scene, camera, seq) for camera in range(3) for seq in (1, 2, 5)]
    await recorded(store, *looks)
    await store.write(claim, "d", "token", 2, NOW_MS, TERMS)
    await store.write(add, shipped(), NOW_MS)
    await store.write(activate, shipped().version, NOW_MS)
    camera = scene.camera_keys[0]
    await store.write(
        run,
        (
            f"""INSERT INTO incidents (incident_id, incident_uuid, tenant_id, site_id, camera_key, start_at,
              last_seen_at, last_event_id, created_at, updated_at)
            VALUES (500, 'i', {scene.tenant_id}, {scene.site_id}, {camera}, 0, 0, 700, 0, 0)""",
            f"""INSERT INTO events (event_id, event_uuid, tenant_id, site_id, camera_key, incident_id, open_key,
              state, primary_event, start_at, last_seen_at, retention_class, created_at, updated_at)
            VALUES (700, 'e', {scene.tenant_id}, {scene.site_id}, {camera}, 500, {camera}, 'open', 'human', 0, 0,
              'normal', 0, 0)""",
            f"UPDATE camera_state SET open_event_id = 700, incident_id = 500 WHERE camera_key = {camera}",
            f"""INSERT INTO clips (clip_uuid, tenant_id, camera_key, event_id, state, errand_uuid, object_key,
              object_bytes, epoch_id, begin_at, end_at, created_at)
            VALUES ('k', {scene.tenant_id}, {camera}, 700, 'ready', 'r', 'e1/k.mp4', 5, {scene.epoch_id}, 0, 1, 0)""",
        ),
    )
    return scene


# What is done to a sound database, and the kinds of findings it must lead to. {t}, {s}, {c}, {w}: tenant, site, the
# camera with the open event, worker.
DAMAGE: list[tuple[str, tuple[str, ...], set[str]]] = [
    (
        "frame's camera",
        ("UPDATE frames SET camera_key = 9999 WHERE seq = 5 AND camera_key = {c}",),
        {"orphan_frames"},
    ),
    ("frame's epoch", ("DELETE FROM epochs",), {"orphan_frames", "orphan_clips"}),
    ("frame's event", ("UPDATE frames SET event_id = 9999 WHERE camera_key = {c}",), {"orphan_frames"}),
    ("tag's frame", ("INSERT INTO frame_tags VALUES (9999, 'x.y', {t}, 'x')",), {"orphan_frame_tags"}),
    ("job's frame", ("UPDATE inference_jobs SET frame_id = 9999 WHERE job_id = {j}",), {"orphan_inference_jobs"}),
    (
        "job's camera state",
        ("UPDATE camera_state SET open_event_id = NULL", "DELETE FROM camera_state WHERE camera_key = {c}"),
        {"orphan_inference_jobs", "event_forgotten"},
    ),
    ("event's incident", ("DELETE FROM incidents",), {"orphan_events"}),
    (
        "event's camera",
        (
            "UPDATE events SET camera_key = 9999, open_key = NULL, state = 'closed'",
            "UPDATE camera_state SET open_event_id = NULL",
        ),
        {"orphan_events"},
    ),
    ("tag's event", ("INSERT INTO event_tags VALUES (9999, 'x.y', {t}, 'x', {c}, 0)",), {"orphan_event_tags"}),
    ("incident's camera", ("UPDATE incidents SET camera_key = 9999",), {"orphan_incidents"}),
    ("incident's event", ("UPDATE incidents SET last_event_id = 9999",), {"orphan_incidents"}),
    (
        "review's incident",
        (
            "INSERT INTO users (user_id, tenant_id, user_uuid, login, role, created_at)"
            " VALUES (77, {t}, 'u', 'u', 'viewer', 0)",
            "INSERT INTO incident_reviews (incident_id, user_id, tenant_id, severity, reviewed_at)"
            " VALUES (9999, 77, {t}, 0, 0)",
        ),
        {"orphan_incident_reviews"},
    ),
    (
        "delivery's camera",
        (
            "INSERT INTO deliveries (delivery_uuid, tenant_id, site_id, camera_key, kind, reason, status,"
            " available_at, created_at) VALUES ('d', {t}, {s}, 9999, 'notify', 'x', 'queued', 0, 0)",
        ),
        {"orphan_deliveries"},
    ),
    (
        "message's delivery",
        (
            "INSERT INTO notifications (tenant_id, delivery_id, camera_key, channel, body, sent_at)"
            " VALUES ({t}, 9999, {c}, 'x', 'x', 0)",
        ),
        {"orphan_notifications"},
    ),
    ("cooldown's camera", ("INSERT INTO cooldowns VALUES (1, 9999, '', {t}, 0, 0)",), {"orphan_cooldowns"}),
    (
        "change's counter",
        ("INSERT INTO changes VALUES (9999, 1, 'x', NULL, NULL, NULL, 0)",),
        {"orphan_changes"},
    ),
    ("gap's lease", ("INSERT INTO frame_gaps VALUES ({c}, 77, 1, 2, {t}, 0)",), {"orphan_frame_gaps"}),
    ("lease lost", ("UPDATE camera_leases SET ended_at = 5 WHERE camera_key = {c}",), {"session_without_lease"}),
    (
        "another's lease",
        ("UPDATE camera_leases SET worker_key = 9999 WHERE camera_key = {c}",),
        {"session_without_lease", "lease_without_session"},
    ),
    (
        "released but not ended",
        ("UPDATE camera_sessions SET worker_key = NULL WHERE camera_key = {c}",),
        {"lease_without_session"},
    ),
    (
        "generation went back",
        ("UPDATE camera_sessions SET generation = 0, worker_key = NULL WHERE camera_key = {c}",),
        {"lease_without_session", "generation_behind"},
    ),
    (
        "two leases at once",
        (
            "UPDATE camera_sessions SET generation = 2 WHERE camera_key = {c}",
            "UPDATE camera_leases SET ended_at = 60 WHERE camera_key = {c}",
            "INSERT INTO camera_leases (camera_key, generation, tenant_id, worker_key, granted_at)"
            " VALUES ({c}, 2, {t}, {w}, 50)",
        ),
        {"leases_overlap"},
    ),
    ("sequence", ("UPDATE camera_leases SET last_seq = 4 WHERE camera_key = {c}",), {"sequence_behind"}),
    ("gap", ("UPDATE frame_gaps SET last_seq = 5 WHERE camera_key = {c}",), {"gap_filled"}),
    ("job without lock", ("UPDATE inference_jobs SET locked_token = NULL",), {"job_lock"}),
    ("lock without job", ("UPDATE inference_jobs SET locked_token = 'x' WHERE status = 'queued'",), {"job_lock"}),
    ("refunded too often", ("UPDATE inference_jobs SET attempt = -1 WHERE status = 'queued'",), {"job_attempt"}),
    ("open without key", ("UPDATE events SET open_key = NULL",), {"event_state", "open_event_gone"}),
    ("closed with key", ("UPDATE events SET state = 'closed'",), {"event_state"}),
    ("forgotten event", ("UPDATE camera_state SET open_event_id = NULL",), {"event_forgotten"}),
    (
        "two vocabularies",
        (
            "INSERT INTO schema_versions (schema_version, document, active_slot, created_at)"
            " VALUES ('x', '{{}}', 2, 0)",
        ),
        {"vocabularies_active"},
    ),
    (
        "clip's event",
        ("UPDATE clips SET event_id = 9999, camera_key = {c}",),
        {"orphan_clips"},
    ),
    ("clip without object", ("UPDATE clips SET object_key = NULL",), {"clip_object"}),
    ("clip without reason", ("UPDATE clips SET state = 'none', object_key = NULL",), {"clip_reason"}),
    ("class of a case without one", ("UPDATE frames SET retention_class = 'case'",), {"case_class"}),
    (
        "frame in a case without its class",
        (
            "INSERT INTO cases (case_id, case_uuid, tenant_id, title, state, created_at, updated_at)"
            " VALUES (5, 'c', {t}, 'x', 'open', 0, 0)",
            "INSERT INTO case_items (case_id, tenant_id, kind, object_id, object_uuid, happened_at, camera_key,"
            " added_at)"
            " SELECT 5, {t}, 'frame', min(frame_id), 'f', 0, {c}, 0 FROM frames",
        ),
        {"case_unheld"},
    ),
    (
        "object of two",
        (
            "INSERT INTO errands (errand_uuid, tenant_id, site_id, kind, request, state, object_key, created_at,"
            " expires_at) VALUES ('r', {t}, {s}, 'clip', '{{}}', 'done', 'e1/k.mp4', 0, 0)",
        ),
        {"object_twice"},
    ),
    (
        "login of an errand that is over",
        (
            "INSERT INTO errands (errand_uuid, tenant_id, site_id, kind, request, state, key_id, created_at,"
            " expires_at) VALUES ('r', {t}, {s}, 'probe', '{{}}', 'expired', 'k', 0, 0)",
        ),
        {"errand_secret"},
    ),
    ("no vocabulary", ("UPDATE schema_versions SET active_slot = NULL",), {"vocabulary_missing"}),
    ("no counter", ("DELETE FROM changes", "DELETE FROM change_counters"), {"tenant_without_counter"}),
    ("feed hole", ("DELETE FROM changes WHERE seq = 2",), {"feed_holes"}),
    ("feed's end", ("UPDATE change_counters SET last_seq = last_seq + 1",), {"feed_holes"}),
]


@pytest.mark.parametrize(("statements", "kinds"), [damage[1:] for damage in DAMAGE], ids=[d[0] for d in DAMAGE])
async def test_damage_is_found_and_nothing_else(
    fresh_store: Store, statements: tuple[str, ...], kinds: set[str]
) -> None:
    scene = await furnished(fresh_store)
    assert await fresh_store.read(_run_checks) == ()
    names = {
        "t": scene.tenant_id,
        "s": scene.site_id,
        "c": scene.camera_keys[0],
        "w": scene.worker_key,
        "j": await fresh_store.read(_any_job),
    }
    await fresh_store.write(run, tuple(statement.format(**names) for statement in statements))
    findings = await fresh_store.read(_run_checks)
    assert {finding.kind for finding in findings} == kinds
    # The thing, and what to do about it.
    assert all(finding.count >= 1 and "for example " in finding.message for finding in findings)
    assert all(re.search(r"; .*camserver (check --fix|doctor|vocabulary use)", one.message) for one in findings)


async def _any_job(tx: Tx) -> int:
    row = await tx.one("SELECT min(job_id) AS job_id FROM inference_jobs WHERE status = 'queued'")
    assert row is not None
    return int(row["job_id"])


async def test_every_check_has_its_damage(fresh_store: Store) -> None:
    assert {each.kind for each in CHECKS} == set().union(*(kinds for _, _, kinds in DAMAGE))


# The schema, and the way in from a URL


@pytest_asyncio.fixture(loop_scope="module", params=KINDS)
async def spare_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    template: Template = request.getfixturevalue(f"{request.param}_template")
    url = template.fresh()
    yield url
    template.discard(url)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("DROP TABLE garbage", "table garbage is missing"),
        ("ALTER TABLE garbage DROP COLUMN created_at", "column garbage.created_at is missing"),
        ("ALTER TABLE garbage ADD COLUMN extra INTEGER", "column garbage.extra is not ours"),
        ("DROP INDEX ix_sessions_expires_at{on}", "index ix_sessions_expires_at of sessions is missing"),
    ],
)
async def test_a_schema_that_differs_is_told(spare_url: str, statement: str, word: str) -> None:
    assert await check_database(spare_url) == ()
    store = await open_store(spare_url)
    try:
        on = " ON sessions" if store.dialect is Dialect.MARIADB else ""
        await store.write(run, (statement.format(on=on),))
        assert await check(store, Secret(spare_url)) == (
            Finding("schema_differs", f"{word}; restore a backup, or ask for help"),
        )
        if store.dialect is Dialect.SQLITE:
            with pytest.raises(DataOwned):
                await _check_without_waiting(spare_url)
    finally:
        await store.close()


async def test_a_removed_guard_of_the_audit_log_is_told(spare_url: str) -> None:
    store = await open_store(spare_url)
    try:
        on = " ON audit_log" if store.dialect is Dialect.POSTGRES else ""
        await store.write(run, (f"DROP TRIGGER audit_log_delete{on}",))
        [found] = await check(store, Secret(spare_url))
        assert found.kind == "schema_differs"
        assert "audit_log_delete" in found.message
        assert "camserver audit verify" in found.message
    finally:
        await store.close()


async def _check_without_waiting(url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("camserver.store.sqlite.OwnerLock.acquire.__defaults__", (0.0,))
        await check_database(url)


async def test_an_empty_database_needs_its_schema_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("empty") / "camserver.db"
    (finding,) = await check_database(f"sqlite:///{path}")
    assert finding.kind == "schema_old"
    assert "camserver db upgrade" in finding.message
    assert not path.exists()


async def test_a_damaged_file_is_told(spare_url: str) -> None:
    if dialect_of(spare_url) is not Dialect.SQLITE:
        assert await check_database(spare_url) == ()
        return
    store = await open_store(spare_url)
    await furnished(store)
    await store.write(wipe)
    await store.close()
    path = sqlite_path(spare_url)
    # The root page of an index, overwritten: the tables can still be read.
    with path.open("r+b") as file:
        file.seek(_root_page(path, "ix_sessions_user_id") * 4096 - 4096)
        file.write(b"\x0a" + b"\xff" * 64)
    assert "file_damaged" in {finding.kind for finding in await check_database(spare_url)}


def _root_page(path: Path, index: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    return int(page)
