"""Many cameras for a long time: server and worker on simulated RTSP cameras, some of which misbehave at any moment.

Afterwards the cameras behave again, and every one must be seen well; everything is put down in order, and the crash
test's checker reads the rows. Memory, descriptors and threads of server and worker are watched all the time.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench._cameras import PASSWORD, USER, name_of
from bench._child import Child
from bench._soak_watch import JUDGED_FROM_SEC, Sample, course, sample
from camserver.base.exits import Exit
from camserver.base.secrets import Secret
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from camserver.store import open_store
from camserver.store.check import check
from camserver.store.tx import Tx
from tests.chaos.checker import Evidence, violations
from tests.chaos.ledger import Ledger
from tests.chaos.records import fetch
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running, Settings

SCENES = ["scene:quiet", "scene:moving", "scene:night"]
INTERVAL_SEC = 5
# Every fifth camera is looked at so rarely that it is opened for each look.
PATROL_EVERY, PATROL_SEC = 5, 20
SAMPLES = 120
SAMPLE_SEC_MIN = 1.0
WELL_TIMEOUT_SEC = 300.0
DRAIN_TIMEOUT_SEC = 120.0
STOPS_MAX = 5
CRASHES_SHOWN_MAX = 20
WORKER = "soak-worker"


@dataclass(slots=True)
class CamerasReport:
    faults: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    failed_looks: int = 0
    events: int = 0
    issues: int = 0
    courses: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def summary(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        courses = "; ".join(f"{name}: {course}" for name, course in self.courses.items())
        return (
            f"{self.looks} looks acknowledged ({self.failed_looks} failed), {self.events} events, "
            f"{self.issues} issues of cameras; faults: {faults}; {courses}; {len(self.violations)} violations"
        )


class CamerasSoak:
    """`run` once."""

    def __init__(self, folder: Path, cameras: int, seconds: float, seed: int, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._cameras = cameras
        self._seconds = seconds
        self._seed = seed
        self._say = say
        self._launcher = Launcher(folder)
        self._ports = {"web": free_port(), "control": free_port()}
        self._ledger = Ledger()
        self._report = CamerasReport()
        self._faults_log = folder / "faults.log"
        self._running: dict[str, Running] = {}
        self._ill: list[str] = []
        self._samples: dict[str, list[Sample]] = {"server": [], "worker": []}

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._folder / 'server' / 'camserver.db'}"

    @property
    def _api(self) -> LocalServer:
        return LocalServer(f"http://{LOOPBACK}:{self._ports['web']}", self._folder / "secrets" / LOCAL_ADMIN_TOKEN)

    async def run(self) -> CamerasReport:
        try:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._launcher.close)
                cameras = await self._open(stack)
                await self._watch()
                await self._make_peace(cameras)
                await self._put_down()
            await self._judge()
        except (AssertionError, RuntimeError, TimeoutError) as error:
            self._report.violations.append(str(error))
        return self._report

    async def _open(self, stack: AsyncExitStack) -> Child:
        analyzer = await RemoteAnalyzer.start(self._launcher, self._folder / "vocabulary.json")
        asked = {"count": self._cameras, "videos": SCENES, "cache": str(self._folder / "videos")}
        cameras = Child("_cameras", {**asked, "faults_seed": self._seed, "faults_log": str(self._faults_log)})
        stack.callback(cameras.close)
        port = int(await asyncio.to_thread(cameras.hear))
        self._start("server", {"analyzer": {"url": analyzer.url}, "store": {"url": self._url}})
        await self._running["server"].until_ready(f"http://{LOOPBACK}:{self._ports['control']}/readyz")
        for number in range(self._cameras):
            name = name_of(number)
            url = f"rtsp://{LOOPBACK}:{port}/{name}"
            await self._api.add_camera(name, name, url, USER, Secret(PASSWORD), **of(number))
        self._start_worker(self._cameras)
        await poll_async(self._all_looked, "a look at every camera", WELL_TIMEOUT_SEC)
        return cameras

    def _start(self, process: str, more: dict[str, dict[str, object]]) -> None:
        settings: Settings = {
            "server": {"data_dir": str(self._folder / process), "secrets_dir": str(self._folder / "secrets")},
            "objects": {"dir": str(self._folder / "objects")},
            "web": {"port": self._ports["web"]},
            "control": {"port": self._ports["control"]},
            # A password that was refused is tried again within the run.
            "leases": {"auth_retry_sec": 5, "auth_retry_cap_sec": 30, "camera_retry_cap_sec": 10},
            "jobs": {"max_attempt": 100, "camera_bound": 100_000},
            "log": {"level": "debug", "format": "json"},
            **more,
        }
        self._running[process] = self._launcher.camserver(process, settings=settings)

    def _start_worker(self, slots: int) -> None:
        url = f"http://{LOOPBACK}:{self._ports['control']}"
        worker = {"name": WORKER, "server_url": url, "slots": slots, "allow_loopback": True}
        self._start("worker", {"worker": worker})
        self._ledger.follow(WORKER, self._running["worker"].stderr_path)

    async def _all_looked(self) -> bool:
        self._must_run()
        self._ledger.catch_up()
        return len(self._ledger.holders) == self._cameras

    async def _watch(self) -> None:
        """For as long as it was asked, taking samples."""
        end_sec = time.monotonic() + self._seconds
        pause_sec = max(self._seconds / SAMPLES, SAMPLE_SEC_MIN)
        while time.monotonic() < end_sec:
            await asyncio.sleep(pause_sec)
            self._must_run()
            for name, samples in self._samples.items():
                samples.append(await asyncio.to_thread(sample, self._running[name].pid))
            if len(self._samples["server"]) % 10 == 0:
                self._tell()

    def _tell(self) -> None:
        looks = self._ledger.catch_up()
        parts = [
            f"{name} {samples[-1].memory_bytes / 1e6:.0f} MB, {samples[-1].descriptors} descriptors, "
            f"{samples[-1].threads} threads"
            for name, samples in self._samples.items()
        ]
        self._say(f"cameras: {looks} looks; {'; '.join(parts)}")

    def _must_run(self) -> None:
        for running in self._running.values():
            if running.exit_code is not None:
                raise AssertionError(f"{running.name} ended by itself:\n{running.output_tail()}")

    async def _make_peace(self, cameras: Child) -> None:
        """No more faults: then every camera is seen well, however it was before."""
        cameras.tell()
        self._say("cameras: no more faults")
        await poll_async(self._all_well, "every camera is seen well after the faults", WELL_TIMEOUT_SEC)
        for line in self._faults_log.read_text().splitlines():
            self._report.faults[json.loads(line)["fault"]] += 1

    async def _all_well(self) -> bool:
        self._must_run()
        await asyncio.sleep(SAMPLE_SEC_MIN)
        self._ill = [one["camera_id"] for one in await self._api.cameras() if one["health"]["state"] != "up"]
        return not self._ill

    async def _put_down(self) -> None:
        """The worker first, until its spool is empty; then, when every job is done, the server."""
        await self._stop("worker")
        for _ in range(STOPS_MAX):
            if not (left := self._spooled()):
                break
            # With one camera it sends faster than it looks, on however slow a machine.
            self._start_worker(slots=1)
            await poll_async(partial(self._is_sent, left), f"{len(left)} looks are sent", DRAIN_TIMEOUT_SEC)
            await self._stop("worker")
        if left := self._spooled():
            raise AssertionError(f"the worker leaves {sorted(left)} in its spool, however often it is started")
        await poll_async(self._no_unfinished_jobs, "end of every job", DRAIN_TIMEOUT_SEC)
        await self._stop("server")

    async def _stop(self, process: str) -> None:
        running = self._running.pop(process)
        if (code := await running.stop()) != Exit.OK:
            raise AssertionError(f"{running.name} ended with {code} when told to stop:\n{running.output_tail()}")

    def _spooled(self) -> set[str]:
        return {path.name for path in (self._folder / "worker" / "spool" / "looks").glob("*.look")}

    async def _is_sent(self, looks: set[str]) -> bool:
        self._must_run()
        return not looks & self._spooled()

    async def _no_unfinished_jobs(self) -> bool:
        self._must_run()
        status = await self._api.get("/api/system/status")
        return not any(status["unfinished_jobs"].values())

    async def _judge(self) -> None:
        """Compares what was promised with what is there, and how much it took."""
        report = self._report
        store = await open_store(self._url)
        try:
            records = await fetch(store, self._folder / "objects")
            failed = await store.read(_failed_looks)
            findings = await check(store, Secret(self._url))
        finally:
            await store.close()
        self._ledger.catch_up()
        report.looks, report.failed_looks = len(self._ledger.acknowledged), failed
        report.issues = sum(bool(row["subject"]) for row in records.events)
        report.events = len(records.events) - report.issues
        report.violations += violations(Evidence(records, self._ledger.acknowledged))
        report.violations += [f"camserver db check: {finding.message}" for finding in findings]
        report.violations += [f"a look was given up: {line}" for line in self._ledger.given_up]
        report.violations += self._crashes()
        for name, samples in self._samples.items():
            taken = course(samples)
            report.courses[name] = str(taken)
            if self._seconds >= JUDGED_FROM_SEC:
                report.violations += taken.growth(name)

    def _crashes(self) -> list[str]:
        """Errors that nobody expected."""
        found = []
        for path in sorted(self._folder.glob("*.stderr")):
            for text in path.read_text(errors="replace").splitlines():
                if '"exception"' in text:
                    line = json.loads(text)
                    found.append(f"{path.stem} logged {line['event']!r} with {str(line['exception'])[-400:]}")
        return found[:CRASHES_SHOWN_MAX]


async def _failed_looks(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS looks FROM frames WHERE collector_status <> 'ok'")
    assert row is not None
    return int(row["looks"])


def of(number: int) -> dict[str, Any]:
    """How this camera is looked at. Each is a device of its own, whatever address they share."""
    interval_sec = PATROL_SEC if number % PATROL_EVERY == 0 else INTERVAL_SEC
    return {"polling_interval_sec": interval_sec, "device": name_of(number)}
