"""The lean reader against a camera that does as it is told."""

import asyncio
import base64
import re
import socket
import struct
from collections.abc import Callable

import pytest

from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Miss, Packet, PacketSource
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets
from camserver.media.rtsp_lean.messages import Unfit
from camserver.media.rtsp_lean.reader import LeanPackets
from camserver.media.video_picture import decode
from camserver.services.simulator.messages import Request
from camserver.services.simulator.rtp import Packer, interleave
from tests.fakes.rtsp_script import SDP, Script, scripted
from tests.media.rtsp_lean.test_units import PPS, SPS, annex_b, hevc_packets, key, other
from tests.media.video import encoded, flat
from tests.rig.polling import until

TIMEOUT_SEC = 60
HERE = AddressPolicy(allow_loopback=True)
USER, PASSWORD = "viewer", "p@ss:w/rd?#%&ö"


def lean(
    url: str, stall_sec: float = TIMEOUT_SEC, connect_sec: float = TIMEOUT_SEC, login: bool = True
) -> LeanPackets:
    given = Login(USER, Secret(PASSWORD)) if login else None
    return LeanPackets(RtspAddress(url, given, HERE), connect_sec, stall_sec, lambda: 7)


class Read:
    """A reading in a thread of its own, until there are so many packets."""

    def __init__(self, source: PacketSource, count: int) -> None:
        self.packets: list[Packet] = []
        self.wanted = True
        self._count = count
        self._running = asyncio.ensure_future(asyncio.to_thread(source.read, self.packets.append, self._is_wanted))

    def _is_wanted(self) -> bool:
        return self.wanted and len(self.packets) < self._count

    async def end(self) -> Miss | None:
        return await asyncio.wait_for(self._running, TIMEOUT_SEC)


async def packets_of(script: Script, count: int = 1) -> list[Packet]:
    async with scripted(script) as url:
        read = Read(lean(url), count)
        assert await read.end() is None
        return read.packets


async def miss_of(script: Script, stall_sec: float = TIMEOUT_SEC) -> Miss:
    async with scripted(script) as url:
        miss = await Read(lean(url, stall_sec), 1_000_000).end()
        assert miss is not None
        assert PASSWORD not in miss.message
        assert "channel=1" not in miss.message
        return miss


def video(*pictures: list[bytes]) -> list[bytes]:
    return [packet for packets in pictures_of(*pictures) for packet in packets]


def pictures_of(*pictures: list[bytes]) -> list[list[bytes]]:
    """The packets of each."""
    packer = Packer(7, 65_500)
    return [packer.pack(nals, 3000 * number) for number, nals in enumerate(pictures)]


async def test_what_is_asked_and_what_comes() -> None:
    script = Script(packets=video([SPS, PPS, key()], [other()]))
    first, second = await packets_of(script, 2)
    assert (first.data, first.is_keyframe, first.pts, first.boot_ms) == (annex_b(SPS, PPS, key()), True, 0, 7)
    assert (second.data, second.is_keyframe, second.pts, second.dts) == (annex_b(other()), False, 3000, 3000)
    await until(lambda: "TEARDOWN" in script.methods, "the farewell")
    assert script.methods == ["OPTIONS", "DESCRIBE", "SETUP", "PLAY", "TEARDOWN"]
    addresses = [request.url.partition("/live")[2] for request in script.asked]
    assert addresses == ["?channel=1", "?channel=1", "?channel=1/video", "?channel=1", "?channel=1"]
    assert {request.headers.get("session") for request in script.asked[3:]} == {"abc"}
    assert script.connections == 1


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
async def test_digest(algorithm: str) -> None:
    script = Script(packets=video([key()]), login=(USER, PASSWORD, algorithm))
    await packets_of(script)
    script.login = (USER, "another", algorithm)
    script.asked.clear()
    assert (await miss_of(script)).fault is Fault.UNAUTHORIZED
    assert script.methods == ["OPTIONS", "DESCRIBE", "DESCRIBE"]  # a wrong password is tried once


