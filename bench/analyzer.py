"""Pictures a second through the analyzer's HTTP, beside the bare model in a loop; memory over many; an overload.

The analyzer is the product's own process with the real model. Each caller is a camera over a street: it sends one
picture after the other, each with the one it sent before, as the dispatcher does. No two pictures that are sent are
the same, so none was analyzed before. Beside it run two bare loops, each in a process of its own: the model alone on
a picture that was decoded and scaled once, and the model with the decoding and scaling of each picture in the same
thread. All get the machine in turns, a few seconds each, because other programs use it too; and CPU time is compared
beside wall time for the same reason. `--only speed` runs one part, PICTURES=3000 says over how many pictures memory
is watched.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import uvloop

from bench._child import Child, child
from bench._cpu import cpu_seconds
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from camserver.base import assets
from camserver.clients.analyzer import AnalyzerClient, Question, form_parts
from camserver.domain.vocabulary import SHIPPED_VERSION
from tests.rig.footage import asset, frames
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher
from tests.services.analyzer.rig import CAPTURED_AT_MS, DOCUMENT

# Of the footage; a fifth of a second apart.
FRAMES = range(0, 250, 5)
# Callers begin at different ones.
APART = 7
ROUNDS = 2 if QUICK else 12
ROUND_SEC = 2.0
WORKERS = (1, 2)
AIM = 0.9
# How the bare model's work can be cut: (interpreters, threads of each).
CUTS = ((1, 1), (1, 2), (2, 1))
# By then everything that is remembered of pictures is full.
WARM_PICTURES = 250 if QUICK else 500
MANY_PICTURES = int(os.environ.get("PICTURES", "200" if QUICK else "10000"))
FLAT = 0.9
OVERLOAD_SEC = 3.0 if QUICK else 30.0
OVERLOAD_CLIENTS = 64
WAITING_MAX = 16
# Those who are refused ask again after this, which is sooner than they were told.
AGAIN_SEC = 0.2
REQUEST_TIMEOUT_SEC = 120
BOUNDARY = "b" * 32


@cache
def pictures() -> list[bytes]:
    return frames(asset(assets.FOOTAGE), FRAMES)


_sent = itertools.count()

# Written over in a body that was made before.
NAME = "cam_" + 12 * "x"
MARK = b"%016d"


def marked(picture: bytes, mark: bytes) -> bytes:
    """The same picture in other bytes: with a comment in its JPEG, right after the mark of its beginning."""
    return picture[:2] + b"\xff\xfe" + (2 + len(mark)).to_bytes(2) + mark + picture[2:]


@dataclass(frozen=True, slots=True)
class Body:
    """A request as the dispatcher makes it, but for the camera's name and the marks of its pictures."""

    content: bytes
    places: tuple[int, ...]  # of the name and of each mark

    def filled(self, *values: bytes) -> bytearray:
        made = bytearray(self.content)
        for place, value in zip(self.places, values, strict=True):
            made[place : place + len(value)] = value
        return made


