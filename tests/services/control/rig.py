"""A running control on a real socket with a moved clock, and workers that are scripted message by message."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import aiohttp

from camserver.base.bells import Bells
from camserver.base.ready import Ready
from camserver.base.secrets import Secret
from camserver.config import Settings, load, make_secrets
from camserver.domain.workers import WorkerState
from camserver.objects.local import LocalObjects
from camserver.services.control import service
from camserver.store import Store
from camserver.store.first_start import prepare_store
from camserver.wire import errands
from camserver.wire.errands import ErrandAnswer, ErrandHeader
from camserver.wire.looks import (
    CONTENT_TYPE,
    LOOKS_PATH,
    WORKER_HEADER,
    LookAnswer,
    LookHeader,
    pack,
    parse_answer,
)
from camserver.wire.message import Message
from camserver.wire.worker import (
    PROTOCOL,
    SOCKET_PATH,
    Ack,
    Capacity,
    FromServer,
    Heartbeat,
    Held,
    Refused,
    Register,
    Registered,
    Renewed,
    Report,
    Start,
    Stop,
    encode,
    parse_from_server,
)
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.ports import listening_socket, port_of
from tests.store.stage import Camera, add_camera

M = TypeVar("M", bound=Message)
# Far above what any machine needs.
TIMEOUT_SEC = 60
# Rounds of control that sleep between two turns: assigning, upkeep, its epoch, errands, their tidying, live view.
SLEEPERS = 6
PICTURE = b"\xff\xd8 a picture \xff\xd9"


@dataclass(slots=True)
class RunningControl:
    store: Store
    objects: LocalObjects
    clock: ManualClock
    settings: Settings
    ready: Ready
    port: int
    token: Secret
    tenant_id: int
    site_id: int
    http: aiohttp.ClientSession
    tls_port: int | None = None
    bells: Bells = field(default_factory=Bells)
    workers: list["ScriptedWorker"] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def hang_camera(self, camera_id: str = "cam_1") -> Camera:
        return await self.store.write(add_camera, self.tenant_id, self.site_id, camera_id, self.clock.now_ms())

    async def connect(self, worker_id: str = "worker-1", **changes: object) -> "ScriptedWorker":
        """A worker that has registered."""
        worker = await self.open(worker_id)
        await worker.say(register(worker_id, self.clock, **changes))
        worker.registered = await worker.hear(Registered)
        return worker

    async def open(self, worker_id: str = "worker-1", token: str | None = None) -> "ScriptedWorker":
        """A socket on which nothing was said yet."""
        headers = {"Authorization": f"Bearer {token if token is not None else self.token.reveal()}"}
        socket = await self.http.ws_connect(self.url(SOCKET_PATH), headers=headers, max_msg_size=10_000_000)
        worker = ScriptedWorker(worker_id, self, socket)
        self.workers.append(worker)
        return worker

    async def upload(
        self, header: LookHeader, worker_id: str = "worker-1", infer: bytes = PICTURE, full: bytes = b""
    ) -> LookAnswer:
        status, body = await self.post(pack(header, infer, full), worker_id)
        assert status == 200, body
        return parse_answer(body)

    async def post(
        self, body: bytes, worker_id: str = "worker-1", token: str | None = None, path: str = LOOKS_PATH
    ) -> tuple[int, bytes]:
        async with self.http.post(
            self.url(path),
            data=body,
            headers={
                "Authorization": f"Bearer {token if token is not None else self.token.reveal()}",
                WORKER_HEADER: worker_id,
                "Content-Type": CONTENT_TYPE,
            },
        ) as response:
            return response.status, await response.read()

    async def answer(self, header: ErrandHeader, worker_id: str = "worker-1", body: bytes = b"") -> ErrandAnswer:
        status, text = await self.post(errands.pack(header, body), worker_id, path=errands.ERRANDS_PATH)
        assert status == 200, text
        return errands.parse_answer(text)

    async def pass_time(self, seconds: float, step_sec: float = 1.0) -> None:
        """Moves the clock on in steps, letting control's rounds run between them."""
        for _ in range(round(seconds / step_sec)):
            await self.clock.until_sleeping(SLEEPERS)
            await self.clock.advance(round(step_sec * 1000))
        await self.clock.until_sleeping(SLEEPERS)


