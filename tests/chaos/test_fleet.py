"""A fleet's troubles are a plan that can be repeated; with TEST_THOROUGH=1 a fleet suffers them (`make chaos`)."""

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.chaos.fleet import DATABASE_NAME, DISK_BYTES, Fleet
from tests.chaos.suffering import Suffering
from tests.chaos.troubles import ANALYZERS, LASTS, SCRIPT, SERVICES, TARGETS, WORKERS, Kind, troubles
from tests.rig.databases import DatabaseServer
from tests.rig.effort import THOROUGH
from tests.rig.namespaces import Machines, machines, need_namespaces
from tests.rig.small_disk import small_disk

SECONDS = 90.0


def test_a_seed_repeats_its_troubles() -> None:
    assert list(islice(troubles(7), 200)) == list(islice(troubles(7), 200))
    assert list(islice(troubles(7), 200)) != list(islice(troubles(8), 200))


def test_the_script_has_every_kind_and_chance_every_target() -> None:
    assert {kind for kind, _ in SCRIPT} == set(Kind) == set(TARGETS) == set(LASTS)
    planned = list(islice(troubles(3), len(SCRIPT) + 2000))
    assert [(one.kind, one.target) for one in planned[: len(SCRIPT)]] == list(SCRIPT)
    for kind, targets in TARGETS.items():
        assert {one.target for one in planned if one.kind is kind} == set(targets)
    assert {one.target for one in planned} >= {*WORKERS, *SERVICES, *ANALYZERS}
    assert all(LASTS[one.kind][0] <= one.seconds <= LASTS[one.kind][1] for one in planned)


def test_of_each_group_somebody_is_left() -> None:
    """Troubles of one group take turns, so two workers, or both dispatchers, are never away together."""
    groups = {one.target: one.group for one in islice(troubles(5), 500) if one.kind is Kind.KILL}
    assert {groups[name] for name in WORKERS} == {"worker"}
    assert groups["control-a"] == groups["control-b"] == "control"


@pytest.fixture
def joined() -> Iterator[Machines]:
    need_namespaces()
    with machines(len(WORKERS)) as made:
        yield made


@pytest.mark.skipif(not THOROUGH, reason="takes minutes: TEST_THOROUGH=1, or make chaos")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("db_kind", ["postgres", "mariadb"])
async def test_nothing_is_lost_in_a_fleet(
    db_kind: str, request: pytest.FixtureRequest, joined: Machines, tmp_path: Path
) -> None:
    server: DatabaseServer = request.getfixturevalue(f"durable_{db_kind}")
    server.create(DATABASE_NAME)
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"{db_kind}: CHAOS_SEED={seed}")
    with small_disk(DISK_BYTES) as disk:
        async with Fleet(tmp_path, server, joined, disk) as fleet:
            suffering = Suffering(fleet, print)
            await suffering.rage(troubles(seed), SECONDS)
            await suffering.calm()
            verdict = await suffering.judge()
    assert not verdict.violations, f"seed {seed}:\n" + "\n".join(verdict.violations)
    assert verdict.leases > len(fleet.cameras)
    assert verdict.jobs
