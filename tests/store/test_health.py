"""Camera health in the store: what looks do to state and events, beside what cameras see, on all three databases."""

import asyncio
import json

import pytest

from camserver.domain.health import Policies
from camserver.domain.notices import DeliveryPolicy, NotifyPolicy
from camserver.store import Store
from camserver.store.check import CHECKS
from camserver.store.frames import Look
from camserver.store.health import HealthTerms, Swept, sweep
from camserver.store.notice_facts import telling
from camserver.store.outcomes import Applied
from camserver.store.tx import Tx
from tests.domain.build import analysis
from tests.store.analyzing import hold, rows, settle
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEC = 1000
MIN = 60 * SEC
TERMS = HealthTerms(INTERVAL_MS, Policies())


async def swept(store: Store, now_ms: int, terms: HealthTerms = TERMS) -> Swept:
    return await store.write(sweep, now_ms, terms)


def failed(scene: Scene, seq: int, at_ms: int, code: str = "refused", camera: int = 0) -> Look:
    return look(
        scene,
        camera,
        seq,
        at_ms,
        collector_status="error",
        error_code=code,
        verdict="skip",
        epoch_id=None,
        infer_bytes=None,
        full_bytes=None,
    )


def good(scene: Scene, seq: int, at_ms: int, camera: int = 0) -> Look:
    return look(scene, camera, seq, at_ms, verdict="skip", infer_hash64_hex=f"{at_ms:016x}")


async def renewed(tx: Tx, until: int) -> None:
    await tx.run("UPDATE camera_sessions SET lease_expires_at = :until", until=until)


async def attended(store: Store, cameras: int = 1) -> Scene:
    scene = await furnish(store, cameras=cameras)
    await store.write(renewed, NOW_MS + 1000 * MIN)
    return scene


async def went_down(store: Store, scene: Scene) -> int:
    """A good look and three failed ones; when it is told."""
    await recorded(store, good(scene, 1, NOW_MS))
    await recorded(store, *[failed(scene, 2 + number, NOW_MS + (1 + number) * 10 * SEC) for number in range(3)])
    await swept(store, NOW_MS + 31 * SEC)
    return NOW_MS + 90 * SEC


async def state(store: Store) -> tuple[str, str, int | None]:
    row = (await store.read(rows, "camera_state", "camera_key"))[0]
    return row["health"], row["health_cause"], row["health_since"]


async def no_findings(tx: Tx) -> None:
    for check in CHECKS:
        row = await tx.one(check.sql)
        assert row is None or not row["found"], check.kind


async def test_an_offline_camera_is_one_event_from_its_first_failed_look_to_its_return(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    told_at = await went_down(fresh_store, scene)
    assert await state(fresh_store) == ("down", "refused", NOW_MS + 10 * SEC)
    assert await fresh_store.read(rows, "events", "event_id") == []
    assert (await swept(fresh_store, told_at - 1)).changed == 0
    assert (await swept(fresh_store, told_at)).changed == 1
    (event,) = await fresh_store.read(rows, "events", "event_id")
    (frame, *_) = await fresh_store.read(rows, "frames", "frame_id")
    assert (event["primary_event"], event["subject"], event["cause"]) == ("camera_issue", "offline", "refused")
    assert (event["state"], event["open_key"], event["severity_max"]) == ("open", None, 3)
    assert (event["start_at"], event["best_frame_id"]) == (NOW_MS + 10 * SEC, frame["frame_id"])
    (tag,) = await fresh_store.read(rows, "event_tags", "event_id")
    assert tag["tag_id"] == "camera.offline"
    (row,) = await fresh_store.read(rows, "camera_state", "camera_key")
    (issue,) = json.loads(row["issues"])
    assert (issue["kind"], issue["event"]) == ("offline", event["event_uuid"])
    # Many failed looks later it is the same event.
    later = [failed(scene, 5 + number, NOW_MS + (2 + number) * MIN, "timeout") for number in range(20)]
    await recorded(fresh_store, *later)
    await swept(fresh_store, NOW_MS + 30 * MIN)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["last_seen_at"], event["cause"], event["frame_count"]) == (NOW_MS + 21 * MIN, "timeout", 23)
    await fresh_store.read(no_findings)
    # The first good look is not enough, the second is.
    await recorded(fresh_store, good(scene, 30, NOW_MS + 40 * MIN))
    await swept(fresh_store, NOW_MS + 40 * MIN)
    assert (await state(fresh_store))[0] == "down"
    await recorded(fresh_store, good(scene, 31, NOW_MS + 41 * MIN))
    await swept(fresh_store, NOW_MS + 41 * MIN)
    assert await state(fresh_store) == ("up", "", NOW_MS + 41 * MIN)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["state"], event["end_at"], event["issue_key"]) == ("closed", NOW_MS + 41 * MIN, None)
    kinds = [change["kind"] for change in await fresh_store.read(rows, "changes", "seq")]
    assert (kinds.count("event"), kinds.count("incident")) == (2, 1)  # opened and closed; that it goes on is no news
    await fresh_store.read(no_findings)


