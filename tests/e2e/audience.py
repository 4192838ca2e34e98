"""Programs that watch cameras through the whole product, open and close live views in every way, and what is left."""

import asyncio
import random
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from camserver.services.simulator.service import Simulator
from tests.e2e.installation import Installation
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK
from tests.rig.processes import Running
from tests.services.streamer.live_rig import Watcher

JPEG = b"\xff\xd8"


@dataclass(frozen=True, slots=True)
class Left:
    """What there is of live view: what must be nothing when nobody watches, and what must not grow."""

    viewers: int
    streams: int
    feeds: int
    modals: int
    connections: int  # to cameras
    files: int  # in the data folder, beside the pictures of looks
    processes: int
    threads: int
    descriptors: int
    memory_bytes: int

    @property
    def is_nothing(self) -> bool:
        return not (self.viewers or self.streams or self.feeds or self.modals or self.connections)

    def grown(self, before: "Left", most: int) -> list[str]:
        """Of what processes have, what is more than `most` above what they had."""
        names = ("files", "processes", "threads", "descriptors")
        return [name for name in names if getattr(self, name) > getattr(before, name) + most]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:,}" for name, value in asdict(self).items())


class Viewer:
    """A program with a token of its own, which is a login of its own."""

    def __init__(self, plain: aiohttp.ClientSession, web_url: str, secret: str) -> None:
        self._plain = plain
        self._url = f"{web_url}/api/modal/lease"
        self._headers = {"Authorization": f"Bearer {secret}"}
        self.lease: dict[str, Any] = {}

    async def ask(self, camera_id: str) -> tuple[int, dict[str, Any]]:
        asked = {"camera_id": camera_id}
        async with self._plain.post(self._url, json=asked, headers=self._headers) as answer:
            body: dict[str, Any] = await answer.json()
            if answer.status == 200:
                self.lease = body
            return answer.status, body

    async def watch(self, camera_id: str) -> Watcher:
        status, body = await self.ask(camera_id)
        assert status == 200, body
        return await self.open()

    async def open(self) -> Watcher:
        return Watcher(await self._plain.ws_connect(self.lease["stream_url"], max_msg_size=0))

    async def release(self) -> None:
        url = f"{self._url}/{self.lease['lease_id']}"
        async with self._plain.delete(url, headers=self._headers) as answer:
            assert answer.status == 200, await answer.text()

    async def segments(self) -> None:
        """Reads as a player of HLS does: the list, again where it is not there yet, then what it names last."""
        listed = await poll_async(self._listed, "a list of segments")
        name = [line for line in listed.splitlines() if line.endswith(".m4s")][-1]
        async with self._plain.get(self.lease["hls_url"].removesuffix("index.m3u8") + name) as answer:
            assert answer.status in (200, 404), await answer.text()  # a list goes on

    async def _listed(self) -> str | None:
        async with self._plain.get(self.lease["hls_url"]) as answer:
            listed = await answer.text()
            if answer.status == 503 and "Retry-After" in answer.headers:
                return None
            assert answer.status == 200, listed
            return listed

    async def picture(self) -> None:
        async with self._plain.get(self.lease["snapshot_url"]) as answer:
            assert (await answer.read()).startswith(JPEG), answer.status

    # One view from its beginning to its end, in the ways there are ---------------------------------------------

    async def come_and_go(self, camera_id: str, chance: random.Random) -> None:
        how = chance.choice([self.let_go, self.closes, self.cut_off, self.by_segments, self.never_comes])
        await how(camera_id)

    async def let_go(self, camera_id: str) -> None:
        """The view is closed by its button."""
        watcher = await self.watch(camera_id)
        await watcher.until_media(3)
        await self.picture()
        await self.release()
        code = await watcher.until_closed()
        assert code == 4404, f"closed with {code}: {watcher}"

    async def closes(self, camera_id: str) -> None:
        """The socket goes first, as it may when a page is left."""
        watcher = await self.watch(camera_id)
        await watcher.until_media(2)
        await watcher.socket.close()
        await self.release()

    async def cut_off(self, camera_id: str) -> None:
        """The network goes, while nothing is read."""
        watcher = await self.watch(camera_id)
        await watcher.until_state("live")
        line = watcher.socket._conn
        assert line is not None, f"closed already: {watcher}"
        assert line.transport is not None, f"closed already: {watcher}"
        line.transport.abort()
        await watcher.socket.close()
        await self.release()

    async def by_segments(self, camera_id: str) -> None:
        status, body = await self.ask(camera_id)
        assert status == 200, body
        await self.segments()
        await self.release()

    async def never_comes(self, camera_id: str) -> None:
        """Admitted, and then nobody opens it."""
        status, body = await self.ask(camera_id)
        assert status == 200, body
        await self.release()


def nobody() -> aiohttp.ClientSession:
    """A browser that nobody is signed in with, and that keeps no connection open for later."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))


@dataclass(slots=True)
class Audience:
    """All who watch. `admin` is somebody's browser who may make tokens, `plain` is that of `nobody`."""

    house: Installation
    up: Running
    simulator: Simulator
    cameras: tuple[str, ...]
    admin: aiohttp.ClientSession
    plain: aiohttp.ClientSession
    viewers: list[Viewer] = field(default_factory=list)

    async def grow(self, count: int) -> list[Viewer]:
        """So many viewers in all."""
        for number in range(len(self.viewers), count):
            asked = {"name": f"viewer {number}", "scopes": ["read"]}
            async with self.admin.post("/api/tokens", json=asked) as answer:
                assert answer.status == 201, await answer.text()
                secret = (await answer.json())["secret"]
            self.viewers.append(Viewer(self.plain, self.house.web_url, secret))
        return self.viewers[:count]

    async def come_and_go(self, times: int, chance: random.Random) -> None:
        """Every viewer so often, all of them at the same time."""

        async def one(viewer: Viewer, own: random.Random) -> None:
            for _ in range(times):
                await viewer.come_and_go(own.choice(self.cameras), own)

        async with asyncio.TaskGroup() as group:
            for viewer in self.viewers:
                group.create_task(one(viewer, random.Random(chance.random())))

    async def left(self) -> Left:
        """What there is now."""
        about = await self._json(self.plain, f"http://{LOOPBACK}:{self.house.settings['streamer']['port']}/readyz")
        status = await self._json(self.admin, "/api/system/status")
        taken = await asyncio.to_thread(_taken, self.up.pid, self.house.data)
        return Left(
            viewers=about["viewers"],
            streams=about["streams"],
            feeds=about["feeds"],
            modals=status["active_modals"],
            connections=sum(len(self.simulator.camera(name).clients) for name in self.cameras),
            **taken,
        )

    async def nothing_left(self) -> Left:
        """Waits until nothing is left of any live view; what the processes have then."""

        async def look() -> Left | None:
            left = await self.left()
            return left if left.is_nothing else None

        return await poll_async(look, "nothing of live view is left")

    async def _json(self, session: aiohttp.ClientSession, url: str) -> Any:
        async with session.get(url) as answer:
            return await answer.json()


def _taken(pid: int, data: Path) -> dict[str, int]:
    """Of a process and all its descendants, and of their folder."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    files = sum(path.is_file() and data / "objects" not in path.parents for path in data.rglob("*"))
    taken = {"files": files, "processes": len(family), "threads": 0, "descriptors": 0, "memory_bytes": 0}
    for one in family:
        with suppress(psutil.NoSuchProcess), one.oneshot():
            taken["threads"] += one.num_threads()
            taken["descriptors"] += one.num_fds()
            taken["memory_bytes"] += one.memory_info().rss
    return taken
