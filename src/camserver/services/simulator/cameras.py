"""A simulated camera: what it shows, its main and sub stream, and how it misbehaves when it is told to."""

import asyncio
import re
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.media.clips import (
    Clip,
    cache_name,
    encode_file,
    encode_turned,
    frozen_clip,
    is_servable,
    read_clip,
)
from camserver.media.scenes import SCENES, black_clip, encode_scene
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
    is_full: bool = False  # 453: it bears no more streams
    refused_full: int = 0  # how often it has said so
    slow_sec: float = 0.0  # before each answer
    loss: float = 0.0  # share of its packets that never arrive


class Shows(StrEnum):
    """What a camera shows; the stream goes on when it changes."""

    USUAL = "usual"
    BLACK = "black"  # as with the lens cap on
    FROZEN = "frozen"  # one picture again and again
    SMALL = "small"  # the same in half the resolution
    TURNED = "turned"  # upside down, as after somebody got at the mounting


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
        self._shows = Shows.USUAL
        self.clients: set[Client] = set()

    async def playback(self, stream: str) -> Playback:
        """Its stream; the first one who asks has it read, and encoded if needed."""
        opened = self._playbacks.get(stream)
        if opened is None or (opened.done() and opened.exception() is not None):
            self._playbacks[stream] = asyncio.ensure_future(self._open(stream))
        return await asyncio.shield(self._playbacks[stream])

    async def show(self, what: Shows) -> None:
        """Shows something else from now on, without ending a connection."""
        self._shows = what
        for stream, opened in tuple(self._playbacks.items()):
            playback = await asyncio.shield(opened)
            playback.show(await asyncio.to_thread(self._read, stream))

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
        usual = self._usual(stream, WIDTH_MAX[stream])
        match self._shows:
            case Shows.USUAL:
                return usual
            case Shows.SMALL:
                return self._usual(stream, usual.size[0] // 2)
            case Shows.BLACK:
                return black_clip(usual.size, self._cache_dir)
            case Shows.FROZEN:
                return frozen_clip(usual)
            case Shows.TURNED:
                made = self._cache_dir / f"turned-{stream}-{self.asked.name}.mp4"
                encode_turned(self._usual_file(stream, WIDTH_MAX[stream]), made)
                return read_clip(made)

    def _usual(self, stream: str, width_max: int) -> Clip:
        return read_clip(self._usual_file(stream, width_max))

    def _usual_file(self, stream: str, width_max: int) -> Path:
        shows = self.asked.shows
        if shows.startswith(SCENE_PREFIX):
            return encode_scene(shows.removeprefix(SCENE_PREFIX), width_max, self._cache_dir, self._closing)
        path = Path(shows)
        if stream == MAIN and width_max == WIDTH_MAX[MAIN] and is_servable(path):
            return path
        made = self._cache_dir / cache_name(path, width_max)
        if not made.exists():
            log.info("encoding a video once", camera=self.asked.name, file=str(path))
            encode_file(path, width_max, made, self._closing)
        return made
