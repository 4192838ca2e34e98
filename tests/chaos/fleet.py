"""A fleet under test: two sites with three workers on machines of their own (network namespaces), two of control, of
dispatcher and of analyzer, one web, on PostgreSQL or MariaDB; RTSP cameras and cameras of still pictures.

Every worker reaches control over a link that can be cut, through a proxy that can be slow and that leads elsewhere
when a control process dies, as a balancer does. One of control and one dispatcher reach the database over a network
of their own. Objects are on a small disk that can be filled.
"""

import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from camserver.services.simulator.cameras import CameraAsked
from tests.chaos.company import JOBS, PATIENCE_SEC, Company, is_worker
from tests.chaos.feed_reader import FeedReader
from tests.chaos.troubles import ANALYZERS, CONTROLS, REMOTE, SERVICES, SITES, WORKERS
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.cutter import Cutter
from tests.rig.databases import DatabaseServer
from tests.rig.namespaces import Machines, Namespace, reach
from tests.rig.ports import LOOPBACK
from tests.rig.processes import Running, Settings
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.small_disk import fill
from tests.rig.video_files import video_file
from tests.rig.wall_clock import WallClocks

# Of each site, with a video stream and with still pictures. One worker must be able to hold a whole site.
STREAMED, STILL = 2, 3
INTERVAL_SEC = 1
DISK_BYTES = 512_000_000
BALLAST = "ballast"
DATABASE_NAME = "fleet"


class Fleet(Company):
    """`async with Fleet(...)`: when it is entered every camera has been looked at."""

    def __init__(self, folder: Path, server: DatabaseServer, machines: Machines, disk: Path) -> None:
        super().__init__(server.kind, server.url(DATABASE_NAME), folder, server)
        self.database = server
        self.objects = disk / "objects"
        self.objects.mkdir(mode=0o700)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.places: dict[str, Namespace] = dict(zip(WORKERS, machines.namespaces, strict=True))
        self.nets: dict[str, Cutter] = {}
        self.database_nets: dict[str, Cutter] = {}
        self.analyzers: dict[str, RemoteAnalyzer] = {}
        self.cameras: dict[str, tuple[str, ...]] = {}  # of each site
        self.clocks = WallClocks(folder)
        self.env = {name: {**self.clocks.env(name), "TMPDIR": str(self.temporary)} for name in (*SERVICES, *WORKERS)}
        self.feed = FeedReader(self.web_url, self.secrets)
        self._camera_address = machines.camera_address
        self._near: dict[str, int] = {}
        self._sites: dict[str, str] = {}

    async def _open(self) -> None:
        await super()._open()
        self._stack.callback(self.thaw_all)
        for name in ANALYZERS:
            self.analyzers[name] = await RemoteAnalyzer.start(self.launcher, self.folder / f"{name}.json")
        for name in REMOTE:
            self.database_nets[name] = await self._stack.enter_async_context(Cutter(self.database.port))
        for number, worker in enumerate(WORKERS):
            net = Cutter(self.ports[CONTROLS[number % 2]])
            self.nets[worker] = await self._stack.enter_async_context(net)
            self._near[worker] = await reach(self.launcher, self.places[worker], net.port)
            self.within[worker] = self.places[worker].within
        # The first one makes the tables and the secrets.
        for name in SERVICES:
            self.start(name)
            if name in self.ports:
                await self.until_ready(name)
        await self._add_cameras()
        for worker in WORKERS:
            self.start(worker)
        everyone = {camera for cameras in self.cameras.values() for camera in cameras}
        await self.until(lambda: self._looked_at() >= everyone, "a look at every camera")
        self.read_on(self.feed)

    def _looked_at(self) -> set[str]:
        self.ledger.catch_up()
        return set(self.ledger.holders)

    async def _add_cameras(self) -> None:
        pictures = self.draw_pictures()
        video = video_file(self.folder / "cam.mp4", seconds=1, keyframes_apart=5, bf="0", size=(160, 96))
        streamed = {site: [f"{site}_stream_{n}" for n in range(STREAMED)] for site in SITES}
        asked = [CameraAsked(name, str(video)) for names in streamed.values() for name in names]
        listening = socket.create_server((self._camera_address, 0))
        cache = self.folder / "cache"
        simulator = await self._stack.enter_async_context(simulated(cache, *asked, sock=listening))
        for site in SITES:
            made = await self.call("POST", "/api/sites", {"name": site})
            self._sites[site] = made["site_uuid"]
            stills = [f"{site}_still_{number}" for number in range(STILL)]
            for name in streamed[site]:
                await self._add(site, name, {"url": simulator.url(name), "user": USER, "password": PASSWORD})
            for name in stills:
                await self._add(site, name, {"url": f"file://{pictures}"})
            self.cameras[site] = (*streamed[site], *stills)

    async def _add(self, site: str, name: str, source: dict[str, str]) -> None:
        body = {"camera_id": name, "name": name, "site": site, "source": source}
        await self.call("POST", "/api/cameras", {**body, "polling_interval_sec": INTERVAL_SEC})

    def _settings(self, name: str, worker: Mapping[str, object]) -> Settings:
        settings = self._common(self.folder / name, name if name in CONTROLS else CONTROLS[0])
        settings["jobs"] = dict(JOBS)
        settings["events"] = {"merge_gap_sec": 2, "close_grace_sec": 5}
        settings["analyzer"] = {"urls": [one.url for one in self.analyzers.values()]}
        # The small disk is filled on purpose; what is on it stays.
        settings["retention"] = {"free_min_bytes": 0}
        if is_worker(name):
            (site,) = [site for site, workers in SITES.items() if name in workers]
            at = {"name": name, "site_id": self._sites[site], "server_url": f"http://{LOOPBACK}:{self._near[name]}"}
            settings["worker"] = {**at, "allow_loopback": True, **worker}
        else:
            settings["store"] = {"url": self._store_url(name)}
        return settings

    def _store_url(self, name: str) -> str:
        if name not in self.database_nets:
            return self.url
        return self.url.replace(f":{self.database.port}/", f":{self.database_nets[name].port}/")

    # Troubles --------------------------------------------------------------------------------------------------

    def process(self, name: str) -> Running:
        if name in self.analyzers:
            running = self.analyzers[name].process
            assert running is not None
            return running
        return self.running[name]

    def freeze(self, name: str) -> None:
        self.process(name).send(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self.process(name).send(signal.SIGCONT)

    def thaw_all(self) -> None:
        super().thaw_all()
        for name in self.analyzers:
            self.thaw(name)

    def lead_away_from(self, control: str) -> None:
        """New connections of workers go to the other control process."""
        (other,) = [name for name in CONTROLS if name != control]
        for net in self.nets.values():
            net.aim(self.ports[other])

    def spread(self) -> None:
        """New connections go to both again."""
        for number, net in enumerate(self.nets.values()):
            net.aim(self.ports[CONTROLS[number % 2]])

    def fill_disk(self) -> None:
        fill(self.objects.parent / BALLAST)

    def empty_disk(self) -> None:
        (self.objects.parent / BALLAST).unlink(missing_ok=True)

    # The end ---------------------------------------------------------------------------------------------------

    async def until_looked(self) -> None:
        """Until every camera was looked at once more."""
        self.ledger.catch_up()
        begun = len(self.ledger.acknowledged)
        everyone = {camera for cameras in self.cameras.values() for camera in cameras}

        def everyone_was() -> bool:
            self.ledger.catch_up()
            return {one.camera_id for one in self.ledger.acknowledged[begun:]} >= everyone

        await self.until(everyone_was, "another look at every camera", PATIENCE_SEC)
