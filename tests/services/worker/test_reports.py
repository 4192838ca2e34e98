import asyncio

import pytest

from camserver.services.worker import reports as reports_module
from camserver.services.worker.reports import Reports
from tests.rig.clock import settle
from tests.services.worker.build import FollowingClock, reported


async def test_reports_stay_in_order_until_sent(moved: FollowingClock) -> None:
    reports = Reports(moved)
    reports.add("pipeline_ready", "cam_1", 3)
    reports.add("spool_full", "cam_1", 3, dropped=2)
    first = await reports.first()
    assert (first.event_type, first.camera_id, first.generation, first.seq) == ("pipeline_ready", "cam_1", 3, 1)
    assert (first.ts, first.boot_ms) == (moved.now_ms(), moved.boot_ms())
    assert await reports.first() is first  # the socket broke: it is sent again
    reports.sent(first)
    reports.sent(first)
    second = await reports.first()
    assert (second.event_type, second.payload, second.seq) == ("spool_full", {"dropped": 2}, 2)


async def test_past_the_bound_the_oldest_go_and_are_counted(
    moved: FollowingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports_module, "WAITING_MAX", 3)
    reports = Reports(moved)
    for _ in range(5):
        reports.add("look_refused")
    assert [report.seq for report in reported(reports)] == [3, 4, 5]
    assert reports.dropped == 2


async def test_report_dropped_while_it_was_sent_does_not_take_another_with_it(
    moved: FollowingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports_module, "WAITING_MAX", 1)
    reports = Reports(moved)
    reports.add("look_refused")
    first = await reports.first()
    reports.add("look_refused")
    reports.sent(first)
    assert len(reports) == 1


async def test_waiting_ends_when_all_was_sent(moved: FollowingClock) -> None:
    reports = Reports(moved)
    waiting = asyncio.ensure_future(reports.first())
    await settle()
    reports.add("pipeline_ready")
    empty = asyncio.ensure_future(reports.until_sent())
    report = await waiting
    await settle()
    assert not empty.done()
    reports.sent(report)
    await empty
