"""Deciding which worker gets which camera, a pure function: CPU seconds of one process, the best of several runs."""

import time
from dataclasses import replace

from bench._report import QUICK, Row, figure, less_is_better, say
from camserver.domain.assignment import decide
from camserver.domain.assignment_styles import PACK
from camserver.domain.assignment_types import (
    NO_LABELS,
    AssignmentPolicy,
    CameraNeed,
    Kind,
    Load,
    Snapshot,
    WorkerOffer,
)

WORKERS, CAMERAS = 10_000, 100_000
SLOTS = 12
AIM_CPU_SEC = 2.0
RUNS = 1 if QUICK else 3
NOW_MS = 1_800_000_000_000
GPU = frozenset({("gpu", "yes")})


def scene(sites: int) -> Snapshot:
    """Workers and cameras spread over so many sites; every third worker has a GPU, some cameras need one."""
    workers = tuple(
        WorkerOffer(
            key, 1, key % sites, SLOTS, 0, Load(4, 0, 8e9), labels=GPU if key // sites % 3 == 0 else NO_LABELS
        )
        for key in range(WORKERS)
    )
    cameras = tuple(
        CameraNeed(
            key, 1, key % sites, 0, labels=GPU if key // sites % 10 == 0 else NO_LABELS, load=Load(0.05, 0, 3e7)
        )
        for key in range(CAMERAS)
    )
    return Snapshot(NOW_MS, workers, cameras)


def settled(snapshot: Snapshot) -> Snapshot:
    """The same after the plan was carried out: everybody is held."""
    holders = {one.camera_key: one.worker_key for one in decide(snapshot, AssignmentPolicy()).decisions}
    held = tuple(
        replace(need, holder_key=holders[need.camera_key], held_since=0, is_active=True) for need in snapshot.cameras
    )
    used: dict[int | None, int] = {}
    for key in holders.values():
        used[key] = used.get(key, 0) + 1
    workers = tuple(
        replace(offer, used=(count := used.get(offer.worker_key, 0)), load=Load(0.05 * count, 0, 3e7 * count))
        for offer in snapshot.workers
    )
    return replace(snapshot, cameras=held, workers=workers)


def cpu_sec(snapshot: Snapshot, packed: bool = False) -> tuple[float, int]:
    """The best of the runs, and how many cameras got a worker."""
    styles = {offer.site: PACK for offer in snapshot.workers} if packed else {}
    best, taken = float("inf"), 0
    for _ in range(RUNS):
        begin = time.process_time()
        plan = decide(snapshot, AssignmentPolicy(), styles)
        best = min(best, time.process_time() - begin)
        taken = len(plan.of_kind(Kind.TAKE))
    return best, taken


def measured() -> list[Row]:
    rows: list[Row] = []
    many, one = scene(1_000), scene(1)
    for name, snapshot, packed in (
        ("assign, 1,000 sites", many, False),
        ("assign, one site", one, False),
        ("assign, one site, packed", one, True),
        ("all held, one site", settled(one), False),
    ):
        used, taken = cpu_sec(snapshot, packed)
        say(f"{name}: {taken:,} of {CAMERAS:,} cameras given to {WORKERS:,} workers")
        rows.append(less_is_better(name, used, AIM_CPU_SEC, "aim", "s CPU", aim=1.0))
    rows.append(figure("cameras per CPU second", CAMERAS / rows[0].ours, "1/s"))
    return rows