@cache
def body_of(number: int, has_previous: bool) -> Body:
    """About one picture and the one before it. Made once: whoever asks shares the cores with what is measured."""
    marks = [MARK % (-1 - n) for n in range(1 + has_previous)]
    shown = [marked(pictures()[(number - n) % len(FRAMES)], mark) for n, mark in enumerate(marks)]
    question = Question(
        NAME, CAPTURED_AT_MS, "r-1", shown[0], shown[1] if has_previous else None, {"time_band": "day"}
    )
    body = b"".join(form_parts(question, SHIPPED_VERSION, BOUNDARY))
    head = (
        f"POST /v1/analyze HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    content = head.encode() + body
    return Body(content, tuple(content.index(one) for one in (NAME.encode(), *marks)))


class Camera:
    """Asks as the dispatcher does: a new picture, and the one before it."""

    def __init__(self) -> None:
        self._name = b"cam_%012d" % next(_sent)
        self._next = next(_sent) * APART
        self._before: bytes | None = None

    def request(self) -> bytearray:
        mark, before = MARK % next(_sent), self._before
        body = body_of(self._next % len(FRAMES), before is not None)
        self._next += 1
        self._before = mark
        return body.filled(self._name, mark) if before is None else body.filled(self._name, mark, before)


@dataclass(slots=True)
class Round:
    pictures: int = 0
    sec: float = 0.0
    cpu_sec: float = 0.0

    def add(self, other: "Round") -> None:
        self.pictures += other.pictures
        self.sec += other.sec
        self.cpu_sec += other.cpu_sec

    @property
    def per_sec(self) -> float:
        return self.pictures / self.sec

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_sec / self.pictures


class Caller(asyncio.Protocol):
    """One connection that is kept. Less than an HTTP library does: it shares the cores with what is measured."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._camera = Camera()
        self._transport: asyncio.Transport | None = None
        self._answer = b""
        self._answered: asyncio.Future[int] | None = None

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if end and len(body) == int(length) and self._answered is not None:
            self._answer = b""
            self._answered.set_result(int(head.split(b" ", 2)[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("closed without an answer"))

    async def ask(self) -> int:
        loop = asyncio.get_running_loop()
        if self._transport is None:
            self._transport, _ = await loop.create_connection(lambda: self, LOOPBACK, self._port)
        self._answered = loop.create_future()
        async with asyncio.timeout(REQUEST_TIMEOUT_SEC):
            self._transport.write(self._camera.request())
            return await self._answered

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass(slots=True)
class Analyzer:
    port: int
    pid: int

    @contextmanager
    def caller(self) -> Iterator[Caller]:
        made = Caller(self.port)
        try:
            yield made
        finally:
            made.close()

    async def round(self, at_once: int, seconds: float) -> Round:
        """As many as are answered in that time, with so many under way all the time."""
        deadline = time.perf_counter() + seconds

        async def loop() -> int:
            count = 0
            with self.caller() as caller:
                while time.perf_counter() < deadline:
                    assert await caller.ask() == 200
                    count += 1
            return count

        started, cpu_before = time.perf_counter(), cpu_seconds(self.pid)
        done = sum(await asyncio.gather(*(loop() for _ in range(at_once))))
        return Round(done, time.perf_counter() - started, cpu_seconds(self.pid) - cpu_before)

    def memory_mb(self) -> float:
        own = psutil.Process(self.pid)
        return float(sum(one.memory_info().rss for one in [own, *own.children(recursive=True)])) / 1e6


@asynccontextmanager
async def analyzer(workers: int) -> AsyncIterator[Analyzer]:
    """The product's analyzer. It is as nice as the bare model, not more, so that both get the same share."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}"
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(Path(folder))
        settings: dict[str, dict[str, Any]] = {
            "server": {"data_dir": str(Path(folder) / "data")},
            "analyzer": {
                "port": port,
                "model_path": str(asset(assets.MODEL)),
                "workers": workers,
                "waiting_max": WAITING_MAX,
                "nice": 0,
            },
        }
        running = launcher.camserver("analyzer", settings=settings)
        try:
            await running.until_ready(f"{url}/healthz")
            await put_vocabulary(url)
            yield Analyzer(port, running.pid)
        finally:
            await launcher.close()


async def put_vocabulary(url: str) -> None:
    client = AnalyzerClient(url, analyze_timeout_sec=60, schema_timeout_sec=60, health_timeout_sec=60)
    try:
        await client.put_vocabulary(SHIPPED_VERSION, DOCUMENT)
    finally:
        await client.close()


@contextmanager
def bare(detectors: int, threads: int, *, decodes: bool = False) -> Iterator[Child]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jpg" for number in FRAMES]
        for path, picture in zip(paths, pictures(), strict=True):
            path.write_bytes(picture)
        asked = {"model": str(asset(assets.MODEL)), "pictures": [str(path) for path in paths]}
        with child("_analyzer_bare", detectors=detectors, threads=threads, decodes=decodes, **asked) as started:
            started.hear()
            yield started


def bare_round(running: Child, seconds: float) -> Round:
    running.tell(str(seconds))
    return Round(**json.loads(running.hear()))


@dataclass(slots=True)
class Beside:
    """One of the bare loops, and how many pictures of theirs ours made in each round, as a share."""

    loop: Child
    total: Round
    ratios: list[float]


async def measure_speed(workers: int) -> list[Row]:
    ours = Round()
    async with analyzer(workers) as service:
        with bare(workers, 1) as alone, bare(workers, 1, decodes=True) as whole:
            peers = {
                "the bare model on a ready tensor": Beside(alone, Round(), []),
                "decode, scale, bare model": Beside(whole, Round(), []),
            }
            await service.round(2 * workers + 1, 1.0)
            for _ in range(ROUNDS):
                one = await service.round(2 * workers + 1, ROUND_SEC)
                ours.add(one)
                for peer in peers.values():
                    other = await asyncio.to_thread(bare_round, peer.loop, ROUND_SEC)
                    peer.total.add(other)
                    peer.ratios.append(one.per_sec / other.per_sec)
    return [row for name, peer in peers.items() for row in speed_rows(workers, ours, name, peer)]


def speed_rows(workers: int, ours: Round, peer_name: str, peer: Beside) -> list[Row]:
    shown = " ".join(f"{ratio:.2f}" for ratio in sorted(peer.ratios))
    say(f"  {workers} at once: {ours.per_sec:.1f}/s, {peer_name} {peer.total.per_sec:.1f}/s; rounds: {shown}")
    name = f"{workers} at once"
    # The middle one of the rounds: what else the machine did in one of them says nothing about either.
    ratio = statistics.median(peer.ratios)
    return [
        Row(f"{name}, pictures a second", ours.per_sec, peer.total.per_sec, peer_name, ratio, "/s", AIM),
        less_is_better(f"{name}, CPU of a picture", ours.cpu_ms, peer.total.cpu_ms, peer_name, "ms"),
    ]


async def measure_speeds() -> list[Row]:
    return [row for workers in WORKERS for row in await measure_speed(workers)]


async def measure_cuts() -> list[Row]:
    """The same cores as several interpreters or as one with several threads, without our program."""
    totals = {cut: Round() for cut in CUTS}
    for _ in range(1 if QUICK else 4):
        for cut, total in totals.items():
            with bare(*cut) as loop:
                total.add(await asyncio.to_thread(bare_round, loop, ROUND_SEC))
    return [
        figure(f"bare, {detectors} interpreters of {threads} threads", total.per_sec, "/s")
        for (detectors, threads), total in totals.items()
    ]


async def measure_memory() -> list[Row]:
    async with analyzer(WORKERS[-1]) as service:

        async def many(count: int) -> float:
            """The most that was held at any of ten moments."""
            held = []
            for _ in range(10):
                statuses = await asyncio.gather(*(loop(count // 50) for _ in range(5)))
                assert all(statuses)
                held.append(service.memory_mb())
            return max(held)

        async def loop(count: int) -> bool:
            with service.caller() as caller:
                return all([await caller.ask() == 200 for _ in range(count)])

        warm_mb = await many(WARM_PICTURES)
        late_mb = await many(MANY_PICTURES)
    name = f"memory over {MANY_PICTURES} pictures"
    return [less_is_better(name, late_mb, warm_mb, f"after {WARM_PICTURES}", "MB", FLAT)]


async def measure_overload() -> list[Row]:
    """Four times as many callers as there are places, none of whom waits as told."""
    answered: list[float] = []
    refused: list[float] = []
    async with analyzer(1) as service:
        picture_sec = 1 / (await service.round(3, ROUND_SEC)).per_sec

        async def caller() -> None:
            with service.caller() as calling:
                while time.perf_counter() < deadline:
                    started = time.perf_counter()
                    status = await calling.ask()
                    assert status in (200, 429)
                    (answered if status == 200 else refused).append(time.perf_counter() - started)
                    if status == 429:
                        await asyncio.sleep(AGAIN_SEC)

        deadline = time.perf_counter() + OVERLOAD_SEC
        await asyncio.gather(*(caller() for _ in range(OVERLOAD_CLIENTS)))
        memory_mb = service.memory_mb()
    # Everybody in the line is before the last, and all of them take as long as when there is no crowd.
    bound_ms = 1000 * picture_sec * (1 + WAITING_MAX + 1)
    p99_ms = 1000 * percentile(answered, 99)
    say(f"  overload: {len(answered)} answered, {len(refused)} refused")
    return [
        less_is_better("overload, p99 of the answered", p99_ms, bound_ms, "the line at its bound", "ms", 0.5),
        more_is_better(
            "overload, answered a second", len(answered) / OVERLOAD_SEC, 1 / picture_sec, "without a crowd", "/s", 0.8
        ),
        figure("overload, p99 of the refused", 1000 * percentile(refused, 99), "ms"),
        figure("overload, memory", memory_mb, "MB"),
    ]


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


PARTS: dict[str, Callable[[], Awaitable[list[Row]]]] = {
    "speed": measure_speeds,
    "cuts": measure_cuts,
    "overload": measure_overload,
    "memory": measure_memory,
}


async def main(only: str | None) -> None:
    rows: list[Row] = []
    for name, measure in PARTS.items():
        if only in (None, name):
            say(name)
            rows += await measure()
    report("analyzer", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    uvloop.run(main(parser.parse_args().only))