async def test_nonces_that_are_good_for_one_request() -> None:
    """The camera only refuses: that the password is right was shown before."""
    script = Script(
        packets=video([key()]), login=(USER, PASSWORD, "MD5"), is_nonce_for_once=True, session="abc;timeout=2"
    )
    async with scripted(script) as url:
        read = Read(lean(url), 2)
        await until(lambda: script.methods.count("GET_PARAMETER") >= 4, "signs of life")
        read.wanted = False
        assert await read.end() is None
    asked = [method for method in script.methods if method not in ("GET_PARAMETER", "TEARDOWN")]
    assert asked == ["OPTIONS", "DESCRIBE", "DESCRIBE", "SETUP", "SETUP", "PLAY", "PLAY"]
    # Each sign of life is repeated at once, with the new nonce, and then taken.
    alive = [request for request in script.asked if request.method == "GET_PARAMETER"]
    assert ["nonce-" in request.headers.get("authorization", "") for request in alive[:2]] == [True, True]
    assert alive[0].headers["authorization"] != alive[1].headers["authorization"]


class ChangingNonces(Script):
    """A new one with every reply."""

    def reply(self, request: Request) -> bytes:
        self.nonce = f"nonce-{len(self.asked)}"
        return Script.reply(self, request)


async def test_a_wrong_password_is_tried_once_also_with_new_nonces() -> None:
    script = ChangingNonces(login=(USER, "another", "MD5"))
    assert (await miss_of(script)).fault is Fault.UNAUTHORIZED
    assert script.methods == ["OPTIONS", "DESCRIBE", "DESCRIBE"]


async def test_no_login_is_given_but_one_is_wanted() -> None:
    script = Script(login=(USER, PASSWORD, "MD5"))
    async with scripted(script) as url:
        miss = await Read(lean(url, login=False), 1).end()
    assert miss is not None
    assert (miss.fault, "needs a user and password" in miss.message) == (Fault.UNAUTHORIZED, True)


async def test_a_login_of_an_unknown_kind() -> None:
    assert (await miss_of(Script(login=(USER, PASSWORD, "SHA-512")))).fault is Fault.UNAUTHORIZED


@pytest.mark.parametrize(
    ("method", "status", "fault"),
    [
        ("DESCRIBE", 404, Fault.NOT_FOUND),
        ("DESCRIBE", 403, Fault.UNAUTHORIZED),
        ("DESCRIBE", 302, Fault.NO_VIDEO),
        ("DESCRIBE", 500, Fault.NO_VIDEO),
        ("SETUP", 461, Fault.NO_VIDEO),
        ("SETUP", 453, Fault.NO_VIDEO),
        ("PLAY", 503, Fault.NO_VIDEO),
    ],
)
async def test_refusals(method: str, status: int, fault: Fault) -> None:
    script = Script(status={method: status}, headers={method: {"Location": "rtsp://elsewhere/"}})
    miss = await miss_of(script)
    assert (miss.fault, miss.timed_out) == (fault, False)
    assert script.connections == 1


async def test_a_camera_that_knows_no_options() -> None:
    assert await packets_of(Script(packets=video([key()]), status={"OPTIONS": 501}))


async def test_nothing_after_play() -> None:
    miss = await miss_of(Script(), stall_sec=0.2)
    assert (miss.fault, miss.timed_out) == (Fault.NO_VIDEO, True)


async def test_a_camera_that_hangs_up() -> None:
    assert (await miss_of(Script(packets=video([key()]), hangs_up=True))).fault is Fault.NO_VIDEO


async def test_signs_of_life_follow_the_session_s_time() -> None:
    script = Script(packets=video([key()]), session="abc;timeout=2")
    async with scripted(script) as url:
        read = Read(lean(url), 2)
        await until(lambda: script.methods.count("GET_PARAMETER") >= 2, "signs of life")
        script.status["GET_PARAMETER"] = 501
        await until(lambda: script.methods[-1] == "OPTIONS", "another way to give them")
        script.status["OPTIONS"] = 454
        miss = await read.end()
        assert miss is not None
        assert "session" in miss.message


