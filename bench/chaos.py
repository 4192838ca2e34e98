"""A whole fleet under faults: two sites, three workers in network namespaces, control, dispatcher and analyzer twice.

    make chaos                                    30 minutes, half of them on each database
    QUICK=1 make chaos                            about two minutes
    make chaos BENCH_ARGS="--seconds 600 --database mariadb --seed 7"

Processes are killed, frozen and restarted, links cut and slow, the database is killed and lost, the disk of objects
fills up, wall clocks jump by an hour or by forty days, analyzers lie and forget: two troubles at a time, first a
script with every kind, then by chance. The seed is printed and repeats a run. Afterwards everything heals, and a
checker reads the rows, the objects, the workers' own account of what was acknowledged, and the logs: it ends with
exit code 1 when anything acknowledged was lost or doubled, owners interleaved, a row points at nothing, a job was
lost, a camera was not seen for too long, or (from five minutes on) anything grew that should be flat. Needs root,
for namespaces and a small disk. The folder with all logs is kept when something is wrong.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench._chaos_watch import FleetWatch
from bench._report import QUICK, say
from bench._soak_watch import JUDGED_FROM_SEC
from tests.chaos.fleet import DATABASE_NAME, DISK_BYTES, Fleet
from tests.chaos.suffering import Suffering, Verdict
from tests.chaos.troubles import WORKERS, troubles
from tests.rig.databases import DatabaseServer, mariadb_server, postgres_server
from tests.rig.namespaces import Machines, ip_program, machines
from tests.rig.small_disk import mounted_disk

SERVERS = {"postgres": postgres_server, "mariadb": mariadb_server}
SECONDS = 120 if QUICK else 1800
Line = tuple[str, str]


def main() -> None:
    asked = _arguments()
    if reason := why_not():
        say(f"error: {reason}")
        sys.exit(2)
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    kinds = list(SERVERS) if asked.database is None else [asked.database]
    failed = fleet(kinds, seed, asked.seconds)
    say(f"chaos: {'FAILED' if failed else 'nothing was lost, doubled or torn'} (seed {seed})")
    sys.exit(1 if failed else 0)


def why_not() -> str | None:
    """Why it can't be run here."""
    if os.geteuid() != 0:
        return "network namespaces and a small disk can be made by root only"
    return None if ip_program() else "network namespaces need the package iproute2"


def fleet(kinds: list[str], seed: int, seconds: float) -> bool:
    """Whether it failed."""
    say(f"chaos: a fleet on {', '.join(kinds)}, {seconds} s, seed {seed}")
    return any([_run(kind, seed, seconds / len(kinds)) for kind in kinds])


def _run(kind: str, seed: int, seconds: float) -> bool:
    """One fleet in a folder of its own, which stays when something was found; whether it was."""
    folder = Path(tempfile.mkdtemp(prefix=f"camserver-chaos-{kind}-"))
    with ExitStack() as stack:
        server: DatabaseServer = stack.enter_context(SERVERS[kind](durable=True))
        server.create(DATABASE_NAME)
        net = stack.enter_context(machines(len(WORKERS)))
        disk = stack.enter_context(mounted_disk(DISK_BYTES))
        verdict, watched = asyncio.run(_suffer(folder, server, net, disk, seed, seconds))
    _tell(kind, verdict, watched)
    if verdict.violations:
        say(f"{kind}: logs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return bool(verdict.violations)


async def _suffer(
    folder: Path, server: DatabaseServer, net: Machines, disk: Path, seed: int, seconds: float
) -> tuple[Verdict, list[Line]]:
    suffering: Suffering | None = None
    watch: FleetWatch | None = None
    try:
        async with Fleet(folder, server, net, disk) as made:
            suffering, watch = Suffering(made, say), FleetWatch(made)
            watching = asyncio.create_task(watch.run())
            try:
                await suffering.rage(troubles(seed), seconds)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await suffering.calm()
            verdict = await suffering.judge()
            if seconds >= JUDGED_FROM_SEC:
                verdict.violations += watch.growth()
            return verdict, watch.table()
    except (AssertionError, TimeoutError, ExceptionGroup) as error:
        # A process that ended by itself, or progress that never came.
        verdict = Verdict() if suffering is None else suffering.verdict
        verdict.violations += [str(one) for one in _leaves(error)]
        return verdict, [] if watch is None else watch.table()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _tell(kind: str, verdict: Verdict, watched: list[Line]) -> None:
    lines: list[Line] = [
        ("troubles", ", ".join(f"{name} {count}" for name, count in sorted(verdict.troubles.items()))),
        ("looks acknowledged", f"{verdict.acknowledged}"),
        ("frames", f"{verdict.frames}, {verdict.late} of them late; {verdict.lost} looks in flight lost"),
        ("jobs, events, changes", f"{verdict.jobs}, {verdict.events}, {verdict.changes}"),
        ("leases", f"{verdict.leases}"),
        ("restarts for want of a database", f"{verdict.came_back}"),
        *((f"longest gap at {site}", f"{gap / 1000:.1f} s") for site, gap in verdict.gap_max_ms.items()),
        *watched,
        ("violations", f"{len(verdict.violations)}"),
    ]
    width = max(len(name) for name, _ in lines)
    say(f"\n{kind}")
    for name, value in lines:
        say(f"  {name:<{width}}  {value}")
    for violation in verdict.violations:
        say(f"  VIOLATION {violation}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help=f"of trouble, over all databases (default {SECONDS})"
    )
    parser.add_argument("--database", choices=list(SERVERS), help="only this one (default: both in turn)")
    parser.add_argument("--seed", type=int, help="repeats what happened (default: a new one)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
