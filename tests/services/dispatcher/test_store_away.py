"""A store that goes away in the middle: what was found out is written when it is back."""

import asyncio
import os
import signal
from typing import cast

import pytest

from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.services.dispatcher.sweeping import Sweeper
from camserver.store import jobs
from camserver.store.jobs import ClaimTerms
from camserver.store.sqlite import SqliteStore
from tests.fakes.analyzer import Fault, Seen
from tests.rig.databases import DatabaseServer
from tests.rig.polling import until
from tests.services.dispatcher.stage import CutStore, Stage
from tests.store.scenery import INTERVAL_MS

EVERY_DATABASE = True  # each goes away in its own way (tests/rig/dealt.py)
SEC = 1000
HUMAN = Seen("human", ("count.single",))


@pytest.mark.parametrize("outage_sec", [0, 100], ids=["short", "longer than the locks"])
async def test_an_analysis_waits_for_the_store(stage: Stage, outage_sec: int) -> None:
    stage.analyzer.add_fault(Fault.hold())
    for camera in range(3):
        await stage.look(camera, HUMAN)
    cut = CutStore(stage.store)
    async with stage.dispatcher(cut):
        await stage.until_status(running=3)
        await stage.analyzer.until_received(4)
        cut.is_cut = True
        stage.analyzer.heal()
        await stage.pass_time(outage_sec, 20)
        await stage.clock.some_turns()
        assert await stage.counts() == {"running": 3}
        cut.is_cut = False
        await stage.until_status(done=3)
    assert len(stage.analyzer.analyses()) == 3, "nothing was asked twice"
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 3


async def test_a_failure_waits_for_the_store_too(stage: Stage) -> None:
    """Were it dropped, the lock would run out, and an outage of the analyzer would cost the attempt after all."""
    stage.analyzer.add_fault(Fault.hold())
    await stage.look(0, HUMAN)
    cut = CutStore(stage.store)
    async with stage.dispatcher(cut):
        await stage.until_status(running=1)
        await stage.analyzer.until_received(2)
        cut.is_cut = True
        await stage.analyzer.refuse()  # resets the request that is held
        await stage.pass_time(120, 20)
        cut.is_cut = False
        await stage.until_status(delayed=1)
        (job,) = await stage.jobs()
        assert job["attempt"] == 0
        assert "connection" in job["last_error"]
        await stage.analyzer.accept()
        stage.analyzer.heal()
        await stage.pass_time(5, 1)
        await stage.until_status(done=1)


async def test_locks_stand_until_their_owners_could_renew_them(stage: Stage) -> None:
    """After an outage every lock has run out, but nobody is dead: the sweep waits for the first renewals."""
    await stage.look(0, HUMAN)
    terms = ClaimTerms(JobPolicy(), EventPolicy(), INTERVAL_MS)
    await stage.store.write(jobs.claim, "somebody", "token", 1, stage.clock.now_ms(), terms)
    cut = CutStore(stage.store)
    sweeper = Sweeper(cut, stage.objects, stage.clock, JobPolicy(), EventPolicy(), INTERVAL_MS)
    sweeping = asyncio.create_task(sweeper.run())
    cut.is_cut = True
    await stage.pass_time(120, 20)
    cut.is_cut = False
    await stage.pass_time(20, 5)
    assert await stage.counts() == {"running": 1}, "its owner renews every twenty seconds"
    await stage.pass_time(20, 5)
    await stage.until_status(queued=1)  # it was dead after all
    sweeping.cancel()
    await asyncio.wait([sweeping])


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_the_writer_of_sqlite_is_killed_while_an_analysis_is_under_way(stage: Stage) -> None:
    stage.analyzer.add_fault(Fault.hold())
    for camera in range(3):
        await stage.look(camera, HUMAN)
    store = cast(SqliteStore, stage.store)
    async with stage.dispatcher():
        await stage.until_status(running=3)
        await stage.analyzer.until_received(4)
        for _ in range(3):
            await until(lambda: _is_killed(store), "there is a writer to kill")
            stage.analyzer.release()
            await stage.clock.some_turns()
        stage.analyzer.heal()
        await stage.until_status(done=3)
    assert [event["frame_count"] for event in await stage.events()] == [1, 1, 1]
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 3


def _is_killed(store: SqliteStore) -> bool:
    """False while the one before is dead and no other one was started yet."""
    assert store._writer is not None
    try:
        os.kill(store._writer.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("db_kind", ["postgres", "mariadb"], indirect=True)
async def test_the_database_crashes_while_an_analysis_is_under_way(
    stage: Stage, db_kind: str, request: pytest.FixtureRequest
) -> None:
    server: DatabaseServer = request.getfixturevalue(db_kind)
    stage.analyzer.add_fault(Fault.hold())
    for camera in range(3):
        await stage.look(camera, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(running=3)
        await stage.analyzer.until_received(4)
        server.crash()
        stage.analyzer.heal()
        await stage.clock.some_turns()
        await asyncio.to_thread(server.start)
        await stage.until_status(done=3)
    assert len(stage.analyzer.analyses()) == 3
    assert [event["frame_count"] for event in await stage.events()] == [1, 1, 1]
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 3