async def test_options_where_a_camera_knows_nothing_better() -> None:
    script = Script(packets=video([key()]), session="abc;timeout=2", public="OPTIONS, DESCRIBE")
    async with scripted(script) as url:
        read = Read(lean(url), 2)
        await until(lambda: script.methods.count("OPTIONS") >= 2, "a sign of life")
        read.wanted = False
        assert await read.end() is None


async def test_packets_before_the_reply_to_play_are_not_lost() -> None:
    script = Script(before_play=interleave(video([SPS, PPS, key()]), 0), packets=())
    assert [one.data for one in await packets_of(script)] == [annex_b(SPS, PPS, key())]


async def test_garbage_reports_and_requests_between_packets() -> None:
    report = interleave([b"\x80\xc8\0\6" + bytes(24)], 1)
    request = b"SET_PARAMETER rtsp://x RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 3\r\n\r\nabc"
    script = Script(packets=video([key(20_000)], [other()]), between=b"\0\0rubbish" + report + request)
    assert len(await packets_of(script, 2)) == 2


async def test_another_codec_and_odd_ways_are_for_another_reader() -> None:
    for sdp in (
        SDP.replace(b"H264", b"JPEG"),
        SDP.replace(b"packetization-mode=1", b"packetization-mode=2"),
        SDP.replace(b"a=rtpmap:96 H264/90000\n", b""),
    ):
        async with scripted(Script(sdp=sdp)) as url:
            with pytest.raises(Unfit):
                await Read(lean(url), 1).end()


async def test_another_codec_with_a_login_that_no_other_reader_knows() -> None:
    """It is said as it is, and not taken for a wrong password."""
    jpeg = SDP.replace(b"H264", b"JPEG")
    miss = await miss_of(Script(sdp=jpeg, login=(USER, PASSWORD, "SHA-256")))
    assert (miss.fault, "SHA-256" in miss.message) == (Fault.NO_VIDEO, True)
    with pytest.raises(Unfit):
        await miss_of(Script(sdp=jpeg, login=(USER, PASSWORD, "MD5")))


ODD = struct.pack("!BBHII", 0x80, 96, 1, 0, 7) + bytes([25, 0, 0, 0])


async def test_packets_for_another_reader_that_could_not_log_in() -> None:
    miss = await miss_of(Script(packets=[ODD], login=(USER, PASSWORD, "SHA-256")))
    assert (miss.fault, "kind 25" in miss.message) == (Fault.NO_VIDEO, True)
    with pytest.raises(Unfit):
        await miss_of(Script(packets=[ODD], login=(USER, PASSWORD, "MD5")))


class OddOverUdp(Script):
    """Sends the odd packet to the port that was asked for."""

    port = 0

    def reply(self, request: Request) -> bytes:
        if asked := re.search(r"client_port=(\d+)", request.headers.get("transport", "")):
            self.port = int(asked[1])
        if request.method == "PLAY":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.sendto(ODD, ("127.0.0.1", self.port))
        return Script.reply(self, request)


async def test_packets_for_another_reader_that_does_not_read_over_udp() -> None:
    script = OddOverUdp(headers={"SETUP": {"Transport": "RTP/AVP;unicast;server_port=4000-4001"}})
    async with scripted(script) as url:
        source = LeanPackets(RtspAddress(url, None, HERE), TIMEOUT_SEC, TIMEOUT_SEC, lambda: 7, transport="udp")
        miss = await Read(source, 1).end()
    assert miss is not None
    assert (miss.fault, "kind 25" in miss.message) == (Fault.NO_VIDEO, True)


