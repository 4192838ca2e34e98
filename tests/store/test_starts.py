"""Intents and what comes of them, on all three databases."""

from camserver.domain.leases import Fault, LeasePolicy
from camserver.store import Store
from camserver.store.assignment import free_cameras
from camserver.store.camera_sessions import follow_cameras, without_session
from camserver.store.intents import (
    StartIntent,
    StopIntent,
    acked_all,
    pending,
    returned_without,
    starts_sent,
    want_stop,
)
from camserver.store.leases import Lease, Want, reclaim, release
from camserver.store.starts import (
    REFUSED_PAUSE_MS,
    FaultCounts,
    camera_fault,
    not_done,
    pause,
    set_all_active,
    start_timeouts,
    unstartable,
)
from tests.store.singles import acked, ensure_session, set_active, take
from tests.store.stage import (
    NOW_MS,
    TTL_MS,
    Stage,
    add_site,
    build,
    check_history,
    session,
    spans,
    statement,
)

POLICY = LeasePolicy()
TIMED_OUT = NOW_MS + POLICY.start_timeout_sec * 1000 + 2


async def taken(store: Store, stage: Stage, worker: int = 0, camera: int = 0, expected: int = 0) -> Lease:
    want = Want(stage.cameras[camera].key, stage.workers[worker].worker_key, expected)
    lease = await store.write(take, want, TTL_MS, NOW_MS)
    assert lease is not None
    return lease


async def sent(store: Store, stage: Stage) -> Lease:
    lease = await taken(store, stage)
    await store.write(starts_sent, (lease.intent_id,), NOW_MS)
    return lease


async def intents(store: Store, stage: Stage) -> tuple[StartIntent | StopIntent, ...]:
    return await store.read(pending, tuple(worker.worker_key for worker in stage.workers))


async def test_workers_that_answer_together_speak_for_themselves_only(store: Store) -> None:
    stage = await build(store, workers=2, cameras=3)
    first, second = await taken(store, stage, 0, 0), await taken(store, stage, 1, 1)
    # The first one's intent in the second one's name, while both have something of their own to say.
    acks = (
        (first.worker_key, first.intent_id),
        (second.worker_key, first.intent_id),
        (second.worker_key, "unknown"),
    )
    assert await store.write(acked_all, acks, NOW_MS + 1) == (True, False, False)
    assert (await session(store, stage.cameras[0].key))["acked_at"] == NOW_MS + 1
    assert (await session(store, stage.cameras[1].key))["acked_at"] is None
    claims = (stage.claim(0, 0, 1), stage.claim(1, 0, 1), stage.claim(1, 1, 2), stage.claim(1, 2, 1))
    assert await store.write(set_all_active, claims, NOW_MS + 2) == (True, False, False, False)
    states = [(await session(store, camera.key))["state"] for camera in stage.cameras]
    assert states == ["ACTIVE", "PENDING", "ORPHANED"]
    both = (stage.claim(0, 0, 1), stage.claim(1, 1, 1))
    assert await store.write(set_all_active, both, NOW_MS + 3) == (True, True)
    assert (await session(store, stage.cameras[1].key))["state"] == "ACTIVE"


async def test_a_taken_camera_is_an_intent_until_it_is_acknowledged(store: Store) -> None:
    stage = await build(store)
    lease = await taken(store, stage)
    (intent,) = await intents(store, stage)
    assert isinstance(intent, StartIntent)
    assert (intent.intent_id, intent.camera_id, intent.generation) == (lease.intent_id, "cam_0", 1)
    assert (intent.url, intent.next_seq, intent.credentials) == ("test://still", 1, None)
    assert not await store.write(acked, stage.workers[1].worker_key, lease.intent_id, NOW_MS + 1)
    assert await store.write(acked, lease.worker_key, lease.intent_id, NOW_MS + 1)
    assert await store.write(acked, lease.worker_key, lease.intent_id, NOW_MS + 9)
    assert (await session(store, lease.camera_key))["acked_at"] == NOW_MS + 1
    assert await intents(store, stage) == ()


