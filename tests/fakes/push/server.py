"""The fake push service's HTTP server."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.fakes.push.browser import Browser, unb64
from tests.rig.ports import LOOPBACK, listening_socket, port_of

GOT_MAX = 10_000
DAY_SEC = 86_400


class Fault(StrEnum):
    BUSY = "busy"  # 429 with Retry-After
    BROKEN = "broken"  # 500
    AWAY = "away"  # 503
    GONE = "gone"  # 410
    UNKNOWN = "unknown"  # 404
    FORBIDDEN = "forbidden"  # 403
    TOO_LONG = "too_long"  # 413
    CUT = "cut"  # the connection ends without an answer
    CUT_AFTER = "cut_after"  # it is taken, and then the connection ends
    REDIRECT = "redirect"  # to somewhere else
    CHATTER = "chatter"  # 201, and megabytes nobody asked for
    HOLD = "hold"  # nothing until `released`, then the connection ends


@dataclass(frozen=True, slots=True)
class Got:
    """A message that a browser got."""

    device: str
    text: dict[str, object]
    headers: dict[str, str]
    claims: dict[str, object]


@dataclass(slots=True)
class Device:
    browser: Browser
    server_key: str  # whom it subscribed to
    faults: deque[Fault] = field(default_factory=deque)
    asked: int = 0


class PushService:
    """`async with PushService() as service:` then `service.subscribe(...)`. `now_sec` is what it takes for now."""

    def __init__(self, now_sec: int) -> None:
        self.now_sec = now_sec
        self.devices: dict[str, Device] = {}
        self.got: deque[Got] = deque(maxlen=GOT_MAX)
        self.refused: list[str] = []
        self.released = asyncio.Event()
        self.retry_after_sec = 30
        self._runner: web.AppRunner | None = None
        self.url = ""

    def subscribe(self, server_key: str, *faults: Fault) -> tuple[str, Browser]:
        """A new browser and the address it is reached at. It meets the faults in turn, then is well."""
        name = f"device{len(self.devices)}"
        self.devices[name] = Device(Browser(), server_key, deque(faults))
        return f"{self.url}/push/{name}", self.devices[name].browser

    def texts(self, endpoint: str) -> list[dict[str, object]]:
        name = endpoint.rpartition("/")[2]
        return [one.text for one in self.got if one.device == name]

    async def __aenter__(self) -> "PushService":
        app = web.Application()
        app.router.add_post("/push/{device}", self._push)
        app.router.add_route("*", "/elsewhere", self._elsewhere)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        sock = listening_socket()
        self.url = f"http://{LOOPBACK}:{port_of(sock)}"
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _elsewhere(self, request: web.Request) -> web.Response:
        self.refused.append("followed a redirect")
        return web.Response(status=201)

    async def _push(self, request: web.Request) -> web.StreamResponse:
        device = self.devices.get(request.match_info["device"])
        body = await request.read()
        if device is None:
            return web.Response(status=404)
        device.asked += 1
        fault = device.faults.popleft() if device.faults else None
        answer = await self._misbehave(request, fault)
        if answer is not None:
            return answer
        try:
            claims = self._check_sender(request, device)
            text = json.loads(device.browser.open(body))
            if request.headers["Content-Encoding"] != "aes128gcm" or int(request.headers["TTL"]) < 0:
                raise ValueError("wrong headers")
        except (KeyError, ValueError, InvalidSignature) as error:
            self.refused.append(repr(error))
            return web.Response(status=403, text="refused")
        self.got.append(Got(request.match_info["device"], text, dict(request.headers), claims))
        if fault is Fault.CUT_AFTER:
            _cut(request)
        if fault is Fault.CHATTER:
            return web.Response(status=201, body=b"x" * 5_000_000)
        return web.Response(status=201)

    async def _misbehave(self, request: web.Request, fault: Fault | None) -> web.StreamResponse | None:
        """The answer of a fault that refuses; None for the others."""
        plain = {
            Fault.BROKEN: 500,
            Fault.AWAY: 503,
            Fault.GONE: 410,
            Fault.UNKNOWN: 404,
            Fault.FORBIDDEN: 403,
            Fault.TOO_LONG: 413,
        }
        if fault in plain:
            return web.Response(status=plain[fault], text="no")
        if fault is Fault.BUSY:
            return web.Response(status=429, headers={"Retry-After": str(self.retry_after_sec)})
        if fault is Fault.REDIRECT:
            return web.Response(status=307, headers={"Location": f"{self.url}/elsewhere"})
        if fault is Fault.HOLD:
            await self.released.wait()
        if fault in (Fault.HOLD, Fault.CUT):
            _cut(request)
            return web.Response(status=500)  # which nobody gets
        return None

    def _check_sender(self, request: web.Request, device: Device) -> dict[str, object]:
        scheme, _, rest = request.headers["Authorization"].partition(" ")
        fields = dict(part.strip().split("=", 1) for part in rest.split(","))
        signed, _, signature = fields["t"].rpartition(".")
        head, claims = (json.loads(unb64(part)) for part in signed.split("."))
        if scheme != "vapid" or head["alg"] != "ES256" or fields["k"] != device.server_key:
            raise ValueError("not the sender that the browser subscribed to")
        if claims["aud"] != self.url or not self.now_sec < claims["exp"] <= self.now_sec + DAY_SEC:
            raise ValueError(f"not for this service, or not for now: {claims}")
        if not str(claims["sub"]).startswith(("mailto:", "https://")):
            raise ValueError("nobody to be told of trouble")
        raw = unb64(signature)
        der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64(fields["k"]))
        public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
        found: dict[str, object] = claims
        return found


def _cut(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()
