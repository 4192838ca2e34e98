"""Kill -9 under load, on each database: nothing acknowledged is lost or doubled.

The seed is printed; CHAOS_SEED repeats a run. `make soak` does the same for longer.
"""

import os
import random
from itertools import islice
from pathlib import Path

import pytest

from tests.chaos.house import House
from tests.chaos.plan import TARGETS, rounds, rounds_of_each_kind
from tests.chaos.storm import Storm
from tests.rig.databases import DatabaseServer
from tests.rig.effort import times


@pytest.mark.timeout(900)
async def test_no_acknowledged_look_job_or_event_is_lost_or_doubled(
    db_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: DatabaseServer | None = None
    if db_kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'server' / 'camserver.db'}"
    else:
        server = request.getfixturevalue(f"durable_{db_kind}")
        server.create("chaos")
        url = server.url("chaos")
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"{db_kind}: CHAOS_SEED={seed}")
    count = times(rounds_of_each_kind(db_kind), 40)
    async with House(db_kind, url, tmp_path, server) as house:
        storm = Storm(house, print)
        await storm.rage(islice(rounds(db_kind, seed), count))
        await storm.calm()
        report = await storm.judge()
    print(report.summary())
    assert not report.violations, f"seed {seed}:\n" + "\n".join(report.violations)
    # The storm was one: everything was killed, leases moved, and there was something to lose.
    assert set(report.kills) == set(TARGETS[db_kind])
    assert report.takeovers
    assert report.jobs
    assert report.events
