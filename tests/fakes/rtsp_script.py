"""An RTSP camera that does as a test says, word by word."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from camserver.services.simulator.messages import Request, answer, read_request
from camserver.services.simulator.rtp import interleave
from tests.rig.ports import listening_socket, port_of

SDP = b"""v=0
s=camera
m=audio 0 RTP/AVP 0
a=control:audio
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1
a=control:video
"""


@dataclass(slots=True)
class Script:
    """What the camera says; `asked` is what it was asked."""

    sdp: bytes = SDP
    packets: Iterable[bytes] = ()  # RTP, sent after PLAY
    status: dict[str, int] = field(default_factory=dict)  # of a method; else 200
    headers: dict[str, dict[str, str]] = field(default_factory=dict)  # of a method's reply, besides the usual
    public: str = "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER"
    session: str = "abc;timeout=60"
    login: tuple[str, str, str] | None = None  # user, password, algorithm
    nonce: str = "nonce"
    is_nonce_for_once: bool = False  # the camera does not say so (stale), it only refuses
    before_play: bytes = b""  # sent in front of the reply to PLAY
    between: bytes = b""  # sent in front of every packet
    hangs_up: bool = False  # after the packets
    hangs_up_at_reports: bool = False
    then: Iterable[bytes] = ()  # RTP, sent after a report
    reports: list[bytes] = field(default_factory=list)  # RTCP that came
    asked: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.asked]

    def may(self, request: Request) -> bool:
        if self.login is None:
            return True
        user, password, algorithm = self.login
        given = dict(re.findall(r'(\w+)="([^"]*)"', request.headers.get("authorization", "")))

        def digest(text: str) -> str:
            return hashlib.new(algorithm.replace("-", "").lower(), text.encode()).hexdigest()

        secret = digest(f"{user}:realm:{password}")
        expected = digest(f"{secret}:{self.nonce}:{digest(f'{request.method}:{request.url}')}")
        return given.get("response") == expected and given.get("username") == user

    def reply(self, request: Request) -> bytes:
        extra = self.headers.get(request.method, {})
        if request.method != "OPTIONS" and not self.may(request):
            algorithm = self.login[2] if self.login else ""
            challenge = f'Digest realm="realm", nonce="{self.nonce}", algorithm={algorithm}'
            return answer(request, 401, {"WWW-Authenticate": challenge, **extra})
        if request.method != "OPTIONS" and self.is_nonce_for_once:
            self.nonce = f"nonce-{len(self.asked)}"
        usual = {
            "OPTIONS": {"Public": self.public},
            "DESCRIBE": {"Content-Type": "application/sdp"},
            "SETUP": {"Session": self.session, "Transport": "RTP/AVP/TCP;unicast;interleaved=0-1"},
        }.get(request.method, {})
        status = self.status.get(request.method, 200)
        return answer(request, status, {**usual, **extra}, self.sdp if request.method == "DESCRIBE" else b"")


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[str]:
    """Its address."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script.connections += 1

        def hear(report: bytes) -> None:
            script.reports.append(report)
            if script.hangs_up_at_reports:
                writer.close()
                return
            for packet in script.then:
                writer.write(interleave([packet], 0))

        try:
            while (request := await read_request(reader, hear)) is not None:
                script.asked.append(request)
                reply = script.reply(request)
                is_play = request.method == "PLAY" and b" 200 " in reply[:16]
                writer.write(script.before_play + reply if is_play else reply)
                if is_play:
                    for packet in script.packets:
                        writer.write(script.between + interleave([packet], 0))
                    await writer.drain()
                    if script.hangs_up:
                        return
        except (OSError, asyncio.IncompleteReadError):
            return  # the client is gone, as clients do
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    with listening_socket() as sock:
        server = await asyncio.start_server(accept, sock=sock)
        async with server:
            yield f"rtsp://127.0.0.1:{port_of(sock)}/live?channel=1"
            for task in tuple(serving):
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
