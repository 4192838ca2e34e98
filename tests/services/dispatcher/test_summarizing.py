"""The daily summary is made once at its time, from the rows, and goes to those who want it."""

import asyncio
import json
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from camserver.base.credentials import seal
from camserver.config.secret_files import make_secrets
from camserver.domain.facts import DeliveryKind
from camserver.domain.people import Principal, Role
from camserver.domain.summaries import SummaryPolicy, due_at
from camserver.services.dispatcher.summarizing import SETTLE_MS, summarize, summary_handler
from camserver.store import Store, Tx, receivers
from camserver.store.receivers import NewReceiver, secrets_of
from tests.domain.build import analysis
from tests.fakes.webhook import FakeWebhook
from tests.rig.clock import ManualClock
from tests.services.dispatcher.delivered import deliver_all, table
from tests.services.dispatcher.stage import Stage
from tests.store.analyzing import hold, settle
from tests.store.scenery import NOW_MS, Scene, furnish, look, recorded

TOKYO = ZoneInfo("Asia/Tokyo")
DAY_MS = 86_400_000
POLICY = SummaryPolicy()
FIRST = date(2027, 1, 15)  # NOW_MS is 17:00 of it in Tokyo
DUE = due_at(FIRST, "19:00", TOKYO)


@pytest.fixture
async def scene(store: Store) -> Scene:
    made = await furnish(store, 2)
    await store.write(_run, "UPDATE sites SET timezone = 'Asia/Tokyo'", {})
    return made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


async def _run(tx: Tx, sql: str, params: dict[str, object]) -> None:
    await tx.run(sql, **params)


async def at(store: Store, clock: ManualClock, now_ms: int) -> list[dict[str, Any]]:
    """What has been summed up when it is then."""
    await clock.advance(now_ms - clock.now_ms())
    await summarize(store, clock, POLICY, "d")
    found = await table(store, "daily_summaries", "day")
    return [{**row, "body": json.loads(row["body"])} for row in found]


async def seen(store: Store, scene: Scene, seq: int, at_ms: int, severity: int, what: str = "human") -> None:
    held = await hold(store, scene, 0, seq, at_ms, analysis(what, severity=severity), at_ms)
    await settle(store, held, now_ms=at_ms)


async def add_receiver(
    store: Store, scene: Scene, name: str, kind: str, config: dict[str, object], on: int = 1
) -> None:
    await store.write(
        _run,
        """
        INSERT INTO receivers (receiver_uuid, tenant_id, name, kind, enabled, config, created_at, updated_at)
        VALUES (:name, :tenant_id, :name, :kind, :enabled, :config, 0, 0)""",
        {"name": name, "tenant_id": scene.tenant_id, "kind": kind, "enabled": on, "config": json.dumps(config)},
    )


async def test_it_holds_what_the_rows_of_its_time_say(store: Store, scene: Scene, clock: ManualClock) -> None:
    await seen(store, scene, 1, NOW_MS, severity=2)
    await seen(store, scene, 2, NOW_MS + 600_000, severity=1, what="animal")
    await seen(store, scene, 3, DUE + 1000, severity=3)  # belongs to the next day
    await recorded(store, look(scene, 1, 1, NOW_MS, collector_status="error", epoch_id=None, infer_bytes=None))
    await store.write(_offline, scene.camera_keys[1], scene, NOW_MS + 60_000, None)
    assert await at(store, clock, DUE + SETTLE_MS - 1) == []
    (row,) = await at(store, clock, DUE + SETTLE_MS)
    facts = row["body"]["facts"]
    assert (row["day"], row["created_at"], facts["late"]) == (FIRST.isoformat(), DUE + SETTLE_MS, False)
    assert [(one["camera"], one["primary_event"], one["severity"]) for one in facts["important"]] == [
        ("cam_0", "human", 2)
    ]
    assert facts["ordinary"] == [["animal", 1]]
    assert facts["troubles"] == [
        {
            "camera": "cam_1", "issue": "offline", "cause": "timeout", "times": 1,
            "length_ms": DUE - NOW_MS - 60_000, "since": NOW_MS + 60_000,
        }
    ]  # fmt: skip
    totals = facts["totals"]
    assert (totals["cameras"], totals["looks"], totals["looks_failed"], totals["analyzed"]) == (2, 3, 1, 2)
    assert (totals["detected"], totals["events"], totals["incidents"]) == (2, 3, 2)
    assert "cam_0" in "\n".join(row["body"]["texts"]["ja"]["lines"])


async def _offline(tx: Tx, camera_key: int, scene: Scene, start_at: int, end_at: int | None) -> None:
    await tx.run(
        """
        INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, state, primary_event, start_at,
          last_seen_at, end_at, severity_max, retention_class, created_at, updated_at, subject, cause)
        VALUES ('issue', :tenant_id, :site_id, :camera_key, 0, 'open', 'camera_issue', :start_at, :start_at, :end_at,
          3, 'quarantine', 0, 0, 'offline', 'timeout')""",
        tenant_id=scene.tenant_id,
        site_id=scene.site_id,
        camera_key=camera_key,
        start_at=start_at,
        end_at=end_at,
    )


