"""One client of the simulator: answers its requests and sends it the video it asked for."""

import asyncio
import base64
import random
import re
import secrets
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.media.clips import Clip
from camserver.services.simulator.cameras import MAIN, SUB, SimulatedCamera
from camserver.services.simulator.digest import Digest, Login
from camserver.services.simulator.messages import Request, answer, read_request
from camserver.services.simulator.playing import Playback
from camserver.services.simulator.rtp import PAYLOAD_TYPE, interleave

log = get_logger(__name__)

METHODS = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER"
SESSION_TIMEOUT_SEC = 60
TRACK = "trackID=0"
# A client that reads too slowly is given the next keyframe again; one that does not read at all is left.
BACKLOG_MAX_BYTES = 2_000_000
BEHIND_MAX_SEC = 10.0
_INTERLEAVED = re.compile(r"interleaved=(\d{1,3})-(\d{1,3})")


class Connection:
    """A `Listener` of a playback and a `Client` of a camera."""

    def __init__(
        self,
        cameras: Mapping[str, SimulatedCamera],
        login: Login | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._cameras = cameras
        self._digest = None if login is None else Digest(login)
        self._reader = reader
        self._writer = writer
        self._camera: SimulatedCamera | None = None
        self._playback: Playback | None = None
        self._session: str | None = None
        self._channel = 0
        self._waits_for_keyframe = True
        self._behind_since_sec: float | None = None

    async def serve(self) -> None:
        """Until either side ends it."""
        try:
            while (request := await read_request(self._reader)) is not None:
                reply = await self._reply(request)
                if reply is None or self._writer.is_closing():
                    return
                self._writer.write(reply)
                await self._writer.drain()
                self._act(request, reply)
                if request.method == "TEARDOWN":
                    return
        except BadInput as error:
            log.info("client of the simulator makes no sense", cause=error.message)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client is gone, as clients do
        finally:
            self._leave()

    def hear(self, packets: list[bytes], is_keyframe: bool) -> None:
        if self._writer.is_closing():
            return  # cut, and not gone yet
        if self._camera is None or self._camera.faults.is_stalled:
            self._waits_for_keyframe = True
            return
        if self._waits_for_keyframe and not is_keyframe:
            return
        if self._writer.transport.get_write_buffer_size() > BACKLOG_MAX_BYTES:
            self._fall_behind()
            return
        self._behind_since_sec = None
        self._waits_for_keyframe = False
        loss = self._camera.faults.loss
        self._writer.write(interleave([one for one in packets if random.random() >= loss], self._channel))

    def cut(self) -> None:
        self._writer.transport.abort()

    def _fall_behind(self) -> None:
        now_sec = asyncio.get_running_loop().time()
        self._waits_for_keyframe = True
        if self._behind_since_sec is None:
            self._behind_since_sec = now_sec
        elif now_sec - self._behind_since_sec > BEHIND_MAX_SEC:
            log.info("client of the simulator reads nothing and is left")
            self.cut()

    async def _reply(self, request: Request) -> bytes | None:
        """The answer; None when the camera ends the connection without one."""
        if request.method == "OPTIONS":
            return answer(request, 200, {"Public": METHODS})
        camera, stream = self._find(request.url)
        if camera is None:
            return answer(request, 404)
        if self._camera is not camera:
            self._leave()
            self._camera = camera
            camera.clients.add(self)
        if camera.faults.slow_sec:
            await asyncio.sleep(camera.faults.slow_sec)
        if camera.faults.is_offline:
            return None
        if not self._may(request, camera):
            challenge = self._digest.challenge() if self._digest else 'Basic realm="no login is right"'
            return answer(request, 401, {"WWW-Authenticate": challenge})
        try:
            return await self._reply_to_allowed(request, camera, stream)
        except BadInput as error:
            # A file that can't be played is found out when the first client asks for it.
            log.error("simulated camera can't be played", camera=camera.asked.name, cause=error.message)
            return answer(request, 503)

    async def _reply_to_allowed(self, request: Request, camera: SimulatedCamera, stream: str) -> bytes:
        match request.method:
            case "DESCRIBE":
                playback = await camera.playback(stream)
                base = request.url.rstrip("/") + "/"
                headers = {"Content-Base": base, "Content-Type": "application/sdp"}
                return answer(request, 200, headers, describe(playback.clip, camera.asked.name))
            case "SETUP" if camera.faults.is_full:
                camera.faults.refused_full += 1
                return answer(request, 453)
            case "SETUP":
                return await self._set_up(request, camera, stream)
            case "PLAY" | "GET_PARAMETER" | "TEARDOWN":
                given = request.headers.get("session", "").partition(";")[0]
                if self._session is None or given not in ("", self._session):
                    return answer(request, 454)
                return answer(request, 200, {"Session": self._session_header()})
        return answer(request, 501)

    async def _set_up(self, request: Request, camera: SimulatedCamera, stream: str) -> bytes:
        transport = request.headers.get("transport", "")
        if "RTP/AVP/TCP" not in transport.upper():
            return answer(request, 461)
        if self._session is not None:
            return answer(request, 455)
        channels = _INTERLEAVED.search(transport)
        self._channel = int(channels[1]) % 256 if channels else 0
        self._playback = await camera.playback(stream)
        self._session = secrets.token_hex(8)
        shown = f"RTP/AVP/TCP;unicast;interleaved={self._channel}-{self._channel + 1};ssrc={self._playback.ssrc:08X}"
        return answer(request, 200, {"Transport": shown, "Session": self._session_header()})

    def _act(self, request: Request, reply: bytes) -> None:
        """After the answer is on its way: video must not overtake it."""
        if request.method == "PLAY" and b" 200 " in reply[:16] and self._playback is not None:
            self._playback.add(self)

    def _may(self, request: Request, camera: SimulatedCamera) -> bool:
        if camera.faults.refuses_login:
            return False
        given = request.headers.get("authorization")
        return self._digest is None or self._digest.accepts(given, request.method, request.url)

    def _find(self, url: str) -> tuple[SimulatedCamera | None, str]:
        """The camera and stream an address names: /NAME, /NAME/main or /NAME/sub, perhaps with a track."""
        parts = [unquote(part) for part in urlsplit(url).path.split("/") if part and part != TRACK]
        if len(parts) not in (1, 2) or (len(parts) == 2 and parts[1] not in (MAIN, SUB)):
            return None, MAIN
        return self._cameras.get(parts[0]), parts[1] if len(parts) == 2 else MAIN

    def _session_header(self) -> str:
        return f"{self._session};timeout={SESSION_TIMEOUT_SEC}"

    def _leave(self) -> None:
        if self._playback is not None:
            self._playback.remove(self)
            self._playback = None
        if self._camera is not None:
            self._camera.clients.discard(self)
            self._camera = None
        self._session = None


def describe(clip: Clip, name: str) -> bytes:
    """The session description (RFC 4566, 6184)."""
    sets = ",".join(base64.b64encode(one).decode() for one in (clip.sps, clip.pps))
    lines = [
        "v=0",
        "o=- 0 0 IN IP4 0.0.0.0",
        f"s={name}",
        "c=IN IP4 0.0.0.0",
        "t=0 0",
        "a=control:*",
        "a=range:npt=now-",
        f"m=video 0 RTP/AVP {PAYLOAD_TYPE}",
        f"a=rtpmap:{PAYLOAD_TYPE} H264/90000",
        f"a=fmtp:{PAYLOAD_TYPE} packetization-mode=1;profile-level-id={clip.sps[1:4].hex().upper()};"
        f"sprop-parameter-sets={sets}",
        f"a=control:{TRACK}",
        "",
    ]
    return "\r\n".join(lines).encode()
