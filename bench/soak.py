"""The whole product under faults for a long time, in five scenes.

    make soak                                    85 minutes
    QUICK=1 make soak                            about three minutes
    SOAK_SEC=7200 make soak BENCH_ARGS="--scene cameras"
    make soak BENCH_ARGS="--scene storm --seconds 3600 --database postgres --seed 7"

*storm* is the crash test: processes are killed, on each database in turn (ten minutes). *cameras* is 50 simulated
RTSP cameras, some of which misbehave at any moment, on SQLite (30 minutes; SOAK_SEC says otherwise). *viewers* opens
and closes live views, some thousands of them (10 minutes). *days* is a server and an enrolled worker whose clocks go
1500 times faster, for five days (five minutes): retention, certificates, ends of everything. *fleet* is `make chaos`:
two sites, three workers, two of each service, on PostgreSQL and MariaDB (30 minutes; needs root). The time is that of
the scene; starting, healing and checking come on top. Nothing is measured, but what should stay flat must: memory,
descriptors, threads, rows. It ends with exit code 1 when anything acknowledged was lost or doubled, when owners
interleaved, when the feed has a hole, or when something grew or was left; the folder with all logs (and the SQLite
file) is kept then.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench._report import QUICK, say
from bench._soak_cameras import CamerasReport, CamerasSoak
from bench._soak_days import DaysReport, DaysSoak
from bench._soak_viewers import ViewersReport, ViewersSoak
from bench.chaos import fleet, why_not
from tests.chaos.house import House
from tests.chaos.plan import TARGETS, Round, rounds
from tests.chaos.storm import Report, Storm
from tests.rig.databases import DatabaseServer, mariadb_server, postgres_server

SECONDS = 25 if QUICK else 600
CAMERAS_SEC = int(os.environ.get("SOAK_SEC", "40" if QUICK else "1800"))
VIEWERS_SEC = 20 if QUICK else 600
FLEET_SEC = 40 if QUICK else 1800
DAYS_SEC = 30 if QUICK else 300
CAMERAS = 50
KINDS = ["sqlite"] if QUICK else list(TARGETS)
# However fast a machine is, logs and tables stay within what is read at the end.
ROUNDS_MAX = 2_000
SERVERS = {"postgres": postgres_server, "mariadb": mariadb_server}


def main() -> None:
    asked = _arguments()
    seed = random.randrange(10**6) if asked.seed is None else asked.seed
    failed = False
    if asked.scene in ("storm", "all"):
        failed |= storm(KINDS if asked.database is None else [asked.database], seed, asked.seconds or SECONDS)
    if asked.scene in ("cameras", "all"):
        failed |= cameras(asked.cameras, seed, asked.seconds or CAMERAS_SEC)
    if asked.scene in ("viewers", "all"):
        failed |= viewers(seed, asked.seconds or VIEWERS_SEC)
    if asked.scene in ("days", "all"):
        failed |= days(asked.seconds or DAYS_SEC)
    if asked.scene in ("fleet", "all"):
        failed |= _fleet(asked, seed)
    say(f"soak: {'FAILED' if failed else 'nothing was lost, doubled or torn'} (seed {seed})")
    sys.exit(1 if failed else 0)


def storm(kinds: list[str], seed: int, seconds: float) -> bool:
    """Whether it failed."""
    say(f"soak: storm, {seconds} s over {', '.join(kinds)}, seed {seed}")
    reports = {kind: run(kind, seed, seconds / len(kinds)) for kind in kinds}
    say("")
    return any([_told(kind, report) for kind, report in reports.items()])


def cameras(count: int, seed: int, seconds: float) -> bool:
    """Whether it failed."""
    say(f"soak: {count} cameras, {seconds} s, seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="camserver-soak-cameras-"))
    report = asyncio.run(CamerasSoak(folder, count, seconds, seed, say).run())
    if report.violations:
        say(f"cameras: logs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return _told("cameras", report)


def viewers(seed: int, seconds: float) -> bool:
    """Whether it failed."""
    say(f"soak: viewers, {seconds} s, seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="camserver-soak-viewers-"))
    report = asyncio.run(ViewersSoak(folder, seconds, seed, say).run())
    if report.violations:
        say(f"viewers: logs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return _told("viewers", report)


def days(seconds: float) -> bool:
    """Whether it failed."""
    say(f"soak: days, {seconds} s")
    folder = Path(tempfile.mkdtemp(prefix="camserver-soak-days-"))
    report = asyncio.run(DaysSoak(folder, seconds, say).run())
    if report.violations:
        say(f"days: logs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return _told("days", report)


def _fleet(asked: argparse.Namespace, seed: int) -> bool:
    """Whether it failed."""
    if reason := why_not():
        say(f"fleet: NOT RUN, {reason}")
        return bool(asked.scene == "fleet")
    usual = ["postgres"] if QUICK else list(SERVERS)
    return fleet(usual if asked.database is None else [asked.database], seed, asked.seconds or FLEET_SEC)


def _told(name: str, report: Report | CamerasReport | ViewersReport | DaysReport) -> bool:
    """Says what happened; whether anything is wrong."""
    say(f"{name}: {report.summary()}")
    for violation in report.violations:
        say(f"  VIOLATION {violation}")
    return bool(report.violations)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scene", choices=("storm", "cameras", "viewers", "days", "fleet", "all"), default="all", help="what to play"
    )
    usual = f"{SECONDS}, {CAMERAS_SEC}, {VIEWERS_SEC}, {DAYS_SEC} and {FLEET_SEC}"
    parser.add_argument("--seconds", type=int, help=f"how long a scene takes (default {usual})")
    parser.add_argument("--cameras", type=int, default=CAMERAS, help=f"how many cameras (default {CAMERAS})")
    parser.add_argument("--database", choices=list(TARGETS), help="of storm and fleet, only this one")
    parser.add_argument("--seed", type=int, help="repeats what happened (default: a new one)")
    return parser.parse_args()


def run(kind: str, seed: int, seconds: float) -> Report:
    """One storm in a folder of its own, which stays when something was found."""
    folder = Path(tempfile.mkdtemp(prefix=f"camserver-soak-{kind}-"))
    with ExitStack() as stack:
        server: DatabaseServer | None = None
        url = f"sqlite:///{folder / 'server' / 'camserver.db'}"
        if kind in SERVERS:
            server = stack.enter_context(SERVERS[kind](durable=True))
            server.create("soak")
            url = server.url("soak")
        report = asyncio.run(_storm(kind, url, folder, server, until(rounds(kind, seed), seconds)))
    if report.violations:
        say(f"{kind}: logs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return report


async def _storm(
    kind: str, url: str, folder: Path, server: DatabaseServer | None, planned: Iterator[Round]
) -> Report:
    storm: Storm | None = None
    try:
        async with House(kind, url, folder, server) as house:
            storm = Storm(house, say)
            await storm.rage(planned)
            await storm.calm()
            return await storm.judge()
    except (AssertionError, TimeoutError) as error:
        # A process that ended by itself, or progress that never came.
        report = Report() if storm is None else storm.report
        report.violations.append(str(error))
        return report


def until(planned: Iterator[Round], seconds: float) -> Iterator[Round]:
    """The rounds that begin within so many seconds, the first in any case."""
    deadline = time.monotonic() + seconds
    for count, one in enumerate(planned):
        if count and (time.monotonic() > deadline or count >= ROUNDS_MAX):
            return
        yield one


if __name__ == "__main__":
    main()