class ScriptedWorker:
    """Says what the test says and hears what it waits for; everything else it heard is kept."""

    def __init__(self, worker_id: str, control: RunningControl, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.worker_id = worker_id
        self.control = control
        self.socket = socket
        self.heard: list[FromServer] = []
        self._unheeded: list[FromServer] = []
        self.registered: Registered | None = None
        self._heartbeat_seq = 0
        self._acknowledged: set[str] = set()

    async def say(self, message: Message) -> None:
        await self.socket.send_str(encode(message))

    async def hear(self, kind: type[M]) -> M:
        """The next message of a kind; others that come before it wait for their turn."""
        for message in self._unheeded:
            if isinstance(message, kind):
                self._unheeded.remove(message)
                return message
        async with asyncio.timeout(TIMEOUT_SEC):
            while True:
                message = parse_from_server(await self.socket.receive_str())
                self.heard.append(message)
                if isinstance(message, kind):
                    return message
                self._unheeded.append(message)

    async def beat(
        self,
        *renew: tuple[str, int],
        state: WorkerState = WorkerState.RUNNING,
        metrics: dict[str, float] | None = None,
    ) -> Renewed:
        self._heartbeat_seq += 1
        await self.say(
            Heartbeat(
                worker_id=self.worker_id,
                heartbeat_seq=self._heartbeat_seq,
                boot_ms=self.control.clock.boot_ms(),
                state=state,
                metrics=metrics or {},
                renew=held(*renew),
            )
        )
        while True:
            answer = await self.hear(Renewed)
            if answer.heartbeat_seq == self._heartbeat_seq:
                return answer

    async def start(self, ready: bool = True) -> Start:
        """Waits for a START, acknowledges it and, if wanted, says that the camera is going.

        One that it has acknowledged may come again, sent before that was heard; it is no other.
        """
        order = await self.hear(Start)
        while order.intent_id in self._acknowledged:
            order = await self.hear(Start)
        self._acknowledged.add(order.intent_id)
        await self.say(Ack(intent_id=order.intent_id, status="ok"))
        if ready:
            await self.report("pipeline_ready", order.camera_id, order.generation)
        await self.settled()
        return order

    async def stop(self) -> Stop:
        order = await self.hear(Stop)
        await self.say(Ack(intent_id=order.intent_id, status="ok"))
        await self.settled()
        return order

    async def report(self, event_type: str, camera_id: str, generation: int, **payload: object) -> None:
        await self.say(
            Report(
                camera_id=camera_id,
                generation=generation,
                event_type=event_type,
                ts=self.control.clock.now_ms(),
                boot_ms=self.control.clock.boot_ms(),
                payload=payload,  # type: ignore[arg-type]  # plain values
            )
        )

    async def settled(self) -> None:
        """Everything said so far was handled: messages are answered in order, and this one is."""
        await self.socket.send_str("{}")
        await self.hear(Refused)

    async def drop(self) -> None:
        """The socket ends without a word."""
        await self.socket.close()

    async def closed(self) -> int | None:
        """Waits until the server closes; the code it gave."""
        async with asyncio.timeout(TIMEOUT_SEC):
            while True:
                message = await self.socket.receive()
                if message.type is aiohttp.WSMsgType.TEXT:
                    self.heard.append(parse_from_server(message.data))
                    continue
                return self.socket.close_code


def held(*pairs: tuple[str, int]) -> tuple[Held, ...]:
    return tuple(Held(camera_id=camera_id, generation=generation) for camera_id, generation in pairs)


def register(worker_id: str, clock: ManualClock, **changes: object) -> Register:
    values: dict[str, object] = {
        "protocol": PROTOCOL,
        "worker_id": worker_id,
        "site": "main",
        "version": "1",
        "capacity": Capacity(slots=10),
        "boot_id": "boot-1",
        "boot_ms": clock.boot_ms(),
    }
    return Register(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


def look_header(clock: ManualClock, camera_id: str, generation: int, seq: int, **changes: object) -> LookHeader:
    """A look made now, with a quiet infer picture."""
    values: dict[str, object] = {
        "camera_id": camera_id,
        "generation": generation,
        "seq": seq,
        "boot_id": "boot-1",
        "boot_ms": clock.boot_ms(),
        "captured_at": clock.now_ms(),
        "sent_boot_ms": clock.boot_ms(),
        "status": "ok",
        "infer_bytes": len(PICTURE),
    }
    return LookHeader(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


@asynccontextmanager
async def running_control(
    store: Store, clock: ManualClock, folder: Path, environ: dict[str, str] | None = None, tls: bool = False
) -> AsyncIterator[RunningControl]:
    """`tls`: also with the port for workers at other sites."""
    settings = load(None, environ or {}, data_dir=folder)
    home = await prepare_store(store, settings.vocabulary.schema_version, clock.now_ms())
    objects = LocalObjects(folder / "objects")
    ready = Ready()
    ready.expect("control")
    socket = listening_socket()
    tls_socket = listening_socket() if tls else None
    bells = Bells()
    task = asyncio.create_task(service.run(store, objects, clock, settings, ready, socket, tls_socket, bells))
    try:
        await until(lambda: ready.is_ready or task.done(), "control is ready")
        async with aiohttp.ClientSession() as http:
            control = RunningControl(
                store,
                objects,
                clock,
                settings,
                ready,
                port_of(socket),
                make_secrets(settings).worker_token,
                home.tenant_id,
                home.site_id,
                http,
                None if tls_socket is None else port_of(tls_socket),
                bells,
            )
            yield control
            for worker in control.workers:
                await worker.socket.close()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        socket.close()
        if tls_socket is not None:
            tls_socket.close()
