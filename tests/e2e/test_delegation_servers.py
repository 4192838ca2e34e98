"""What delegation promises when servers, databases and clocks misbehave, each promise one test, with real processes.

Times that were measured are printed (`-s`); none decides. Nothing may move here, so leases last long enough for the
slowest machine to come back.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.grounds import CAMERAS, Grounds, Stopwatch, restart_database
from tests.rig.databases import DatabaseServer
from tests.rig.effort import THOROUGH
from tests.rig.wall_clock import WallClocks

CAM = CAMERAS[0]
on_sqlite = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
on_servers = pytest.mark.parametrize("db_kind", ["postgres", "mariadb"], indirect=True)
# Where the database only carries what processes say to each other.
on_a_server = pytest.mark.parametrize("db_kind", ["postgres", "mariadb"] if THOROUGH else ["postgres"], indirect=True)
pytestmark = pytest.mark.timeout(600)
LONG = {"ttl_sec": 300, "restart_grace_sec": 300}


@pytest.fixture
async def grounds(db_kind: str, db_url: str, tmp_path: Path) -> AsyncIterator[Grounds]:
    async with Grounds(db_kind, db_url, tmp_path, **LONG) as made:
        yield made


# Servers that go away ----------------------------------------------------------------------------------------------


async def test_control_killed_and_started_again_moves_nothing(grounds: Grounds) -> None:
    await grounds.hang(*CAMERAS)
    for worker in ("worker-a", "worker-b"):
        await grounds.worker(worker)
    before = await grounds.until_active(*CAMERAS)
    await grounds.more_looks(*CAMERAS)
    control = "server" if grounds.kind == "sqlite" else "control-a"
    grounds.kill(control)
    watch = Stopwatch()
    grounds.start(control)
    await grounds.until_ready(control)
    await grounds.more_looks(*CAMERAS)
    watch.say("control killed until every camera had two more looks")
    await _everything_is_where_it_was(grounds, before)


@on_servers
async def test_a_database_restarted_moves_nothing(grounds: Grounds, request: pytest.FixtureRequest) -> None:
    await grounds.hang(*CAMERAS)
    for worker, control in (("worker-a", "control-a"), ("worker-b", "control-b")):
        await grounds.worker(worker, control)
    before = await grounds.until_active(*CAMERAS)
    await grounds.more_looks(*CAMERAS)
    server: DatabaseServer = request.getfixturevalue(grounds.kind)
    watch = Stopwatch()
    await restart_database(server)
    await grounds.more_looks(*CAMERAS)
    watch.say("database killed until every camera had two more looks")
    await _everything_is_where_it_was(grounds, before)


async def _everything_is_where_it_was(grounds: Grounds, before: dict[str, dict[str, object]]) -> None:
    """No camera doubled, none lost, no stampede: not one lease was given out anew."""
    after = await grounds.until_active(*before)
    assert _places(after) == _places(before)
    assert await grounds.generations() == dict.fromkeys(before, 1)
    await grounds.judged()


def _places(leases: dict[str, dict[str, object]]) -> dict[str, object]:
    return {name: one["worker_id"] for name, one in leases.items()}


# Several control processes -----------------------------------------------------------------------------------------


@on_a_server
async def test_what_one_process_writes_reaches_the_worker_of_another(grounds: Grounds) -> None:
    """The web writes; control-a has one worker's socket, control-b the other's."""
    await grounds.hang(CAM)
    await grounds.worker("worker-a", "control-a")
    await grounds.until_active(CAM, worker="worker-a")
    heir = await grounds.worker("worker-b", "control-b")
    await grounds.more_looks(CAM)
    watch = Stopwatch()
    await grounds.call("POST", f"/api/cameras/{CAM}/reassign", {"worker_id": "worker-b"})
    await heir.until_logged("on_assign", 180, camera_id=CAM, generation=2)
    watch.say("moved from a worker of one process to one of another: START after")
    await grounds.until_active(CAM, worker="worker-b")
    watch.say("running there after")
    await grounds.running["control-a"].until_logged("send_stop", camera_id=CAM, generation=1)
    await grounds.running["control-b"].until_logged("send_start", camera_id=CAM, generation=2)
    await grounds.more_looks(CAM)
    assert await grounds.generations() == {CAM: 2}
    await grounds.judged()


@on_a_server
async def test_the_death_of_one_control_process_is_absorbed(grounds: Grounds) -> None:
    await grounds.hang(*CAMERAS)
    for worker, control in (("worker-a", "control-a"), ("worker-b", "control-b")):
        await grounds.worker(worker, control)
    before = await grounds.until_active(*CAMERAS)
    await grounds.more_looks(*CAMERAS)
    grounds.kill("control-a")
    grounds.nets["worker-a"].aim(grounds.ports["control-b"])
    watch = Stopwatch()
    await grounds.more_looks(*CAMERAS)
    watch.say("one of two processes killed until every camera had two more looks")
    await _everything_is_where_it_was(grounds, before)


# Clocks ----------------------------------------------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize("hours", [1, -1])
async def test_wall_clocks_that_jump_by_an_hour_move_nothing(
    db_kind: str, db_url: str, tmp_path: Path, hours: int
) -> None:
    """Of the server and of one of the workers; the other one's stays."""
    clocks = WallClocks(tmp_path)
    made = Grounds(db_kind, db_url, tmp_path, **LONG)
    made.env = {name: clocks.env("odd") for name in ("server", "worker-a")}
    async with made as grounds:
        await grounds.hang(*CAMERAS)
        for worker in ("worker-a", "worker-b"):
            await grounds.worker(worker)
        before = await grounds.until_active(*CAMERAS)
        await grounds.more_looks(*CAMERAS)
        clocks.jump("odd", hours * 3600)
        await grounds.more_looks(*CAMERAS, count=3)
        # A worker that comes with a clock that is wrong from the beginning finds its leases as they were.
        grounds.kill("worker-a")
        grounds.start("worker-a")
        await grounds.more_looks(*CAMERAS, count=3)
        after = await grounds.until_active(*CAMERAS)
        assert _places(after) == _places(before)
        assert await grounds.generations() == dict.fromkeys(CAMERAS, 1)
        records = await grounds.judged()
    times = [row["captured_at"] for row in records.frames]
    assert max(times) - min(times) < 1800 * 1000, "a look was stamped by the clock that jumped"
    assert not any(row["late"] for row in records.frames)