class Noted:
    """A reader that only notes that it was asked."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        self._asked.append("ffmpeg")
        return None


async def test_one_odd_connection_is_not_ffmpeg_s_for_ever() -> None:
    script, asked = Script(packets=[ODD]), list[str]()
    async with scripted(script) as url:
        source = RtspPackets(RtspAddress(url, None, HERE), TIMEOUT_SEC, lambda: 7)
        source._ffmpeg = Noted(asked)  # type: ignore[assignment]
        for _ in range(7):
            await asyncio.to_thread(source.read, lambda packet: None, always)
        # Asked again at the second, the fourth and then the eighth: ever more rarely while it does not suit.
        assert (len(asked), script.connections) == (7, 3)
        script.packets = video([key()])
        read = Read(source, 1)
        assert await read.end() is None
        assert (len(read.packets), len(asked)) == (1, 7)


@pytest.mark.parametrize("sdp", [b"", b"v=0\n", b"m=audio 0 RTP/AVP 0\n", b"m=video\n", b"\xff\xfe" * 100])
async def test_no_video_in_the_description(sdp: bytes) -> None:
    assert (await miss_of(Script(sdp=sdp))).fault is Fault.NO_VIDEO


async def test_parameter_sets_of_the_description_and_new_ones_on_the_way() -> None:
    """A camera whose size changes while it sends: each packet says what is needed to decode it."""
    small, wide = encoded([flat(90, (320, 180))])[0], encoded([flat(90, (640, 360))])[0]
    parts = [nals_of(one.data) for one in (small, wide)]
    sets = [[nal for nal in nals if nal[0] & 31 in (7, 8)] for nals in parts]
    sprop = b",".join(base64.b64encode(nal) for nal in sets[0])
    sdp = SDP.replace(b"packetization-mode=1", b"packetization-mode=1;sprop-parameter-sets=" + sprop)
    bare = [nal for nal in parts[0] if nal[0] & 31 not in (7, 8)]
    packets = await packets_of(Script(sdp=sdp, packets=video(bare, parts[1], parts[1])), 3)
    assert [one.stream.extradata for one in packets] == [annex_b(*sets[0])] + [annex_b(*sets[1])] * 2
    assert [decode([one]).size for one in packets] == [(320, 180), (640, 360), (640, 360)]


def nals_of(data: bytes) -> list[bytes]:
    return [nal for nal in data.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if nal]


async def test_a_base_that_is_named_and_a_whole_address_of_the_track() -> None:
    script = Script(packets=video([key()]), headers={"DESCRIBE": {"Content-Base": "rtsp://inside/base/"}})
    await packets_of(script)
    assert [request.url for request in script.asked[2:4]] == ["rtsp://inside/base/video", "rtsp://inside/base/"]
    script = Script(packets=video([key()]), sdp=SDP.replace(b"control:video", b"control:rtsp://inside/track1"))
    await packets_of(script)
    assert script.asked[2].url == "rtsp://inside/track1"


async def test_many_cameras_share_a_thread() -> None:
    script = Script(packets=video([SPS, PPS, key()], [other()]))
    async with scripted(script) as url:
        reads = [Read(lean(url), 2) for _ in range(5)]
        assert [await read.end() for read in reads] == [None] * 5
        assert {len(read.packets) for read in reads} == {2}


async def test_a_consumer_s_crash_ends_only_its_own_reading() -> None:
    def crash(packet: Packet) -> None:
        raise RuntimeError("a consumer's fault")

    script = Script(packets=video([key()]))
    async with scripted(script) as url:
        source = lean(url)
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(asyncio.to_thread(source.read, crash, always), TIMEOUT_SEC)
        read = Read(lean(url), 1)
        assert await read.end() is None


def always() -> bool:
    return True


async def test_another_codec_after_the_next_connection() -> None:
    script = Script(packets=video([key()]), hangs_up=True)
    async with scripted(script) as url:
        source = lean(url)
        first = Read(source, 2)
        assert await first.end() is not None
        script.sdp, script.packets = SDP.replace(b"H264", b"H265"), hevc_packets()
        second = Read(source, 1)
        assert await second.end() is None
    assert [one.packets[0].stream.codec for one in (first, second)] == ["h264", "hevc"]


@pytest.mark.parametrize("given", ["RTP/AVP/TCP;interleaved=0-1", "RTP/AVP;unicast"])
async def test_a_camera_that_does_not_send_over_udp(given: str) -> None:
    script = Script(headers={"SETUP": {"Transport": given}})
    async with scripted(script) as url:
        source = LeanPackets(RtspAddress(url, None, HERE), TIMEOUT_SEC, TIMEOUT_SEC, lambda: 7, transport="udp")
        miss = await Read(source, 1).end()
    assert miss is not None
    assert "set its transport to tcp" in miss.message


async def test_nothing_is_followed_also_by_ffmpeg() -> None:
    """FFmpeg would go wherever a camera sends it."""
    elsewhere = Script(sdp=SDP.replace(b"H264", b"JPEG"))
    async with scripted(elsewhere) as there:
        script = Script(status={"DESCRIBE": 302}, headers={"DESCRIBE": {"Location": there}})
        async with scripted(script) as url:
            source = FfmpegPackets(RtspAddress(url, None, HERE), TIMEOUT_SEC, 0.2, lambda: 7)
            miss = await asyncio.to_thread(source.read, lambda packet: None, always)
    assert miss is not None
    assert miss.fault is Fault.NO_VIDEO
    assert "DESCRIBE" in script.methods
    assert elsewhere.connections == 0


# A report without anything in it, then the wish: who asks, and of which stream.
KEYFRAME_ASKED = struct.Struct("!BBHIBBHII")


def wishes(script: Script) -> list[tuple[int, ...]]:
    return [KEYFRAME_ASKED.unpack(report)[4:7] + KEYFRAME_ASKED.unpack(report)[8:] for report in script.reports]


async def test_whoever_comes_in_the_middle_asks_for_a_keyframe() -> None:
    one, two, three, four = pictures_of([other()], [other()], [SPS, PPS, key()], [other()])
    script = Script(packets=[*one, *two], then=[*three, *four])
    packets = await packets_of(script, 4)
    assert [one.is_keyframe for one in packets] == [False, False, True, False]
    # The stream has the number 7.
    assert wishes(script) == [(0x81, 206, 2, 7)]


async def test_a_camera_that_begins_with_a_keyframe_is_not_asked() -> None:
    script = Script(packets=video([SPS, PPS, key()], [other()], [other()]))
    await packets_of(script, 3)
    await until(lambda: "TEARDOWN" in script.methods, "the farewell")
    assert script.reports == []


async def test_a_keyframe_is_asked_for_where_packets_are_missing() -> None:
    first, _, behind_hole, last = pictures_of([SPS, PPS, key()], [other()], [other()], [SPS, PPS, key()])
    script = Script(packets=[*first, *behind_hole], then=last)
    packets = await packets_of(script, 2)
    assert [one.is_keyframe for one in packets] == [True, True]
    assert wishes(script) == [(0x81, 206, 2, 7)]


async def test_a_camera_that_hangs_up_when_asked_is_not_asked_again() -> None:
    script = Script(packets=video([other()], [other()]), hangs_up_at_reports=True)
    async with scripted(script) as url:
        source = lean(url)
        assert await Read(source, 1_000_000).end() is not None
        assert len(script.reports) == 1
        script.packets = video([other()], [other()], [SPS, PPS, key()])
        read = Read(source, 3)
        assert await read.end() is None
    assert read.packets[-1].is_keyframe
    assert len(script.reports) == 1


async def test_one_that_nobody_wanted_for_long_enough_is_asked_the_next_time() -> None:
    script = Script(packets=video([other()], [other()]))
    async with scripted(script) as url:
        source = lean(url)
        for asked in (1, 2):
            read = Read(source, 1_000_000)
            await until(lambda asked=asked: len(script.reports) >= asked, "the camera is asked")
            read.wanted = False
            assert await read.end() is None
