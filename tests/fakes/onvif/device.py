"""An ONVIF camera without a camera: SOAP over HTTP and WS-Discovery over UDP, as strict about logins as real ones."""

import asyncio
import base64
import hashlib
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aiohttp import web

from tests.rig.ports import LOOPBACK, listening_socket, port_of

GROUP = "239.255.255.250"
DISCOVERY_PORT = 3702
NONCE_MAX_AGE = timedelta(minutes=5)
_NS = (
    'xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:tds="http://www.onvif.org/ver10/device/wsdl" '
    'xmlns:trt="http://www.onvif.org/ver10/media/wsdl" xmlns:tr2="http://www.onvif.org/ver20/media/wsdl" '
    'xmlns:tt="http://www.onvif.org/ver10/schema" '
    'xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" '
    'xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery" xmlns:dn="http://www.onvif.org/ver10/network/wsdl"'
)
_FREE = ("GetSystemDateAndTime",)


@dataclass(frozen=True, slots=True)
class FakeProfile:
    token: str
    codec: str  # empty: no video
    size: tuple[int, int]
    stream_uri: str
    fps: int = 15
    gop: int = 30


@dataclass(slots=True)
class FakeDevice:
    """What the device is and does; tests change it while it runs."""

    reference: str = "urn:uuid:3fa1fe68-b915-4053-a3e1-001122334455"
    user: str = "onvif"
    password: str = "geheim & <sicher>"
    profiles: list[FakeProfile] = field(default_factory=list)
    clock_skew: timedelta = timedelta()
    auth: str = "token"  # token: WS-UsernameToken; http: HTTP digest; none
    snapshot_uri: str | None = None  # None: it has none
    media: str = "older"  # older, newer (which alone knows H.265) or broken (names a newer one that does not answer)
    raw_answer: bytes | None = None  # sent instead of any answer
    named_address: str | None = None  # what it claims its service is at
    asked: list[str] = field(default_factory=list)
    http_port: int = 0
    udp_port: int = 0

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.clock_skew

    @property
    def service(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/onvif/device_service"

    async def answer(self, request: web.Request) -> web.Response:
        text = (await request.read()).decode()
        found = re.search(r"<s:Body><(t\w\w):(\w+)", text)
        service, question = (found[1], found[2]) if found else ("", "")
        self.asked.append(question)
        if self.raw_answer is not None:
            return web.Response(body=self.raw_answer, content_type="application/soap+xml")
        if question not in _FREE:
            if self.auth == "http" and not self._http_login(request):
                challenge = 'Digest realm="cam", nonce="abc123", qop="auth", algorithm=MD5'
                return web.Response(status=401, headers={"WWW-Authenticate": challenge})
            if self.auth == "token" and not self._token_login(text):
                return _soap(_fault("NotAuthorized"), status=400)
        body = self._newer_body(question, text) if service == "tr2" else self._body(question, text)
        return _soap(body) if body else _soap(_fault("ActionNotSupported"), status=500)

    def _http_login(self, request: web.Request) -> bool:
        given = dict(re.findall(r'(\w+)="?([^",]+)', request.headers.get("Authorization", "")))
        if given.get("username") != self.user or given.get("nonce") != "abc123":
            return False
        secret = _md5(f"{self.user}:cam:{self.password}")
        asked = _md5(f"{request.method}:{given['uri']}")
        response: str = given["response"]
        return response == _md5(f"{secret}:abc123:{given['nc']}:{given['cnonce']}:auth:{asked}")

    def _token_login(self, text: str) -> bool:
        parts = [
            re.search(pattern, text)
            for pattern in (
                r"<w:Username>([^<]*)<",
                r"#PasswordDigest\">([^<]*)<",
                r"<w:Nonce>([^<]*)<",
                r"<u:Created>([^<]*)<",
            )
        ]
        if not all(parts) or self.password in text:
            return False
        user, proof, nonce, created = (part[1] for part in parts if part)
        age = self.now - datetime.fromisoformat(created)
        digest = hashlib.sha1(base64.b64decode(nonce) + created.encode() + self.password.encode()).digest()
        return user == self.user and abs(age) < NONCE_MAX_AGE and proof == base64.b64encode(digest).decode()

    def _body(self, question: str, text: str) -> str | None:
        if question == "GetSystemDateAndTime":
            now = self.now
            return (
                "<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:UTCDateTime>"
                f"<tt:Time><tt:Hour>{now.hour}</tt:Hour><tt:Minute>{now.minute}</tt:Minute>"
                f"<tt:Second>{now.second}</tt:Second></tt:Time><tt:Date><tt:Year>{now.year}</tt:Year>"
                f"<tt:Month>{now.month}</tt:Month><tt:Day>{now.day}</tt:Day></tt:Date></tt:UTCDateTime>"
                "</tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>"
            )
        if question == "GetDeviceInformation":
            return (
                "<tds:GetDeviceInformationResponse><tds:Manufacturer>HIKVISION</tds:Manufacturer>"
                "<tds:Model>DS-2CD2043G2</tds:Model><tds:FirmwareVersion>V5.7.3</tds:FirmwareVersion>"
                "<tds:SerialNumber>DS-0123</tds:SerialNumber><tds:HardwareId>88</tds:HardwareId>"
                "</tds:GetDeviceInformationResponse>"
            )
        if question == "GetServices" and self.media != "older":
            xaddr = f"http://10.255.255.1:{self.http_port}/onvif/media2"
            return (
                "<tds:GetServicesResponse><tds:Service><tds:Namespace>http://www.onvif.org/ver20/media/wsdl"
                f"</tds:Namespace><tds:XAddr>{xaddr}</tds:XAddr></tds:Service></tds:GetServicesResponse>"
            )
        if question == "GetCapabilities":
            # As behind a router: the host it names is not the one it is reached by.
            xaddr = f"http://10.255.255.1:{self.http_port}/onvif/media"
            return (
                f"<tds:GetCapabilitiesResponse><tds:Capabilities><tt:Media><tt:XAddr>{xaddr}</tt:XAddr>"
                "</tt:Media></tds:Capabilities></tds:GetCapabilitiesResponse>"
            )
        if question == "GetProfiles":
            known = [one for one in self.profiles if self.media == "older" or one.codec != "H265"]
            shown = "".join(_profile(one) for one in known)
            return f"<trt:GetProfilesResponse>{shown}</trt:GetProfilesResponse>"
        token = re.search(r"<trt:ProfileToken>([^<]*)<", text)
        profile = next((one for one in self.profiles if token and one.token == token[1]), None)
        if question == "GetStreamUri" and profile is not None:
            return _uri("GetStreamUriResponse", profile.stream_uri)
        if question == "GetSnapshotUri" and self.snapshot_uri is not None:
            return _uri("GetSnapshotUriResponse", self.snapshot_uri)
        return None

    def _newer_body(self, question: str, text: str) -> str | None:
        if self.media != "newer":
            return None
        if question == "GetProfiles":
            shown = "".join(_newer_profile(one) for one in self.profiles)
            return f"<tr2:GetProfilesResponse>{shown}</tr2:GetProfilesResponse>"
        token = re.search(r"<tr2:ProfileToken>([^<]*)<", text)
        profile = next((one for one in self.profiles if token and one.token == token[1]), None)
        if question == "GetStreamUri" and profile is not None and "RtspUnicast" in text:
            uri = profile.stream_uri.replace("&", "&amp;")
            return f"<tr2:GetStreamUriResponse><tr2:Uri>{uri}</tr2:Uri></tr2:GetStreamUriResponse>"
        return None

    def probe_match(self, question: bytes) -> bytes | None:
        message_id = re.search(rb"<a:MessageID>([^<]+)<", question)
        if message_id is None or b"NetworkVideoTransmitter" not in question:
            return None
        scopes = (
            "onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/Entrance%20camera "
            "onvif://www.onvif.org/hardware/DS-2CD2043G2 onvif://www.onvif.org/MAC/00:11:22:AA:BB:CC "
            "onvif://www.onvif.org/location/hall"
        )
        body = (
            f"<d:ProbeMatches><d:ProbeMatch><a:EndpointReference><a:Address>{self.reference}</a:Address>"
            f"</a:EndpointReference><d:Types>dn:NetworkVideoTransmitter</d:Types><d:Scopes>{scopes}</d:Scopes>"
            f"<d:XAddrs>http://169.254.1.1/x {self.named_address or self.service}</d:XAddrs>"
            "<d:MetadataVersion>10</d:MetadataVersion></d:ProbeMatch></d:ProbeMatches>"
        )
        header = f"<a:RelatesTo>{message_id[1].decode()}</a:RelatesTo>"
        return f"<s:Envelope {_NS}><s:Header>{header}</s:Header><s:Body>{body}</s:Body></s:Envelope>".encode()


class _Discovery(asyncio.DatagramProtocol):
    """Answers from loopback, whichever way it was asked: nowhere else is its service."""

    def __init__(self, device: FakeDevice, answers: socket.socket) -> None:
        self._device = device
        self._answers = answers

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._device.probe_match(data)
        if answer is not None:
            self._answers.sendto(b"not XML at all", addr)
            self._answers.sendto(answer, addr)


@asynccontextmanager
async def fake_device(device: FakeDevice, *, in_group: bool = False) -> AsyncIterator[FakeDevice]:
    """Runs it on loopback; `in_group` also joins the multicast group on the usual port."""
    app = web.Application()
    app.router.add_post("/onvif/{service}", device.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    sock = listening_socket()
    device.http_port = port_of(sock)
    await web.SockSite(runner, sock).start()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setblocking(False)
    if in_group:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        udp.bind(("", DISCOVERY_PORT))
        member = struct.pack("4s4si", socket.inet_aton(GROUP), b"", socket.if_nametoindex("lo"))
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    else:
        udp.bind((LOOPBACK, 0))
    device.udp_port = udp.getsockname()[1]
    answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    answers.bind((LOOPBACK, 0))
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Discovery(device, answers), sock=udp
    )
    try:
        yield device
    finally:
        transport.close()
        answers.close()
        await runner.cleanup()


def _profile(one: FakeProfile) -> str:
    if not one.codec:
        return f'<trt:Profiles token="{one.token}"><tt:Name>sound only</tt:Name></trt:Profiles>'
    return (
        f'<trt:Profiles token="{one.token}" fixed="true"><tt:Name>{one.token} name</tt:Name>'
        f'<tt:VideoEncoderConfiguration token="v"><tt:Encoding>{one.codec}</tt:Encoding>'
        f"<tt:Resolution><tt:Width>{one.size[0]}</tt:Width><tt:Height>{one.size[1]}</tt:Height></tt:Resolution>"
        f"<tt:RateControl><tt:FrameRateLimit>{one.fps}</tt:FrameRateLimit></tt:RateControl>"
        f"<tt:{one.codec}><tt:GovLength>{one.gop}</tt:GovLength></tt:{one.codec}>"
        "</tt:VideoEncoderConfiguration></trt:Profiles>"
    )


def _newer_profile(one: FakeProfile) -> str:
    return (
        f'<tr2:Profiles token="{one.token}"><tr2:Name>{one.token} name</tr2:Name><tr2:Configurations>'
        f'<tr2:VideoEncoder token="v" GovLength="{one.gop}"><tt:Encoding>{one.codec}</tt:Encoding>'
        f"<tt:Resolution><tt:Width>{one.size[0]}</tt:Width><tt:Height>{one.size[1]}</tt:Height></tt:Resolution>"
        f"<tt:RateControl><tt:FrameRateLimit>{one.fps}</tt:FrameRateLimit></tt:RateControl>"
        "</tr2:VideoEncoder></tr2:Configurations></tr2:Profiles>"
    )


def _uri(name: str, uri: str) -> str:
    shown = uri.replace("&", "&amp;")
    return f"<trt:{name}><trt:MediaUri><tt:Uri>{shown}</tt:Uri></trt:MediaUri></trt:{name}>"


def _fault(kind: str) -> str:
    return (
        "<s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>ter:"
        f"{kind}</s:Value></s:Subcode></s:Code><s:Reason><s:Text>words of the device</s:Text></s:Reason></s:Fault>"
    )


def _soap(body: str, status: int = 200) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><s:Envelope {_NS}><s:Body>{body}</s:Body></s:Envelope>'
    return web.Response(text=text, status=status, content_type="application/soap+xml")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
