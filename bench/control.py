"""What the control plane costs: deciding who gets which camera, renewing leases, and starting many cameras at once.

    make bench-control              2,000 workers of 10 cameras each, a storm of 2,000 cameras
    QUICK=1 make bench-control      a quarter of both; aims in CPU are a quarter, too
    BENCH_ARGS=storm make bench-control                     one part of it: decide, renew or storm

Deciding is a pure function: CPU seconds of one process; the aim is 2 s for 100,000 cameras and 10,000 workers. For
the rest control is a process of its own on PostgreSQL (the storm on SQLite, too), and simulated workers speak to it
over sockets on loopback from a process of theirs. `ratio` is the aim over what it took. The bare server is the limit
of a socket: the same WebSocket library sends each message back, reads nothing and has no database.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench import _control_decide
from bench._control_sockets import CAMERAS, Renewing, Storm, renew_bare, renew_ours, storm
from bench._databases import Database, database
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say

FULL_WORKERS, FULL_STORM = 2_000, 2_000
PARTS = ("decide", "renew", "storm")
SHARE = 0.25 if QUICK else 1.0
WORKERS, STORM = int(FULL_WORKERS * SHARE), int(FULL_STORM * SHARE)
# A whole round of heartbeats at least.
MEASURE_SEC = 10.0 if QUICK else 60.0
FLOOD_SEC = 2.0 if QUICK else 15.0
BARE_SEC = 2.0 if QUICK else 20.0
STORMS = 1 if QUICK else 3
AIM_CORES = 1.0 * SHARE
AIM_STORM_SEC = 10.0
BARE = "a bare echo"


def renewing_rows(ours: Renewing, bare: Renewing) -> list[Row]:
    scene = f"{WORKERS:,} workers of {CAMERAS} cameras every 10 s"
    steady, flood = ours.steady, ours.flood
    return [
        less_is_better(f"{scene}, control", steady.cpu.client, AIM_CORES, "aim", "cores", aim=1.0),
        less_is_better(f"{scene}, with PostgreSQL", steady.cpu.total, AIM_CORES, "aim", "cores", aim=1.0),
        figure(f"{scene}, PostgreSQL", steady.cpu.server, "cores"),
        less_is_better(
            "CPU of control a heartbeat", steady.cpu_ms_a_heartbeat, bare.steady.cpu_ms_a_heartbeat, BARE, "ms"
        ),
        figure(f"{scene}, messages", steady.messages_per_sec, "1/s"),
        figure(f"{scene}, leases renewed", steady.leases_per_sec, "1/s"),
        figure("leases held by a core of control, at that rate", steady.leases_per_sec * 10 / steady.cpu.client, ""),
        figure("renewal, round trip p50", steady.p50_ms, "ms"),
        figure("renewal, round trip p99", steady.p99_ms, "ms"),
        more_is_better(
            "as fast as it goes, messages", flood.messages_per_sec, bare.flood.messages_per_sec, BARE, "1/s"
        ),
        figure("as fast as it goes, leases renewed", flood.leases_per_sec, "1/s"),
        figure("as fast as it goes, leases held by a core", flood.leases_per_sec * 10 / flood.cpu.client, ""),
        figure("as fast as it goes, control", flood.cpu.client, "cores"),
        figure("as fast as it goes, PostgreSQL", flood.cpu.server, "cores"),
        less_is_better("memory a worker", ours.memory_kb_a_worker, bare.memory_kb_a_worker, BARE, "kB"),
        figure("memory of control", steady.memory_mb, "MB"),
        figure(f"{WORKERS:,} workers connect and keep their leases", ours.connect_sec, "s"),
        figure("CPU of control a connect", ours.connect_cpu.client * 1000 / WORKERS, "ms"),
    ]


def storm_rows(database: str, storms: list[Storm]) -> list[Row]:
    best = min(storms, key=lambda one: one.active_sec)
    say(f"storms on {database}: " + ", ".join(f"{one.active_sec:.1f} s" for one in storms))
    name = f"storm of {STORM:,} cameras on {database}"
    rows = [
        less_is_better(f"{name}, all going", best.active_sec, AIM_STORM_SEC, "aim", "s", aim=1.0),
        figure(f"{name}, all assigned", best.assigned_sec, "s"),
        figure(f"{name}, all acknowledged", best.acknowledged_sec, "s"),
        figure(f"{name}, control", best.cpu.client, "s CPU"),
    ]
    return rows if database == "SQLite" else [*rows, figure(f"{name}, {database}", best.cpu.server, "s CPU")]


def new_folder(base: Database, name: str) -> Path:
    folder = base.folder / name
    folder.mkdir()
    return folder


async def renewing() -> list[Row]:
    with database("PostgreSQL") as base:
        ours = await renew_ours(base, new_folder(base, "ours"), WORKERS, MEASURE_SEC, FLOOD_SEC)
        bare = await renew_bare(new_folder(base, "bare"), WORKERS, BARE_SEC, FLOOD_SEC)
    return renewing_rows(ours, bare)


async def storming() -> list[Row]:
    rows: list[Row] = []
    for name in ("PostgreSQL", "SQLite"):
        with database(name) as base:
            names = [f"storm_{number}" for number in range(STORMS)]
            storms = [await storm(base, new_folder(base, one), one, STORM) for one in names]
        rows += storm_rows(name, storms)
    return rows


def measured(parts: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    if "decide" in parts:
        rows += _control_decide.measured()
    if "renew" in parts:
        rows += uvloop.run(renewing())
    if "storm" in parts:
        rows += uvloop.run(storming())
    return rows


def main() -> None:
    parts = sys.argv[1:] or PARTS
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    report("control", measured(parts))


if __name__ == "__main__":
    main()
