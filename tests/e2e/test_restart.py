"""Restarting the server, or web or dispatcher alone, while they are used: a port stays open, as systemd keeps it, and
nobody is refused; jobs that were under way are done by whoever comes next. And stopping one whose database is silent.
"""

import asyncio
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from camserver.base.exits import Exit
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from camserver.store import Store, Tx, open_store
from tests.e2e.grounds import CAMERAS, Grounds
from tests.e2e.installation import installation
from tests.fakes.analyzer.faults import Fault, FaultKind
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.cutter import Cutter, Way
from tests.rig.effort import THOROUGH
from tests.rig.polling import poll_async, until
from tests.rig.processes import REPOSITORY, Launcher, Settings, toml
from tests.rig.templates import PostgresTemplate

HOLDER = REPOSITORY / "tests" / "rig" / "socket_holder.py"
PATIENCE_SEC = 180.0
SERVERS = ["postgres", "mariadb"] if THOROUGH else ["postgres"]
VISITORS = 4
RESTARTS = 2


class Visitors:
    """People who ask all the time, each request on a connection of its own."""

    def __init__(self, url: str, token_file: Path) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
        self.answered = 0
        self.failed: list[str] = []

    async def ask(self) -> None:
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SEC)
        while True:
            connector = aiohttp.TCPConnector(force_close=True)
            async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=self._headers) as session:
                try:
                    async with session.get(self._url) as answer:
                        await answer.read()
                        if answer.status != 200:
                            self.failed.append(f"HTTP {answer.status}")
                except aiohttp.ClientError as error:
                    self.failed.append(repr(error))
            self.answered += 1


@pytest.mark.parametrize(
    ("service", "db_kind"), [("server", "sqlite"), *(("web", kind) for kind in SERVERS)], indirect=["db_kind"]
)
async def test_nobody_is_refused_while_it_is_restarted(
    launcher: Launcher, tmp_path: Path, service: str, db_url: str
) -> None:
    house = installation(launcher, tmp_path / "data", store={"url": db_url})
    config = tmp_path / "camserver.toml"
    config.write_text(toml(house.settings))
    port = str(house.settings["web"]["port"])
    command = [sys.executable, "-m", "camserver", "--config", str(config), service]
    server = launcher.start("holder", [sys.executable, str(HOLDER), port, "web.port", "--", *command])
    await server.until_ready(f"{house.web_url}/readyz", PATIENCE_SEC)
    visitors = Visitors(f"{house.web_url}/api/cameras", _token_file(tmp_path / "data"))
    asking = [asyncio.create_task(visitors.ask()) for _ in range(VISITORS)]
    try:
        for number in range(1, RESTARTS + 1):
            before = visitors.answered
            await until(lambda before=before: visitors.answered > before + VISITORS, "visitors", PATIENCE_SEC)  # type: ignore[misc]
            server.send(signal.SIGUSR1)

            def came_back(number: int = number) -> bool:
                return server.stdout_path.read_text().count("restarted") == number

            await until(came_back, "the server is started again", PATIENCE_SEC)
            after = visitors.answered
            await until(lambda after=after: visitors.answered > after + VISITORS, "answers again", PATIENCE_SEC)  # type: ignore[misc]
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    assert not visitors.failed
    assert await server.stop() == Exit.OK


def _token_file(data: Path) -> Path:
    (found,) = data.rglob(LOCAL_ADMIN_TOKEN)
    return found


class Workshop(Grounds):
    """Grounds where pictures are analyzed. Locks last longer than anybody waits: only what is given back goes on."""

    analyzer: RemoteAnalyzer

    async def _open(self) -> None:
        self.analyzer = await RemoteAnalyzer.start(self.launcher, self.folder / "analyzer.json")
        await super()._open()

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        settings = super()._settings(name, worker)
        settings["analyzer"] = {"url": self.analyzer.url}
        settings["jobs"] = {"lock_sec": 3600, "renew_every_sec": 60}
        return settings


@pytest.mark.parametrize("db_kind", SERVERS, indirect=True)
async def test_what_a_dispatcher_had_claimed_goes_on_when_it_is_restarted(
    db_kind: str, db_url: str, tmp_path: Path
) -> None:
    async with Workshop(db_kind, db_url, tmp_path, ttl_sec=300) as house:
        store = await open_store(db_url)
        try:
            await _restarted_amid_jobs(house, store)
        finally:
            await store.close()
        await house.stop()


async def _restarted_amid_jobs(house: Workshop, store: Store) -> None:
    await house.hang(*CAMERAS)
    await house.worker("worker-a")
    house.start("dispatcher-a")
    for _ in range(RESTARTS):
        await house.analyzer.forget_requests()
        await house.analyzer.add_fault(Fault.hold())

        async def is_at_work() -> bool:
            # Asked of the analyzer: a running job may have had its answer before the fault.
            house.tend()
            return any(request["fault"] == FaultKind.HOLD for request in await house.analyzer.requests())

        await poll_async(is_at_work, "a job that is being worked on", PATIENCE_SEC)
        await house.stop_one("dispatcher-a")
        left = await store.read(_jobs)
        assert not left.get("running"), "nobody has to wait for a lock to run out"
        assert left.get("queued")
        newest = await store.read(_newest_job)
        await house.analyzer.heal()
        house.start("dispatcher-a")

        async def are_done(newest: int = newest) -> bool:
            house.tend()
            return set(await store.read(_jobs, newest)) == {"done"}

        await poll_async(are_done, "the end of all jobs from before", PATIENCE_SEC)
    assert await store.read(_most_attempts) == 1, "an orderly restart is not the job's fault"


async def _jobs(tx: Tx, newest: int = 2**53) -> dict[str, int]:
    """How many there are of each status, up to this one."""
    rows = await tx.all(
        "SELECT status, count(*) AS found FROM inference_jobs WHERE job_id <= :newest GROUP BY status", newest=newest
    )
    return {row["status"]: int(row["found"]) for row in rows}


async def _newest_job(tx: Tx) -> int:
    row = await tx.one("SELECT max(job_id) AS newest FROM inference_jobs")
    assert row is not None
    return int(row["newest"])


async def _most_attempts(tx: Tx) -> int:
    row = await tx.one("SELECT max(attempt) AS most FROM inference_jobs WHERE status = 'done'")
    assert row is not None
    return int(row["most"])


async def test_a_server_whose_database_does_not_answer_stops_in_order(
    launcher: Launcher, tmp_path: Path, postgres_template: PostgresTemplate
) -> None:
    """A network that is dark says nothing of it: what is under way would be waited for, for a minute."""
    url = urlsplit(postgres_template.fresh())
    async with Cutter(url.port or 0) as net:
        behind = url._replace(netloc=url.netloc.replace(str(url.port), str(net.port))).geturl()
        house = installation(launcher, tmp_path / "data", store={"url": behind})
        server = launcher.camserver("server", settings=house.settings)
        await server.until_ready(f"{house.web_url}/readyz", PATIENCE_SEC)
        before = net.passed_bytes[Way.UP]
        net.hold(Way.DOWN)
        await until(lambda: net.passed_bytes[Way.UP] > before, "the database is asked something")
        assert await server.stop() == Exit.OK
        assert any(line["event"] == "stopped" for line in server.log())