async def test_once_a_day_and_late_once_after_a_downtime(store: Store, scene: Scene, clock: ManualClock) -> None:
    await at(store, clock, DUE + SETTLE_MS)
    assert len(await at(store, clock, DUE + DAY_MS)) == 1
    # Down for three days: the newest is made, and says that it is late.
    later = await at(store, clock, DUE + 4 * DAY_MS - 3_600_000)
    assert [row["day"] for row in later] == [FIRST.isoformat(), (FIRST + timedelta(days=3)).isoformat()]
    assert later[1]["body"]["facts"]["late"] is True
    assert later[1]["body"]["texts"]["en"]["lines"][1].startswith("Made late")
    assert await at(store, clock, DUE + 4 * DAY_MS - 3_540_000) == later


async def test_a_site_has_no_summary_of_the_time_before_it_was_there(store: Store, clock: ManualClock) -> None:
    await furnish(store, 1, now_ms=NOW_MS)
    await store.write(_run, "UPDATE sites SET timezone = 'Asia/Tokyo', created_at = :at", {"at": DUE + 1})
    assert await at(store, clock, DUE + SETTLE_MS) == []
    assert len(await at(store, clock, DUE + DAY_MS + SETTLE_MS)) == 1


async def test_the_last_summary_of_a_removed_site_is_of_the_day_on_which_it_was_removed(
    store: Store, scene: Scene, clock: ManualClock
) -> None:
    await store.write(_run, "UPDATE sites SET removed_at = :at", {"at": DUE + 1})
    assert len(await at(store, clock, DUE + SETTLE_MS)) == 1
    assert len(await at(store, clock, DUE + DAY_MS + SETTLE_MS)) == 2
    assert len(await at(store, clock, DUE + 2 * DAY_MS + SETTLE_MS)) == 2


async def test_a_tenant_that_is_switched_off_is_told_nothing(store: Store, scene: Scene, clock: ManualClock) -> None:
    await store.write(_run, "UPDATE tenants SET disabled = 1", {})
    assert await at(store, clock, DUE + SETTLE_MS) == []
    await store.write(_run, "UPDATE tenants SET disabled = 0", {})
    assert len(await at(store, clock, DUE + DAY_MS)) == 1


async def test_several_dispatchers_make_it_once(two_stores: tuple[Store, Store], clock: ManualClock) -> None:
    first, second = two_stores
    await furnish(first, 1)
    await clock.advance(DAY_MS)
    await asyncio.gather(
        *(summarize(store, clock, POLICY, name) for name in "abc" for store in (first, second)),
        return_exceptions=False,
    )
    assert len(await table(first, "daily_summaries", "day")) == 1
    deliveries = await table(first, "deliveries", "delivery_id")
    assert [row["kind"] for row in deliveries] == ["summary"]
    assert len([row for row in await table(first, "changes", "seq") if row["kind"] == "summary"]) == 1


async def test_switched_off_means_none(store: Store, scene: Scene, clock: ManualClock) -> None:
    await clock.advance(DAY_MS)
    await summarize(store, clock, SummaryPolicy(enabled=False), "d")
    assert await table(store, "daily_summaries", "day") == []


async def test_those_who_want_it_get_it_in_all_languages(store: Store, scene: Scene, clock: ManualClock) -> None:
    await add_receiver(store, scene, "wants", "webhook", {"summaries": True})
    await add_receiver(store, scene, "off", "slack", {"summaries": True}, on=0)
    await add_receiver(store, scene, "silent", "email", {"summaries": False})
    await add_receiver(store, scene, "archive", "folder", {"summaries": True})
    (row,) = await at(store, clock, DUE + SETTLE_MS)
    for _ in range(2):  # a repeat adds nothing
        await deliver_all(store, DeliveryKind.SUMMARY, summary_handler(store), clock.now_ms())
        await store.write(_run, "UPDATE deliveries SET status = 'queued' WHERE kind = 'summary' AND attempt < 2", {})
    messages = [one for one in await table(store, "deliveries", "delivery_id") if one["kind"] == "message"]
    receivers = {one["receiver_id"]: one["name"] for one in await table(store, "receivers", "receiver_id")}
    assert [receivers[one["receiver_id"]] for one in messages] == ["wants"]
    assert json.loads(messages[0]["request"])["texts"] == row["body"]["texts"]


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_a_running_dispatcher_makes_it_and_a_webhook_gets_it(stage: Stage) -> None:
    """From the rows to a receiver: everything between is the real thing."""
    stage.settings = replace(stage.settings, deliveries=replace(stage.settings.deliveries, allow_loopback=True))
    principal = Principal(stage.scene.tenant_id, None, Role.SYSTEM_ADMIN)
    async with FakeWebhook() as hook, stage.dispatcher():
        key = make_secrets(stage.settings).credential_key_bytes()
        sealed = seal(key, principal.tenant_id, secrets_of("r1"), json.dumps({"url": hook.url}).encode())
        new = NewReceiver("r1", "hook", "webhook", '{"summaries": true}', sealed, "en", None)
        await stage.store.as_(principal).write(receivers.add, new, "", stage.clock.now_ms())

        async def received_later() -> bool:
            await stage.clock.advance(10 * 60_000)
            await stage.clock.some_turns(6)
            return bool(hook.received)

        await stage.until(received_later, "a summary at the webhook")
    (received,) = hook.received
    assert (received.body["kind"], received.body["language"]) == ("summary", "en")
    assert received.body["title"].startswith("main: summary of 2027-01-15")
    assert received.body["facts"]["totals"]["cameras"] == 3
