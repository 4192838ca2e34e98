"""What the worker's tests are made of: a clock that follows, looks, STARTs and a camera that does as it is told."""

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PIL import Image

from camserver.base.clock import Clock
from camserver.domain.devices import Place
from camserver.domain.gate import GatePolicy
from camserver.domain.leases import LeasePolicy
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot, Shot
from camserver.media.sources import Source as MediaSource
from camserver.services.worker.camera import LookCounts, Surroundings
from camserver.services.worker.doors import Doors
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.services.worker.streams import Stream, StreamName, Streams
from camserver.wire.looks import LookHeader, LookUpload
from camserver.wire.worker import LookParams, Report, Source, Start
from tests.rig.clock import START_BOOT_MS, START_MS, ManualClock
from tests.rig.polling import TIMEOUT_SEC

BOOT_ID = "boot-of-the-test"


class FollowingClock(ManualClock):
    """A moved clock that can learn the server's time, as a worker's clock does."""

    def __init__(self, now_ms: int = START_MS, boot_ms: int = START_BOOT_MS) -> None:
        super().__init__(now_ms, boot_ms)
        self.synced = False
        self.slept_sec: list[float] = []  # every sleep that was asked for

    async def sleep(self, seconds: float) -> None:
        self.slept_sec.append(seconds)
        await super().sleep(seconds)

    def observe(self, remote_ms: int, sent_boot_ms: int, received_boot_ms: int) -> None:
        self.jump_wall(remote_ms - (sent_boot_ms + received_boot_ms) // 2 + self.boot_ms() - self.now_ms())
        self.synced = True

    def freeze(self, ms: int) -> None:
        """The process stands still for so long: time passes and nobody is woken."""
        self._boot_ms += ms
        self._sleepers = [(max(due_ms, self._boot_ms), order, wake) for due_ms, order, wake in self._sleepers]


class Quiet:
    """Knows when nothing is left to do but wait: server and worker share one loop, so all their I/O passes here."""

    IDLE_TURNS = 10

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._run_in_executor = self._loop.run_in_executor
        self._in_threads = 0
        self._loop.run_in_executor = self._count  # type: ignore[method-assign,assignment]

    def _count(self, *args: Any) -> "asyncio.Future[Any]":
        future = self._run_in_executor(*args)
        self._in_threads += 1
        future.add_done_callback(self._uncount)
        return future

    def _uncount(self, future: "asyncio.Future[Any]") -> None:
        self._in_threads -= 1

    async def come(self) -> None:
        """Until no thread works and the loop finds nothing to run or to receive, several turns in a row."""
        idle_turns = 0
        async with asyncio.timeout(TIMEOUT_SEC):
            while idle_turns < self.IDLE_TURNS:
                await asyncio.sleep(0.001 if self._in_threads else 0)
                idle = not self._in_threads and not self._loop._ready  # type: ignore[attr-defined]
                idle_turns = idle_turns + 1 if idle else 0


def look(
    seq: int = 1,
    camera_id: str = "cam_1",
    generation: int = 1,
    *,
    quiet: bool = True,
    size_bytes: int = 1000,
    captured_at: int | None = None,
    boot_id: str = BOOT_ID,
) -> LookUpload:
    infer = bytes([seq % 256]) * size_bytes
    header = LookHeader(
        camera_id=camera_id,
        generation=generation,
        seq=seq,
        boot_id=boot_id,
        boot_ms=START_BOOT_MS,
        captured_at=START_MS + seq if captured_at is None else captured_at,
        sent_boot_ms=START_BOOT_MS,
        status="ok",
        verdict="skip" if quiet else "analyze",
        infer_bytes=len(infer),
    )
    return LookUpload(header, infer, b"")


def start_message(
    camera_id: str = "cam_1",
    generation: int = 1,
    *,
    intent_id: str = "intent-1",
    url: str = "test://moving",
    kind: str = "test",
    interval_sec: float = 10,
    next_seq: int = 1,
    failures: int = 0,
    next_attempt_at: int | None = None,
    force_every: int = 60,
    every_nth: int = 1,
    do_not_process: bool = False,
    login: tuple[str, str] | None = None,
    gate_state: str | None = None,
    sub_url: str | None = None,
) -> Start:
    return Start(
        intent_id=intent_id,
        camera_id=camera_id,
        generation=generation,
        source=Source.model_validate({"type": kind, "url": url} | _login(login)),
        sub=None if sub_url is None else Source.model_validate({"type": kind, "url": sub_url} | (_login(login))),
        params=LookParams(
            polling_interval_sec=interval_sec,
            infer_width=640,
            diff_width=320,
            connect_timeout_sec=3,
            force_infer_every_n=force_every,
            detect_every_n_frames=every_nth,
            do_not_process=do_not_process,
        ),
        next_seq=next_seq,
        failures=failures,
        next_attempt_at=next_attempt_at,
        gate_state=gate_state,
    )


def _login(login: tuple[str, str] | None) -> dict[str, str]:
    return {"user": login[0], "password": login[1]} if login else {}


def gray_jpeg(shade: int, size: tuple[int, int] = (64, 48)) -> bytes:
    out = io.BytesIO()
    Image.new("L", size, shade).save(out, "JPEG")
    return out.getvalue()


class ToldSource:
    """Answers with what the test says, notes when it was asked, and can be held in the middle of a grab."""

    learned_gop_ms: int | None = None

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.answer: Shot | Miss | Exception = JpegShot(gray_jpeg(128))
        self.asked_at: list[int] = []
        self.going_on = asyncio.Event()
        self.going_on.set()
        self.at_once_max = 0
        self._at_once = 0
        self.closed = 0

    async def grab(self) -> Shot | Miss:
        self.asked_at.append(self._now_ms())
        self._at_once += 1
        self.at_once_max = max(self.at_once_max, self._at_once)
        try:
            await self.going_on.wait()
        finally:
            self._at_once -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        self.closed += 1


def streams_of(source: MediaSource, given: Surroundings, sub: MediaSource | None = None) -> Streams:
    """A camera's streams, behind doors that nobody else uses."""
    doors = Doors(given.clock, given.looks)

    def stream(name: StreamName, one: MediaSource) -> Stream:
        return Stream(name, one, doors.door(Place("device", "net")), given.clock, 3)

    small = None if sub is None else stream("sub", sub)
    return Streams(stream("main", source), small, True, given.clock, given.leases, given.jitter)


def surroundings(clock: Clock, spool: Spool, pictures: ThreadPoolExecutor) -> Surroundings:
    return Surroundings(
        clock=clock,
        boot_id=BOOT_ID,
        spool=spool,
        reports=Reports(clock),
        pictures=pictures,
        gate=GatePolicy(rule="threshold"),
        leases=LeasePolicy(),
        counts=LookCounts(),
        addresses=AddressPolicy(allow_loopback=True),
        jitter=lambda: 1.0,
    )


def roomy_spool(folder: Path) -> Spool:
    """A spool that no disk of a test machine makes drop anything."""
    return Spool(folder, max_bytes=100_000_000, free_floor_bytes=0)


async def spooled(spool: Spool) -> list[LookUpload]:
    """All looks that wait, oldest first; they go on waiting."""
    entries = []
    while (entry := spool.take(0, fresh_first=False)) is not None:
        entries.append(entry)
    looks = [await spool.load(entry) for entry in entries]
    for entry in reversed(entries):
        spool.give_back(entry)
    return [look for look in looks if look is not None]


def reported(reports: Reports) -> list[Report]:
    """All reports that wait; they are taken."""
    taken: list[Report] = []
    while len(reports):
        taken.append(reports._waiting[0])
        reports.sent(taken[-1])
    return taken