async def test_a_repeated_start_does_not_restart_the_wait(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    await store.write(starts_sent, (lease.intent_id,), NOW_MS + 5000)
    assert (await session(store, lease.camera_key))["start_sent_at"] == NOW_MS


async def test_start_carries_both_streams_and_the_only_one_is_the_main_one(store: Store) -> None:
    stage = await build(store, cameras=1)
    await store.write(
        statement,
        """INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url)
        VALUES (:tenant_id, :key, 'sub', 'rtsp', 'rtsp://sub')""",
        {"tenant_id": stage.tenant_id, "key": stage.cameras[0].key},
    )
    await taken(store, stage)
    (intent,) = await intents(store, stage)
    assert isinstance(intent, StartIntent)
    assert (intent.url, intent.sub_type, intent.sub_url) == ("test://still", "rtsp", "rtsp://sub")

    await store.write(
        statement,
        "DELETE FROM camera_streams WHERE camera_key = :key AND kind = 'main'",
        {"key": stage.cameras[0].key},
    )
    (alone,) = await intents(store, stage)
    assert isinstance(alone, StartIntent)
    assert (alone.source_type, alone.url, alone.sub_url) == ("rtsp", "rtsp://sub", None)


async def test_pipeline_ready_makes_the_session_active_and_forgets_failures(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    claim = stage.claim(0, 0, 1)
    counts = FaultCounts(Fault.NO_VIDEO, 2, 0, NOW_MS + 50)
    assert await store.write(camera_fault, claim, counts, "", POLICY, NOW_MS + 1)
    assert await store.write(set_active, claim, NOW_MS + 2)
    row = await session(store, lease.camera_key)
    assert (row["state"], row["failures"], row["next_attempt_at"]) == ("ACTIVE", 0, None)
    assert await intents(store, stage) == ()
    for stranger in (stage.claim(1, 0, 1), stage.claim(0, 0, 2)):
        assert not await store.write(set_active, stranger, NOW_MS + 3)
        assert not await store.write(camera_fault, stranger, counts, "", POLICY, NOW_MS + 3)
        assert not await store.write(pause, stranger, "why", NOW_MS + 3)
        assert not await store.write(unstartable, stranger, "why", NOW_MS + 9, NOW_MS + 3)
    assert await store.write(pause, claim, "gave up", NOW_MS + 4)
    row = await session(store, lease.camera_key)
    assert (row["state"], row["reason"]) == ("PAUSED", "gave up")


async def test_without_an_acknowledgement_the_camera_is_freed_once_in_a_while(store: Store) -> None:
    stage = await build(store, cameras=1)
    lease = await sent(store, stage)
    assert await store.write(start_timeouts, POLICY, TIMED_OUT - 2) == ()
    (failed,) = await store.write(start_timeouts, POLICY, TIMED_OUT)
    assert failed.elsewhere
    row = await session(store, lease.camera_key)
    assert (row["worker_key"], row["state"], row["avoid_worker_key"]) == (None, "PAUSED", lease.worker_key)
    assert row["moved_at"] == TIMED_OUT
    (free,) = await store.read(free_cameras, (stage.site_id,), 60.0, TIMED_OUT)
    assert (free.generation, free.avoid_worker_key) == (1, lease.worker_key)
    # The second worker fails too: now it stays, paused, until ten minutes have passed since it was moved.
    second = await store.write(take, Want(lease.camera_key, stage.workers[1].worker_key, 1), 10**9, TIMED_OUT)
    assert second is not None
    await store.write(starts_sent, (second.intent_id,), TIMED_OUT)
    later = TIMED_OUT + POLICY.start_timeout_sec * 1000 + 1
    (failed,) = await store.write(start_timeouts, POLICY, later)
    assert not failed.elsewhere
    row = await session(store, lease.camera_key)
    assert (row["worker_key"], row["state"]) == (second.worker_key, "PAUSED")
    assert len(await intents(store, stage)) == 1
    assert await store.write(start_timeouts, POLICY, later + 60_000) == ()
    again = TIMED_OUT + POLICY.retry_elsewhere_sec * 1000 + POLICY.start_timeout_sec * 1000 + 1
    (failed,) = await store.write(start_timeouts, POLICY, again)
    assert failed.elsewhere
    await check_history(store, lease.camera_key)


async def test_an_acknowledged_start_that_shows_nothing_is_paused_at_its_holder(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    await store.write(acked, lease.worker_key, lease.intent_id, NOW_MS + 1)
    (failed,) = await store.write(start_timeouts, POLICY, TIMED_OUT)
    assert (failed.elsewhere, failed.reason) == (False, "start failed: no_video")
    assert (await session(store, lease.camera_key))["worker_key"] == lease.worker_key
    assert await store.write(start_timeouts, POLICY, TIMED_OUT + 10**9) == ()


async def test_a_cameras_fault_ends_the_wait_for_its_start(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    counts = FaultCounts(Fault.UNAUTHORIZED, 1, 1, TIMED_OUT)
    await store.write(camera_fault, stage.claim(0, 0, 1), counts, "401", POLICY, NOW_MS + 1)
    assert await store.write(start_timeouts, POLICY, TIMED_OUT + 10**6) == ()
    row = await session(store, lease.camera_key)
    assert (row["state"], row["reason"], row["auth_failures"]) == ("PENDING", "unauthorized: 401", 1)


async def test_a_worker_that_fails_at_it_frees_the_camera(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    stranger = stage.workers[1].worker_key
    assert await store.write(not_done, stranger, lease.intent_id, "failed", "", POLICY, NOW_MS + 1) is None
    failed = await store.write(not_done, lease.worker_key, lease.intent_id, "failed", "no", POLICY, NOW_MS + 1)
    assert failed is not None
    assert (failed.elsewhere, failed.reason) == (True, "start failed: crash (no)")
    assert await store.write(not_done, lease.worker_key, lease.intent_id, "failed", "", POLICY, NOW_MS + 2) is None


async def test_a_refused_start_frees_the_camera_and_is_nobodys_fault(store: Store) -> None:
    stage = await build(store, cameras=1)
    lease = await sent(store, stage)
    args = (lease.worker_key, lease.intent_id, "refused", "the worker is DRAINING", POLICY, NOW_MS + 1)
    assert await store.write(not_done, *args) is not None
    row = await session(store, lease.camera_key)
    assert (row["state"], row["worker_key"], row["moved_at"]) == ("ORPHANED", None, None)
    assert row["reason"] == "the worker did not take it (the worker is DRAINING)"
    (span,) = await spans(store, lease.camera_key)
    assert span[3] == NOW_MS + 1
    # Soon free for everybody, and as often as need be: it does not count as the one try in ten minutes.
    (free,) = await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS + 1 + REFUSED_PAUSE_MS)
    assert free.avoid_worker_key == lease.worker_key
    want = Want(lease.camera_key, stage.workers[1].worker_key, expected_generation=1)
    again = await store.write(take, want, TTL_MS, NOW_MS + 1 + REFUSED_PAUSE_MS)
    assert again is not None
    refused = (again.worker_key, again.intent_id, "refused", "", POLICY, NOW_MS + 9000)
    assert await store.write(not_done, *refused) is not None
    assert (await session(store, lease.camera_key))["worker_key"] is None


async def test_a_camera_that_can_not_be_started_is_freed_until_later(store: Store) -> None:
    stage = await build(store, cameras=1)
    await sent(store, stage)
    assert await store.write(unstartable, stage.claim(0, 0, 1), "no key", NOW_MS + 60_000, NOW_MS + 1)
    row = await session(store, stage.cameras[0].key)
    assert (row["state"], row["worker_key"], row["reason"]) == ("PAUSED", None, "no key")
    assert await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS + 59_999) == ()
    assert len(await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS + 60_000)) == 1


async def test_stop_is_an_intent_of_its_own_and_its_end_frees_the_camera(store: Store) -> None:
    stage = await build(store)
    lease = await sent(store, stage)
    await store.write(set_active, stage.claim(0, 0, 1), NOW_MS + 1)
    assert await store.write(want_stop, lease.camera_key, "moved", NOW_MS + 2)
    assert await store.write(want_stop, lease.camera_key, "again", NOW_MS + 3)
    (intent,) = await intents(store, stage)
    assert isinstance(intent, StopIntent)
    assert (intent.reason, intent.generation) == ("moved", 1)
    assert intent.intent_id != lease.intent_id
    # A late answer to the START is none to the STOP.
    assert not await store.write(acked, lease.worker_key, lease.intent_id, NOW_MS + 4)
    assert await store.write(acked, lease.worker_key, intent.intent_id, NOW_MS + 4)
    assert await intents(store, stage) == ()
    assert (await session(store, lease.camera_key))["worker_key"] == lease.worker_key
    assert await store.write(release, stage.claim(0, 0, 1), "stopped", NOW_MS + 5)
    assert not await store.write(want_stop, lease.camera_key, "moved", NOW_MS + 6)


async def test_a_camera_that_was_never_started_is_let_go_without_a_stop(store: Store) -> None:
    stage = await build(store)
    lease = await taken(store, stage)
    assert await store.write(want_stop, lease.camera_key, "moved", NOW_MS + 1)
    assert (await session(store, lease.camera_key))["worker_key"] is None
    assert (await spans(store, lease.camera_key))[0][4] == "moved"


async def test_a_worker_that_forgot_is_started_anew_and_what_was_to_stop_has_stopped(store: Store) -> None:
    stage = await build(store, cameras=3)
    leases = [await taken(store, stage, 0, camera) for camera in range(3)]
    await store.write(starts_sent, tuple(lease.intent_id for lease in leases), NOW_MS)
    for camera in range(3):
        await store.write(set_active, stage.claim(0, camera, 1), NOW_MS + 1)
    await store.write(want_stop, leases[2].camera_key, "moved", NOW_MS + 2)
    restarted = await store.write(returned_without, leases[0].worker_key, frozenset({"cam_0"}), TTL_MS, NOW_MS + 3)
    assert restarted == ("cam_1",)
    kept, anew, stopped = [await session(store, camera.key) for camera in stage.cameras]
    assert (kept["state"], kept["generation"]) == ("ACTIVE", 1)
    assert (anew["state"], anew["generation"], anew["ready_at"]) == ("PENDING", 1, None)
    assert anew["intent_id"] != leases[1].intent_id
    assert stopped["worker_key"] is None
    for hung in stage.cameras:
        await check_history(store, hung.key)


async def test_sessions_follow_a_camera_that_is_switched_off_and_on(store: Store) -> None:
    stage = await build(store, cameras=1)
    camera_key = stage.cameras[0].key
    assert await store.write(follow_cameras, NOW_MS) == 0
    switch = "UPDATE cameras SET enabled = :enabled WHERE camera_key = :key"
    await store.write(statement, switch, {"enabled": 0, "key": camera_key})
    assert await store.write(follow_cameras, NOW_MS) == 1
    assert (await session(store, camera_key))["state"] == "TERMINATED"
    assert await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS) == ()
    assert await store.write(follow_cameras, NOW_MS) == 0
    await store.write(statement, switch, {"enabled": 1, "key": camera_key})
    await store.write(follow_cameras, NOW_MS)
    assert (await session(store, camera_key))["state"] == "ORPHANED"
    assert len(await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS)) == 1


