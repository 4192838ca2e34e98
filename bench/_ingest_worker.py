"""A worker that sends prepared looks as fast as they are acknowledged, over the real protocol."""

import asyncio
from collections import defaultdict
from typing import Self

import aiohttp

from camserver.base.clock import boot_id, boot_time_ms, wall_time_ms
from camserver.domain.workers import WorkerState
from camserver.wire.looks import LOOKS_PATH, WORKER_HEADER, LookHeader, Recorded, pack, parse_answer
from camserver.wire.worker import (
    SOCKET_PATH,
    Ack,
    Capacity,
    Heartbeat,
    Held,
    Kinds,
    Register,
    Report,
    Start,
    encode,
    parse_from_server,
)

WORKER_ID = "bench"
HEARTBEAT_SEC = 5.0


class Worker:
    def __init__(self, address: str, token: str, cameras: int, picture: bytes) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}", WORKER_HEADER: WORKER_ID}
        self._cameras = cameras
        self._picture = picture
        self._boot_id = boot_id()
        self._held: list[Held] = []
        self._seq: dict[str, int] = defaultdict(int)
        self._turn: dict[int, int] = defaultdict(int)
        self._all_started = asyncio.Event()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._talk: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._talk = asyncio.create_task(self._hold_conversation())
        await asyncio.wait_for(self._all_started.wait(), 120)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._talk is not None
        self._talk.cancel()
        await asyncio.wait([self._talk])
        await self._session.close()

    async def send(self, lane: int, lanes: int) -> None:
        """Sends the next look of one of the lane's cameras; looks of one camera never overlap."""
        mine = self._held[lane::lanes]
        held = mine[self._turn[lane] % len(mine)]
        self._turn[lane] += 1
        self._seq[held.camera_id] += 1
        now = boot_time_ms()
        header = LookHeader(
            camera_id=held.camera_id,
            generation=held.generation,
            seq=self._seq[held.camera_id],
            boot_id=self._boot_id,
            boot_ms=now,
            captured_at=wall_time_ms(),
            sent_boot_ms=now,
            status="ok",
            verdict="analyze",
            diff_ratio=0.02,
            luma_delta=1.5,
            blur_score=12.0,
            infer_w=640,
            infer_h=360,
            infer_bytes=len(self._picture),
        )
        url = self._address + LOOKS_PATH
        async with self._session.post(url, data=pack(header, self._picture), headers=self._headers) as answer:
            body = await answer.read()
            if answer.status != 200 or not isinstance(parse_answer(body), Recorded):
                raise RuntimeError(f"a look was not recorded: {answer.status} {body[:300]!r}")

    async def _hold_conversation(self) -> None:
        async with self._session.ws_connect(self._address + SOCKET_PATH, headers=self._headers) as socket:
            await socket.send_str(
                encode(
                    Register(
                        protocol=1,
                        worker_id=WORKER_ID,
                        site="main",
                        capacity=Capacity(slots=self._cameras),
                        boot_id=self._boot_id,
                        boot_ms=boot_time_ms(),
                    )
                )
            )
            beating = asyncio.create_task(self._beat(socket))
            try:
                async for message in socket:
                    await self._hear(socket, parse_from_server(message.data))
            finally:
                beating.cancel()

    async def _hear(self, socket: aiohttp.ClientWebSocketResponse, message: object) -> None:
        if not isinstance(message, Start):
            return
        await socket.send_str(encode(Ack(intent_id=message.intent_id, status="ok")))
        ready = Report(
            camera_id=message.camera_id,
            generation=message.generation,
            seq=1,
            event_type=Kinds.PIPELINE_READY,
            ts=wall_time_ms(),
            boot_ms=boot_time_ms(),
        )
        await socket.send_str(encode(ready))
        held = Held(camera_id=message.camera_id, generation=message.generation)
        if held not in self._held:
            self._held.append(held)
        if len(self._held) == self._cameras:
            self._all_started.set()

    async def _beat(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        number = 0
        while True:
            await asyncio.sleep(HEARTBEAT_SEC)
            number += 1
            beat = Heartbeat(
                worker_id=WORKER_ID,
                heartbeat_seq=number,
                boot_ms=boot_time_ms(),
                state=WorkerState.RUNNING,
                renew=tuple(self._held),
            )
            await socket.send_str(encode(beat))
