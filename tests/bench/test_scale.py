"""The simulated fleet of `make bench-scale`, small: what it checks holds, and it would see it if it did not."""

import asyncio
from pathlib import Path

import pytest

from bench._scale_world import VirtualClock, Worker, World
from bench.scale import simulate
from camserver.domain.leases import LeasePolicy
from camserver.wire.worker import Start
from tests.rig.databases import postgres_server
from tests.rig.effort import THOROUGH
from tests.services.worker.build import start_message


def world_of(*names: str) -> tuple[World, list[Worker]]:
    world = World(None, VirtualClock(1_000_000), LeasePolicy(), (), 1)  # type: ignore[arg-type]  # nothing is written
    world.workers = [Worker(name, "site-0", 4, 0) for name in names]
    return world, world.workers


def order(generation: int) -> Start:
    return start_message(generation=generation)


def test_a_camera_that_two_workers_hold_is_seen() -> None:
    world, (first, second) = world_of("first", "second")
    world._hold(first, order(1))
    world._hold(second, order(2))
    assert world.tally.twice == 1
    assert world.problems


def test_a_worker_that_is_cut_off_lets_go_by_its_own_deadline() -> None:
    world, (first, second) = world_of("first", "second")
    world._hold(first, order(1))
    first.is_cut = True
    world.clock.move((world.policy.ttl_sec - world.policy.margin_sec) * 1000)
    world._let_go_of_old()
    world._hold(second, order(2))
    assert world.tally.twice == 0
    assert world.held == 1


def test_a_generation_that_does_not_grow_is_seen() -> None:
    world, (first, second) = world_of("first", "second")
    world._hold(first, order(2))
    world._drop(first, order(2).camera_id)
    world._hold(first, order(2))
    assert world.tally.backwards == 0, "told again what it forgot"
    world._drop(first, order(2).camera_id)
    world._hold(second, order(2))
    assert world.tally.backwards == 1


@pytest.mark.skipif(not THOROUGH, reason="takes a quarter of a minute; TEST_THOROUGH=1 runs it")
def test_a_fleet_of_ten_sites_keeps_every_promise(tmp_path: Path) -> None:
    with postgres_server() as server:
        told, world = asyncio.run(simulate(200, 2, tmp_path, server))
    assert all(one.is_well for one in told), world.problems