async def test_a_stop_that_is_never_answered_ends_with_the_lease(store: Store) -> None:
    stage = await build(store, cameras=1)
    lease = await sent(store, stage)
    await store.write(want_stop, lease.camera_key, "moved", NOW_MS + 1)
    expired = NOW_MS + TTL_MS + 1
    await store.write(reclaim, expired)
    assert await store.write(follow_cameras, expired) == 1
    assert (await session(store, lease.camera_key))["worker_key"] is None
    assert await store.write(follow_cameras, expired) == 0
    await check_history(store, lease.camera_key)


async def test_a_new_password_ends_a_back_off_and_restarts_a_held_camera(store: Store) -> None:
    stage = await build(store, cameras=1)
    camera_key = stage.cameras[0].key
    lease = await sent(store, stage)
    counts = FaultCounts(Fault.UNAUTHORIZED, 5, 5, NOW_MS + 10**9)
    await store.write(camera_fault, stage.claim(0, 0, 1), counts, "", POLICY, NOW_MS + 1)
    await store.write(
        statement,
        """INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at)
        VALUES (:key, :tenant_id, 'k', :nonce, :nonce, 0)""",
        {"key": camera_key, "tenant_id": stage.tenant_id, "nonce": b"x" * 12},
    )
    await store.write(follow_cameras, NOW_MS + 2)
    (intent,) = await intents(store, stage)
    assert isinstance(intent, StopIntent)
    assert intent.reason == "credentials changed"
    await store.write(release, stage.claim(0, 0, 1), "stopped", NOW_MS + 3)
    await store.write(follow_cameras, NOW_MS + 4)
    row = await session(store, camera_key)
    assert (row["failures"], row["auth_failures"], row["next_attempt_at"]) == (0, 0, None)
    assert row["credential_version"] == 1
    second = await taken(store, stage, expected=1)
    (intent,) = await intents(store, stage)
    assert isinstance(intent, StartIntent)
    assert (intent.credential_version, intent.generation) == (1, second.generation)
    assert intent.credentials is not None
    assert (intent.credentials.nonce, lease.generation) == (b"x" * 12, 1)


