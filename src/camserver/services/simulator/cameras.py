"""A simulated camera: what it shows, its main and sub stream, and how it misbehaves when it is told to."""

import asyncio
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.media.clips import Clip, cache_name, encode_file, is_servable, read_clip
from camserver.media.scenes import SCENES, encode_scene
from camserver.services.simulator.playing import Playback

log = get_logger(__name__)

MAIN, SUB = "main", "sub"
WIDTH_MAX = {MAIN: 1920, SUB: 480}
SCENE_PREFIX = "scene:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class CameraAsked:
    """A camera as it is wanted: `shows` is a video file or scene:NAME."""

    name: str
    shows: str
    offline_every_sec: float | None = None  # how long it is there before it goes away
    offline_for_sec: float = 0.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"the camera's name {self.name!r} must be letters, digits, dots, dashes or underscores")
        scene = self.shows.removeprefix(SCENE_PREFIX)
        if self.shows.startswith(SCENE_PREFIX) and scene not in SCENES:
            raise BadInput(f"camera {self.name}: there is no scene {scene!r}; there are {', '.join(SCENES)}")
        if not self.shows.startswith(SCENE_PREFIX) and not Path(self.shows).is_file():
            raise BadInput(f"camera {self.name}: there is no file {self.shows}")
        if self.offline_every_sec is not None and (self.offline_every_sec <= 0 or self.offline_for_sec <= 0):
            raise BadInput(f"camera {self.name}: times of being offline must be above 0")


@dataclass(slots=True)
class Faults:
    """What a camera does wrong right now; tests switch them while it runs."""

    is_offline: bool = False  # closes every connection without a word
    is_stalled: bool = False  # connections stay, nothing comes
    refuses_login: bool = False  # 401, whatever is given
    slow_sec: float = 0.0  # before each answer


class Client(Protocol):
    def cut(self) -> None:
        """Ends the connection at once."""


class SimulatedCamera:
    def __init__(self, asked: CameraAsked, cache_dir: Path) -> None:
        self.asked = asked
        self.faults = Faults()
        self._cache_dir = cache_dir
        self._closing = threading.Event()
        self._playbacks: dict[str, asyncio.Task[Playback]] = {}
        self.clients: set[Client] = set()

    async def playback(self, stream: str) -> Playback:
        """Its stream; the first one who asks has it read, and encoded if needed."""
        if stream not in self._playbacks:
            self._playbacks[stream] = asyncio.ensure_future(self._open(stream))
        return await asyncio.shield(self._playbacks[stream])

    def close(self) -> None:
        """Ends what is being encoded: the program waits for its threads, and a scene may take many seconds."""
        self._closing.set()
        for opening in self._playbacks.values():
            opening.cancel()

    def cut_all(self) -> None:
        """Ends every connection; clients may come back."""
        for client in tuple(self.clients):
            client.cut()

    async def follow_schedule(self, clock: Clock) -> None:
        """Goes offline now and then, as it was asked, until cancelled."""
        if self.asked.offline_every_sec is None:
            return
        while True:
            await clock.sleep(self.asked.offline_every_sec)
            log.info("simulated camera goes offline", camera=self.asked.name, for_sec=self.asked.offline_for_sec)
            self.faults.is_offline = True
            self.cut_all()
            await clock.sleep(self.asked.offline_for_sec)
            self.faults.is_offline = False
            log.info("simulated camera is back", camera=self.asked.name)

    async def _open(self, stream: str) -> Playback:
        clip = await asyncio.to_thread(self._read, stream)
        log.info("simulated camera plays", camera=self.asked.name, stream=stream, size=clip.size)
        return Playback(clip)

    def _read(self, stream: str) -> Clip:
        shows, width_max = self.asked.shows, WIDTH_MAX[stream]
        if shows.startswith(SCENE_PREFIX):
            scene = shows.removeprefix(SCENE_PREFIX)
            return read_clip(encode_scene(scene, width_max, self._cache_dir, self._closing))
        path = Path(shows)
        if stream == MAIN and is_servable(path):
            return read_clip(path)
        made = self._cache_dir / cache_name(path, width_max)
        if not made.exists():
            log.info("encoding a video once", camera=self.asked.name, file=str(path))
            encode_file(path, width_max, made, self._closing)
        return read_clip(made)
