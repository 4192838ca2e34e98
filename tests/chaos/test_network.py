"""Workers on machines of their own (network namespaces) whose links are cut while processes are killed and frozen.

As owner, generations never interleave; nothing acknowledged is lost; the gap between two looks is bounded; and no
secret is in anything that the run leaves behind. The seed is printed; CHAOS_SEED repeats a run.
"""

import base64
import json
import os
import random
import resource
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from camserver.config.secret_files import SECRET_FILES
from tests.chaos.records import longest_gaps
from tests.e2e.grounds import CAMERAS, Grounds
from tests.rig.effort import times
from tests.rig.namespaces import Machines, Namespace, machines, need_namespaces, reach
from tests.rig.ports import LOOPBACK, port_of
from tests.rig.simulated import PASSWORD

WORKERS = ("worker-a", "worker-b", "worker-c")
WRONG_PASSWORD = "Tr0ub4dor&nobody's-camera"
LOCKED = "locked"  # a camera with that password
# A turn of everything.
ROUNDS = times(5, 40)
# What a lease, its reclaiming and a new start take is below half a minute; the rest is for slow machines.
GAP_MAX_MS = 180_000


class Net:
    """The workers' machines, and what happens to them."""

    def __init__(self, grounds: Grounds, places: dict[str, Namespace], seed: int) -> None:
        self.grounds = grounds
        self.places = places
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()

    def plan(self) -> Iterator[str]:
        kinds = ["flap", "cut", "freeze", "kill", "control"]
        while True:
            self.chance.shuffle(kinds)
            yield from kinds

    async def suffer(self, kind: str) -> None:
        """One trouble from beginning to end. Of the workers, one at most is in trouble at a time."""
        grounds = self.grounds
        worker = self.chance.choice(self._holders(await grounds.leases()))
        print(f"{kind}: {worker}")
        if kind == "flap":
            self.places[worker].cut()
            await self._others_look(worker)
            self.places[worker].join()
        elif kind == "cut":
            self.places[worker].cut()
            await self._emptied(worker)
            self.places[worker].join()
        elif kind == "freeze":
            grounds.freeze(worker)
            await self._emptied(worker)
            grounds.thaw(worker)
        elif kind == "kill":
            # As after a crash that leaves a core file, where one is left.
            grounds.kill(worker, signal.SIGABRT)
            await self._others_look(worker)
            grounds.start(worker)
        else:
            grounds.kill("server")
            grounds.start("server")
            await grounds.until_ready("server")
        self.done[kind] += 1
        await grounds.until_active(*CAMERAS)
        await grounds.more_looks(*CAMERAS, count=1)

    @staticmethod
    def _holders(leases: dict[str, dict[str, object]]) -> list[str]:
        return sorted({str(lease["worker_id"]) for lease in leases.values() if lease["worker_id"]})

    async def _emptied(self, worker: str) -> None:
        """Until others run the cameras that it had."""
        await self.grounds.until_lease(
            lambda lease: lease["state"] == "ACTIVE" and lease["worker_id"] not in (None, worker),
            f"others run the cameras of {worker}",
            CAMERAS,
        )

    async def _others_look(self, worker: str) -> None:
        leases = await self.grounds.leases()
        others = [name for name in CAMERAS if leases[name]["worker_id"] != worker]
        if others:
            await self.grounds.more_looks(*others, count=1)


@pytest.fixture
def core_files() -> Iterator[None]:
    """As on a machine where programs that crash leave their memory behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.fixture
def joined() -> Iterator[Machines]:
    need_namespaces()
    with machines(len(WORKERS)) as made:
        yield made


@pytest.fixture
async def net(joined: Machines, core_files: None, tmp_path: Path) -> AsyncIterator[Net]:
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"CHAOS_SEED={seed}")
    made = Grounds("sqlite", f"sqlite:///{tmp_path / 'server' / 'camserver.db'}", tmp_path)
    made.camera_socket = socket.create_server((joined.camera_address, 0))
    assert port_of(made.camera_socket)
    async with made as grounds:
        places = dict(zip(WORKERS, joined.namespaces, strict=True))
        for worker, place in places.items():
            near = await reach(grounds.launcher, place, grounds.ports["server"])
            grounds.within[worker], grounds.server_urls[worker] = place.within, f"http://{LOOPBACK}:{near}"
        await grounds.hang(*CAMERAS)
        await grounds.hang(LOCKED, password=WRONG_PASSWORD, at=CAMERAS[0])
        for worker in WORKERS:
            await grounds.worker(worker)
        await grounds.until_active(*CAMERAS)
        assert {core_max(running.pid) for running in grounds.running.values()} == {("0", "0")}
        try:
            yield Net(grounds, places, seed)
        finally:
            grounds.thaw_all()


def core_max(pid: int) -> tuple[str, ...]:
    """How large a core file of a process may be, soft and hard."""
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(tuple(line.split()[4:6]) for line in limits if line.startswith("Max core file size"))


@pytest.mark.timeout(1200)
async def test_workers_behind_links_that_break_own_a_camera_one_at_a_time(net: Net) -> None:
    plan = net.plan()
    for _ in range(ROUNDS):
        await net.suffer(next(plan))
    await net.grounds.until_active(*CAMERAS)
    records = await net.grounds.judged()
    assert set(net.done) == {"flap", "cut", "freeze", "kill", "control"}
    assert len(records.leases) > len(CAMERAS), "no camera ever changed hands"
    gaps = longest_gaps(records)
    print(f"{dict(net.done)}, {len(records.leases)} leases, {len(records.frames)} frames, longest gaps {gaps} ms")
    assert set(gaps) == set(CAMERAS)
    assert max(gaps.values()) <= GAP_MAX_MS
    assert not leaks(net.grounds), "secrets in what the run left behind"


def leaks(grounds: Grounds) -> list[str]:
    """Files below the run's folder in which a secret stands, in the clear or in a usual disguise.

    The folder of secrets itself is left out.
    """
    needles = {form for text in (PASSWORD, WRONG_PASSWORD) for form in disguises(text)}
    for name in SECRET_FILES:
        if (grounds.secrets / name).exists():
            needles |= disguises((grounds.secrets / name).read_text().strip())
    files = [
        path for path in grounds.folder.rglob("*") if path.is_file() and not path.is_relative_to(grounds.secrets)
    ]
    assert len(files) > 20
    found = []
    for path in files:
        data = path.read_bytes()
        found += [str(path.relative_to(grounds.folder)) for needle in needles if needle in data]
    return found


def disguises(text: str) -> set[bytes]:
    forms = {text, quote(text, safe=""), quote(text), json.dumps(text)[1:-1], repr(text)[1:-1]}
    return {form.encode() for form in forms} | {base64.b64encode(text.encode()).rstrip(b"=")}


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    grounds = Grounds("sqlite", "sqlite:///x", tmp_path)
    for number in range(30):
        (tmp_path / f"{number}.log").write_text("nothing")
    assert leaks(grounds) == []
    for number, form in enumerate(sorted(disguises(PASSWORD))):
        (tmp_path / f"{number}.log").write_bytes(b"x" + form + b"y")
    assert len(set(leaks(grounds))) == len(disguises(PASSWORD)) > 2
