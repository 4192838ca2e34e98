"""Days in minutes: a server and an enrolled worker whose clocks go many times faster.

What takes days happens while somebody watches: certificates are renewed, pictures and rows pass their time and go,
viewings and sign-ins end, statistics are made. Rows, files and memory must be flat from the second third on.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from cryptography import x509

from bench._soak_watch import JUDGED_FROM_SEC, Sample, course, sample
from camserver.base.exits import Exit
from camserver.base.secrets import Secret
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from camserver.store import open_store
from camserver.store.check import check
from camserver.store.opening import sqlite_reader
from camserver.store.tx import Tx
from tests.chaos import checker
from tests.chaos.checker import Evidence
from tests.chaos.records import fetch
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running
from tests.rig.quick_time import QuickTime

SPEED = 1500.0
DAY_SEC = 86_400
CAMERAS = 3
SAMPLES = 60
PATIENCE_SEC = 120.0
GROWTH_MAX = 0.35  # of rows and files, whose number has a rhythm of hours
ROWS = ("frames", "frame_tags", "events", "event_tags", "inference_jobs", "deliveries", "changes", "hourly_stats",
        "worker_certificates", "modal_leases", "errands", "garbage", "sweep_reports", "camera_leases")  # fmt: skip
# A history that is kept for longer than the run lasts.
GROWING = ("hourly_stats", "sweep_reports", "changes")
PROMISES = (checker.pictures_are_there, checker.leases_do_not_overlap, checker.events_count_their_frames)


@dataclass(slots=True)
class DaysReport:
    days: float = 0.0
    looks: int = 0
    certificates: int = 0
    rows: dict[str, tuple[float, float]] = field(default_factory=dict)
    courses: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def summary(self) -> str:
        rows = ", ".join(f"{name} {one:g} → {other:g}" for name, (one, other) in self.rows.items() if one or other)
        courses = "; ".join(f"{name}: {told}" for name, told in self.courses.items())
        return (
            f"{self.days:.1f} days, {self.looks} looks now, {self.certificates} certificates of the worker; rows by "
            f"thirds: {rows}; {courses}; {len(self.violations)} violations"
        )


class DaysSoak:
    """`run` once."""

    def __init__(self, folder: Path, seconds: float, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._seconds = seconds
        self._say = say
        self._time = QuickTime(folder, SPEED)
        self._launcher = Launcher(folder)
        self._ports = {name: free_port() for name in ("web", "control", "tls")}
        self._running: dict[str, Running] = {}
        self._samples: dict[str, list[Sample]] = {"server": [], "worker": []}
        self._rows: dict[str, list[int]] = {name: [] for name in (*ROWS, "objects")}
        self._serials: set[int] = set()
        self._report = DaysReport()

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._folder / 'server' / 'camserver.db'}"

    @property
    def _web(self) -> str:
        return f"http://{LOOPBACK}:{self._ports['web']}"

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        api = LocalServer(self._web, self._folder / "secrets" / LOCAL_ADMIN_TOKEN)
        return await api._call(method, path, body)

    async def run(self) -> DaysReport:
        try:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._launcher.close)
                await self._open()
                await self._watch()
                await self._look_at_the_end()
                for name in ("worker", "server"):
                    if (code := await self._running[name].stop()) != Exit.OK:
                        raise AssertionError(f"{name} ended with {code}:\n{self._running[name].output_tail()}")
            await self._judge()
        except (AssertionError, RuntimeError, TimeoutError) as error:
            self._report.violations.append(str(error))
        return self._report

    async def _open(self) -> None:
        analyzer = await RemoteAnalyzer.start(self._launcher, self._folder / "vocabulary.json")
        self._start("server", self._server_settings(analyzer.url))
        await self._running["server"].until_ready(f"{self._web}/readyz", PATIENCE_SEC)
        pictures = self._folder / "pictures"
        pictures.mkdir()
        for number, scene in enumerate((0, 1, 1, 0, 0, 0, 4, 0)):
            (pictures / f"{number}.jpg").write_bytes(jpeg(scene=scene, size=(160, 120)))
        for number in range(CAMERAS):
            body = {"camera_id": f"cam_{number}", "name": f"camera {number}", "source": {"url": f"file://{pictures}"}}
            await self._call("POST", "/api/cameras", body)
        token = await self._call(
            "POST", "/api/workers/enrolments", {"site": None, "worker_id": "days", "ttl_sec": None}
        )
        url = f"https://localhost:{self._ports['tls']}"
        settings: dict[str, dict[str, object]] = {
            "server": {"data_dir": str(self._folder / "worker")},
            "worker": {"server_url": url},
            "log": {"level": "info", "format": "json"},
        }
        arguments = ("worker", "enroll", url, "--name", "days", "--token-stdin")
        enrolling = self._launcher.camserver(
            *arguments, settings=settings, env=self._time.env, stdin=f"{token['token']}\n"
        )
        if await enrolling.wait() != Exit.OK:
            raise AssertionError(f"the worker was not enrolled:\n{enrolling.output_tail()}")
        self._start("worker", settings)
        await poll_async(self._has_looked, "the first looks", PATIENCE_SEC)

    def _server_settings(self, analyzer_url: str) -> dict[str, dict[str, object]]:
        return {
            "server": {"data_dir": str(self._folder / "server"), "secrets_dir": str(self._folder / "secrets")},
            "store": {"url": self._url},
            "objects": {"dir": str(self._folder / "objects")},
            "web": {"port": self._ports["web"]},
            "control": {"port": self._ports["control"], "tls_host": LOOPBACK, "tls_port": self._ports["tls"]},
            "analyzer": {"url": analyzer_url},
            "gate": {"rule": "threshold"},
            # Seconds of the real world are minutes here: a lease bears that.
            "leases": {"ttl_sec": 3600, "heartbeat_sec": 300},
            "certificates": {"lifetime_days": 1},
            "retention": {
                **dict.fromkeys(
                    ("frames_days", "detected_days", "quarantine_days", "events_days", "deliveries_days"), 1
                ),
                "quiet_picture_sec": 600,
                "free_min_bytes": 0,
            },
            "log": {"level": "info", "format": "json"},
        }

    def _start(self, name: str, settings: dict[str, dict[str, object]]) -> None:
        arguments = ("worker", "run") if name == "worker" else (name,)
        self._running[name] = self._launcher.camserver(*arguments, settings=settings, env=self._time.env)

    async def _has_looked(self) -> bool:
        cameras = (await self._call("GET", "/api/cameras"))["cameras"]
        return len(cameras) == CAMERAS and all(one["health"]["state"] == "up" for one in cameras)

    async def _watch(self) -> None:
        end_sec = time.monotonic() + self._seconds
        async with sqlite_reader(Secret(self._url), one_moment=False) as reader:
            while time.monotonic() < end_sec:
                await asyncio.sleep(self._seconds / SAMPLES)
                for name, count in (await reader.read(_counts)).items():
                    self._rows[name].append(count)
                await self._look()

    async def _look(self) -> None:
        for name, running in self._running.items():
            if running.exit_code is not None:
                raise AssertionError(f"{name} ended by itself:\n{running.output_tail()}")
            self._samples[name].append(await asyncio.to_thread(sample, running.pid))
        objects = sum(1 for path in (self._folder / "objects").rglob("*") if path.is_file())
        self._rows["objects"].append(objects)
        self._serials.add(_serial(self._folder / "worker" / "identity" / "worker.pem"))
        if len(self._rows["objects"]) % 10 == 0:
            frames = self._rows["frames"][-1]
            self._say(f"days: {self._time.passed_sec / DAY_SEC:.1f} days; {frames} frames, {objects} objects")

    async def _look_at_the_end(self) -> None:
        """Everything is as alive as on the first day."""
        await poll_async(self._has_looked, "every camera is seen after those days", PATIENCE_SEC)
        headers = {"Authorization": f"Bearer {(self._folder / 'secrets' / LOCAL_ADMIN_TOKEN).read_text().strip()}"}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{self._web}/metrics") as answer:
            text = await answer.text()
            if answer.status != 200 or "camserver_" not in text:
                self._report.violations.append(f"/metrics answers {answer.status}")
        self._report.days = self._time.passed_sec / DAY_SEC

    async def _judge(self) -> None:
        report = self._report
        store = await open_store(self._url)
        try:
            records = await fetch(store, self._folder / "objects")
            findings = await check(store, Secret(self._url))
        finally:
            await store.close()
        report.looks, report.certificates = len(records.frames), len(self._serials)
        report.violations += [sentence for promise in PROMISES for sentence in promise(Evidence(records))][:20]
        report.violations += [f"camserver db check: {finding.message}" for finding in findings]
        if report.days > 1 and report.certificates < 2:
            report.violations.append("the worker's certificate was never renewed")
        for name, values in self._rows.items():
            third = len(values) // 3
            one, other = median(values[third : 2 * third]), median(values[-third:])
            report.rows[name] = (one, other)
            if report.days >= 4 and name not in GROWING and other > one * (1 + GROWTH_MAX) + 20:
                report.violations.append(f"{name} grew from {one:g} to {other:g}")
        for name, samples in self._samples.items():
            taken = course(samples)
            report.courses[name] = str(taken)
            if self._seconds >= JUDGED_FROM_SEC:
                report.violations += taken.growth(name)


async def _counts(tx: Tx) -> dict[str, int]:
    found = {}
    for name in ROWS:
        row = await tx.one(f"SELECT count(*) AS n FROM {name}")
        assert row is not None
        found[name] = int(row["n"])
    return found


def _serial(pem: Path) -> int:
    """Of the certificate that the worker has now; 0 while it is being exchanged."""
    text = pem.read_text()
    begin = text.find("-----BEGIN CERTIFICATE-----")
    if begin < 0:
        return 0
    end = text.find("-----END CERTIFICATE-----", begin)
    return x509.load_pem_x509_certificate(text[begin : end + 26].encode()).serial_number