async def test_a_camera_that_moves_to_another_site_is_free_there(store: Store) -> None:
    stage = await build(store, cameras=1)
    site_id = await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    await store.write(
        statement,
        "UPDATE cameras SET site_id = :site_id WHERE camera_key = :key",
        {"site_id": site_id, "key": stage.cameras[0].key},
    )
    await store.write(follow_cameras, NOW_MS)
    assert await store.read(free_cameras, (stage.site_id,), 60.0, NOW_MS) == ()
    (free,) = await store.read(free_cameras, (site_id,), 60.0, NOW_MS)
    assert free.site_id == site_id


async def test_cameras_without_a_session_get_one_that_goes_on_after_old_history(store: Store) -> None:
    stage = await build(store, cameras=1)
    camera_key = stage.cameras[0].key
    await taken(store, stage)
    await store.write(statement, "DELETE FROM camera_sessions WHERE camera_key = :key", {"key": camera_key})
    assert await store.read(without_session) == (camera_key,)
    await store.write(ensure_session, camera_key, NOW_MS + 1)
    await store.write(ensure_session, camera_key, NOW_MS + 2)
    assert await store.read(without_session) == ()
    row = await session(store, camera_key)
    assert (row["generation"], row["worker_key"]) == (1, None)
    await check_history(store, camera_key)
    second = await taken(store, stage, worker=1, expected=1)
    assert second.generation == 2
    await check_history(store, camera_key)