async def test_a_sweep_without_news_does_nothing(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    await recorded(fresh_store, good(scene, 1, NOW_MS))
    assert await swept(fresh_store, NOW_MS) == Swept(1, 1, more=False)
    assert await swept(fresh_store, NOW_MS + 1) == Swept(0, 0, more=False)


async def test_an_issue_and_what_the_camera_sees_leave_each_other_alone(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    held = await hold(fresh_store, scene, 0, 1, NOW_MS, analysis(), NOW_MS)
    assert await settle(fresh_store, held, now_ms=NOW_MS) == (Applied.DONE,)
    await recorded(fresh_store, *[failed(scene, 2 + number, NOW_MS + (1 + number) * SEC) for number in range(3)])
    await swept(fresh_store, NOW_MS + 10 * SEC)
    await swept(fresh_store, NOW_MS + 70 * SEC)
    person, offline = await fresh_store.read(rows, "events", "event_id")
    assert [(event["subject"], event["state"]) for event in (person, offline)] == [("", "open"), ("offline", "open")]
    assert person["incident_id"] != offline["incident_id"]
    (row,) = await fresh_store.read(rows, "camera_state", "camera_key")
    assert (row["open_event_id"], row["incident_id"], row["version"]) == (
        person["event_id"],
        person["incident_id"],
        1,
    )
    # The person is seen again: that event goes on and the issue is not touched.
    held = await hold(fresh_store, scene, 0, 5, NOW_MS + 80 * SEC, analysis(), NOW_MS + 80 * SEC)
    assert await settle(fresh_store, held, now_ms=NOW_MS + 80 * SEC) == (Applied.DONE,)
    person, offline = await fresh_store.read(rows, "events", "event_id")
    assert (person["frame_count"], person["state"], offline["state"]) == (2, "open", "open")
    await fresh_store.read(no_findings)


async def test_a_late_frame_never_joins_an_issue(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    await swept(fresh_store, await went_down(fresh_store, scene))
    at_ms = NOW_MS + 60 * SEC
    held = await hold(fresh_store, scene, 0, 9, at_ms, analysis("camera_issue"), at_ms + 10 * MIN)
    assert await settle(fresh_store, held, now_ms=at_ms + 10 * MIN) == (Applied.DONE,)
    issue, late = await fresh_store.read(rows, "events", "event_id")
    assert (issue["subject"], issue["frame_count"]) == ("offline", 3)
    assert late["subject"] == ""


async def test_a_camera_without_a_worker_is_unattended(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)  # the lease ends in 90 s
    await recorded(fresh_store, good(scene, 1, NOW_MS))
    await swept(fresh_store, NOW_MS)
    assert (await state(fresh_store))[:2] == ("up", "")
    await swept(fresh_store, NOW_MS + 119 * SEC)
    assert (await state(fresh_store))[:2] == ("up", "")
    await swept(fresh_store, NOW_MS + 120 * SEC)
    assert await state(fresh_store) == ("unknown", "unattended", NOW_MS + 120 * SEC)
    assert await fresh_store.read(rows, "events", "event_id") == []
    await fresh_store.write(renewed, NOW_MS + 1000 * MIN)
    await swept(fresh_store, NOW_MS + 130 * SEC)
    assert (await state(fresh_store))[:2] == ("up", "")


TELLING = HealthTerms(INTERVAL_MS, deliveries=DeliveryPolicy(notify=True))


async def test_cameras_that_nobody_looks_at_are_events_and_one_notice_for_their_site(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=3)  # the leases end in 90 s
    await recorded(fresh_store, *[good(scene, 1, NOW_MS, camera) for camera in range(3)])
    await swept(fresh_store, NOW_MS, TELLING)
    await swept(fresh_store, NOW_MS + 2 * MIN, TELLING)
    await swept(fresh_store, NOW_MS + 7 * MIN - 1, TELLING)
    assert await fresh_store.read(rows, "events", "event_id") == []
    await swept(fresh_store, NOW_MS + 7 * MIN, TELLING)
    events = await fresh_store.read(rows, "events", "event_id")
    assert [(one["subject"], one["state"], one["severity_max"]) for one in events] == [("unattended", "open", 3)] * 3
    assert {one["start_at"] for one in events} == {NOW_MS + 2 * MIN}
    assert (await state(fresh_store))[:2] == ("unknown", "unattended")
    (delivery,) = await fresh_store.read(rows, "deliveries", "delivery_id")
    assert (delivery["reason"], delivery["event_id"]) == ("incident_opened", events[0]["event_id"])
    # The message counts the others, and is for whoever would hear of any of them.
    told = await fresh_store.read(telling, scene.tenant_id, events[0]["event_id"], None, None, NOW_MS + 7 * MIN)
    assert told is not None
    assert told.event.others == tuple(scene.camera_keys[1:3])
    assert [one.camera_key for one in told.event.notices] == list(scene.camera_keys[:3])
    await fresh_store.read(no_findings)
    # A worker has them again: all end, and one message says so.
    await fresh_store.write(renewed, NOW_MS + 1000 * MIN)
    await swept(fresh_store, NOW_MS + 20 * MIN, TELLING)
    events = await fresh_store.read(rows, "events", "event_id")
    assert [(one["state"], one["end_at"]) for one in events] == [("closed", NOW_MS + 20 * MIN)] * 3
    found = await fresh_store.read(rows, "deliveries", "delivery_id")
    assert [one["reason"] for one in found] == ["incident_opened", "back"]
    await fresh_store.read(no_findings)


async def test_a_camera_that_is_held_and_never_looked_at_is_offline(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    await recorded(fresh_store, good(scene, 1, NOW_MS))
    await swept(fresh_store, NOW_MS)
    limit_ms = max(180 * SEC, 3 * INTERVAL_MS)
    assert (await swept(fresh_store, NOW_MS + limit_ms - 1)).cameras == 0
    await swept(fresh_store, NOW_MS + limit_ms)
    assert await state(fresh_store) == ("down", "no_looks", NOW_MS)
    await swept(fresh_store, NOW_MS + limit_ms + MIN)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["subject"], event["cause"], event["start_at"]) == ("offline", "no_looks", NOW_MS)
    at_ms = NOW_MS + limit_ms + 2 * MIN
    await recorded(fresh_store, good(scene, 2, at_ms), good(scene, 3, at_ms + INTERVAL_MS))
    await swept(fresh_store, at_ms + INTERVAL_MS)
    assert (await state(fresh_store))[0] == "up"
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["state"], event["end_at"]) == ("closed", at_ms + INTERVAL_MS)


@pytest.mark.parametrize(
    ("change", "is_over"),
    [
        ("UPDATE cameras SET name = 'another', updated_at = updated_at + 1", False),
        ("UPDATE camera_overrides SET hints = '{}', polling_interval_sec = 4", False),
        ("UPDATE camera_overrides SET rotation = 90", True),
        ("UPDATE camera_overrides SET ignore_masks = '[[[0,0],[1,0],[1,1]]]'", True),
        ("UPDATE camera_streams SET url = 'rtsp://elsewhere/'", True),
    ],
)
async def test_only_another_view_ends_what_was_wrong_with_it(fresh_store: Store, change: str, is_over: bool) -> None:
    scene = await attended(fresh_store)
    await fresh_store.write(with_values)
    views = ["00ff" * 9] * 20 + ["3c3c" * 9] * 10
    seen = [
        look(scene, 0, number + 1, NOW_MS + number * MIN, verdict="skip", structure=0.5, view_hex=view,
             infer_hash64_hex=f"{number:016x}")
        for number, view in enumerate(views)
    ]  # fmt: skip
    await recorded(fresh_store, *seen)
    await swept(fresh_store, NOW_MS + 29 * MIN)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["subject"], event["state"]) == ("moved", "open")
    await fresh_store.write(changed_by, change)
    at_ms = NOW_MS + 29 * MIN + 30 * SEC
    await recorded(fresh_store, look(scene, 0, 40, at_ms, verdict="skip", structure=0.5, view_hex="3c3c" * 9))
    await swept(fresh_store, at_ms)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert event["state"] == ("closed" if is_over else "open")


async def with_values(tx: Tx) -> None:
    await tx.run(
        "INSERT INTO camera_overrides (camera_key, tenant_id, updated_at) "
        "SELECT camera_key, tenant_id, 1 FROM cameras"
    )
    await tx.run(
        "INSERT INTO camera_streams (camera_key, tenant_id, kind, source_type, url) "
        "SELECT camera_key, tenant_id, 'main', 'rtsp', 'rtsp://here/' FROM cameras"
    )


async def changed_by(tx: Tx, change: str) -> None:
    assert await tx.run(change)


async def switched_off(tx: Tx) -> None:
    await tx.run("UPDATE cameras SET enabled = 0")


async def test_a_camera_that_is_switched_off_has_no_open_issue(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    await swept(fresh_store, await went_down(fresh_store, scene))
    await fresh_store.write(switched_off)
    await swept(fresh_store, NOW_MS + 3 * MIN)
    assert (await state(fresh_store))[:2] == ("unknown", "off")
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert event["state"] == "closed"


async def test_an_issue_that_comes_and_goes_is_one_incident(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    await swept(fresh_store, await went_down(fresh_store, scene))
    at_ms = NOW_MS + 95 * SEC
    await recorded(fresh_store, good(scene, 5, at_ms), good(scene, 6, at_ms + 5 * SEC))
    await swept(fresh_store, at_ms + 6 * SEC)
    await recorded(fresh_store, *[failed(scene, 7 + number, at_ms + (7 + number) * SEC) for number in range(3)])
    await swept(fresh_store, at_ms + 10 * SEC)
    await swept(fresh_store, at_ms + 90 * SEC)
    first, second = await fresh_store.read(rows, "events", "event_id")
    (incident,) = await fresh_store.read(rows, "incidents", "incident_id")
    assert (first["state"], second["state"]) == ("closed", "open")
    assert (incident["event_count"], incident["last_event_id"]) == (2, second["event_id"])
    kinds = [change["kind"] for change in await fresh_store.read(rows, "changes", "seq")]
    assert kinds.count("incident") == 2
    await fresh_store.read(no_findings)


async def test_people_are_told_where_a_receiver_is_configured(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    told_at = await went_down(fresh_store, scene)
    terms = HealthTerms(INTERVAL_MS, deliveries=DeliveryPolicy(notify=True))
    await swept(fresh_store, told_at, terms)
    await recorded(fresh_store, failed(scene, 9, told_at + SEC))
    await swept(fresh_store, told_at + SEC, terms)
    (delivery,) = await fresh_store.read(rows, "deliveries", "delivery_id")
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (delivery["kind"], delivery["reason"], delivery["status"]) == ("notify", "incident_opened", "queued")
    assert delivery["event_id"] == event["event_id"]


@pytest.mark.parametrize(
    ("notify", "reasons"),
    [
        (NotifyPolicy(), ["incident_opened", "back"]),
        (NotifyPolicy(notify_back=False), ["incident_opened"]),
    ],
)
async def test_people_are_told_when_it_is_over(fresh_store: Store, notify: NotifyPolicy, reasons: list[str]) -> None:
    scene = await attended(fresh_store)
    told_at = await went_down(fresh_store, scene)
    terms = HealthTerms(INTERVAL_MS, notify=notify, deliveries=DeliveryPolicy(notify=True))
    await swept(fresh_store, told_at, terms)
    await recorded(fresh_store, good(scene, 10, told_at + SEC), good(scene, 11, told_at + 2 * SEC))
    await swept(fresh_store, told_at + 3 * SEC, terms)
    found = await fresh_store.read(rows, "deliveries", "delivery_id")
    assert [one["reason"] for one in found] == reasons
    assert len({one["event_id"] for one in found}) == 1


async def test_a_camera_that_people_switch_off_is_not_told_to_work_again(fresh_store: Store) -> None:
    scene = await attended(fresh_store)
    told_at = await went_down(fresh_store, scene)
    terms = HealthTerms(INTERVAL_MS, deliveries=DeliveryPolicy(notify=True))
    await swept(fresh_store, told_at, terms)
    await fresh_store.write(switched_off)
    await swept(fresh_store, told_at + SEC, terms)
    assert [one["state"] for one in await fresh_store.read(rows, "events", "event_id")] == ["closed"]
    assert [one["reason"] for one in await fresh_store.read(rows, "deliveries", "delivery_id")] == ["incident_opened"]


async def test_many_looks_at_once_are_read_in_order_and_to_the_end(fresh_store: Store) -> None:
    scene = await attended(fresh_store, cameras=3)
    for camera in range(3):
        looks = [good(scene, number, NOW_MS + number, camera) for number in range(1, 901)]
        await recorded(
            fresh_store, *looks, *[failed(scene, 901 + n, NOW_MS + 901 + n, camera=camera) for n in range(3)]
        )
    sweeps = 1
    while (await swept(fresh_store, NOW_MS + 10 * SEC)).more:
        sweeps += 1
    assert sweeps == 2
    healths = [row["health"] for row in await fresh_store.read(rows, "camera_state", "camera_key")]
    assert healths == ["down"] * 3
    assert {row["seq"] for row in await fresh_store.read(rows, "camera_health", "camera_key")} == {903}


async def test_two_dispatchers_open_one_event(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    scene = await attended(first)
    told_at = await went_down(first, scene)
    await asyncio.gather(*(swept(store, told_at + number) for number, store in enumerate((first, second) * 5)))
    assert len(await first.read(rows, "events", "event_id")) == 1
