"""Simulated workers, thousands in one process: bare WebSocket clients that say what a worker says and nothing else.

Told by lines of JSON and answering by lines of JSON (bench/_child.py). First what they are: `port`, `token`,
`workers`, `first` (the number of the first one), `cameras` (that each holds from the beginning) and `slots`. Then:

    {"do": "connect", "at_once": n}             all register, so many at a time
    {"do": "beat", "every_sec": s}              from now on each renews what it holds that often
    {"do": "count", "for_sec": s}               what was said, heard and renewed in that time
    {"do": "flood", "for_sec": s, "lanes": n}   so many of them renew as fast as they are answered

A server that only echoes is served as well: whatever comes back counts as the answer.
"""

import asyncio
import json
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import uvloop

from bench._control_rows import site_of
from camserver.base.clock import boot_time_ms, wall_time_ms
from camserver.wire.worker import PROTOCOL, SOCKET_PATH

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
# Of clients' frames; a mask of zeros leaves the text as it is.
MASK = b"\0\0\0\0"


@dataclass(slots=True)
class Counts:
    """Of all workers together."""

    said: int = 0
    heard: int = 0
    renewed: int = 0
    lost: int = 0
    refused: int = 0
    started: int = 0
    ended: int = 0
    round_trips_ms: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        trips = sorted(self.round_trips_ms) or [0.0]
        return {
            "said": self.said,
            "heard": self.heard,
            "renewed": self.renewed,
            "lost": self.lost,
            "refused": self.refused,
            "started": self.started,
            "ended": self.ended,
            "answered": len(self.round_trips_ms),
            "p50_ms": trips[len(trips) // 2],
            "p99_ms": trips[len(trips) * 99 // 100],
        }


def frame(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    else:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    return head + MASK + payload


class Fleet:
    """What the workers share."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.port: int = asked["port"]
        self.token: str = asked["token"]
        self.slots: int = asked["slots"]
        self.counts = Counts()
        numbers = range(asked["first"], asked["first"] + asked["workers"])
        self.workers = [SimulatedWorker(self, number, asked["cameras"]) for number in numbers]

    async def connect(self, at_once: int) -> None:
        places = asyncio.Semaphore(at_once)

        async def one(worker: "SimulatedWorker") -> None:
            async with places:
                await asyncio.get_running_loop().create_connection(lambda: worker, "127.0.0.1", self.port)
                await worker.registered

        await asyncio.gather(*(one(worker) for worker in self.workers))

    def beat(self, every_sec: float) -> None:
        """Spread evenly over the interval, as workers that started at any time are."""
        loop, begin = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        for index, worker in enumerate(self.workers):
            loop.call_at(begin + every_sec * index / len(self.workers), worker.beat_on, every_sec)

    async def count(self, for_sec: float) -> dict[str, float]:
        self.counts = Counts()
        begin = time.perf_counter()
        await asyncio.sleep(for_sec)
        return {**self.counts.summary(), "took_sec": time.perf_counter() - begin}

    async def flood(self, for_sec: float, lanes: int) -> dict[str, float]:
        crew = self.workers[:lanes]
        for worker in crew:
            worker.on_answer = worker.beat
            worker.beat()
        await asyncio.sleep(min(1.0, for_sec / 3))
        found = await self.count(for_sec)
        for worker in crew:
            worker.on_answer = None
        return found


class SimulatedWorker(asyncio.Protocol):
    def __init__(self, fleet: Fleet, number: int, cameras: int) -> None:
        self._fleet = fleet
        self._number = number
        self._held = {f"cam_{number * cameras + index}": 1 for index in range(cameras)}
        self._renew = self._renewal()
        self._buffer = bytearray()
        self._is_open = False
        self._seq = 0
        self._beat_at = 0.0
        self._transport: Any = None
        self.registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_answer: Callable[[], None] | None = None

    # The socket ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(
            f"GET {SOCKET_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Authorization: Bearer {self._fleet.token}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            if b" 101 " not in head.split(b"\r\n", 1)[0]:
                raise RuntimeError(f"worker-{self._number} was not let in: {bytes(head[:200])!r}")
            self._is_open = True
            self._buffer = rest
            self._say(self._registration())
        while self._take_frame():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        self._fleet.counts.ended += 1
        self._transport = None

    def _take_frame(self) -> bool:
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return False
            size = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + size:
            return False
        opcode, payload = buffer[0] & 0x0F, bytes(buffer[start : start + size])
        del buffer[: start + size]
        if opcode == TEXT:
            self._fleet.counts.heard += 1
            self._hear(json.loads(payload))
        elif opcode == PING:
            self._transport.write(frame(PONG, payload))
        return True

    def _say(self, *texts: str) -> None:
        if self._transport is not None:
            self._fleet.counts.said += len(texts)
            self._transport.write(b"".join(frame(TEXT, text.encode()) for text in texts))

    # What is said ----------------------------------------------------------------------------------------------

    def _registration(self) -> str:
        return json.dumps(
            {
                "type": "REGISTER",
                "protocol": PROTOCOL,
                "worker_id": f"worker-{self._number}",
                "site": site_of(self._number),
                "version": "1",
                "capacity": {"slots": self._fleet.slots, "cpu": 4.0, "mem": 8e9},
                "boot_id": "bench",
                "boot_ms": boot_time_ms(),
                "holding": self._pairs(),
            }
        )

    def _pairs(self) -> list[dict[str, object]]:
        return [{"camera_id": camera_id, "generation": generation} for camera_id, generation in self._held.items()]

    def _renewal(self) -> str:
        return json.dumps(self._pairs(), separators=(",", ":"))

    def beat_on(self, every_sec: float) -> None:
        self.beat()
        asyncio.get_running_loop().call_later(every_sec, self.beat_on, every_sec)

    def beat(self) -> None:
        self._seq += 1
        self._beat_at = time.perf_counter()
        self._say(
            f'{{"type":"HEARTBEAT","worker_id":"worker-{self._number}","heartbeat_seq":{self._seq},'
            f'"boot_ms":{boot_time_ms()},"state":"{"RUNNING" if self._held else "IDLE"}",'
            f'"metrics":{{"spool_bytes":0,"renew_rtt_ms":12.5,"cameras":{len(self._held)}}},"renew":{self._renew}}}'
        )

    def _hear(self, message: dict[str, Any]) -> None:
        counts = self._fleet.counts
        match message["type"]:
            case "REGISTERED" | "REGISTER":
                if len(message.get("kept", self._held)) != len(self._held):
                    raise RuntimeError(f"worker-{self._number} lost leases at once: {message['lost']}")
                self.registered.set_result(None)
            case "RENEWED" | "HEARTBEAT":
                counts.round_trips_ms.append((time.perf_counter() - self._beat_at) * 1000)
                counts.renewed += len(message.get("renewed", self._held))
                counts.lost += len(message.get("lost", ()))
                if self.on_answer is not None:
                    self.on_answer()
            case "START":
                counts.started += 1
                self._start(message["intent_id"], message["camera_id"], message["generation"])
            case "REFUSED":
                counts.refused += 1

    def _start(self, intent_id: str, camera_id: str, generation: int) -> None:
        self._held[camera_id] = generation
        self._renew = self._renewal()
        ready = {
            "type": "EVENT",
            "camera_id": camera_id,
            "generation": generation,
            "seq": 1,
            "event_type": "pipeline_ready",
            "ts": wall_time_ms(),
            "boot_ms": boot_time_ms(),
        }
        self._say(json.dumps({"type": "ACK", "intent_id": intent_id, "status": "ok"}), json.dumps(ready))


async def main() -> None:
    fleet = Fleet(json.loads(await asyncio.to_thread(sys.stdin.readline)))
    while line := await asyncio.to_thread(sys.stdin.readline):
        told = json.loads(line)
        answer: dict[str, float] = {}
        match told["do"]:
            case "connect":
                await fleet.connect(told["at_once"])
            case "beat":
                fleet.beat(told["every_sec"])
            case "count":
                answer = await fleet.count(told["for_sec"])
            case "flood":
                answer = await fleet.flood(told["for_sec"], told["lanes"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
