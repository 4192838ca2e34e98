"""The ONVIF client against a device that is strict about logins and loose about everything else."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import aiohttp
import pytest

from camserver.base.clock import StoreClock
from camserver.base.errors import BadInput, Forbidden, NotFound, Unavailable
from camserver.base.secrets import Secret
from camserver.clients import onvif_discovery, onvif_xml
from camserver.clients.onvif import About, Login, OnvifDevice, service_url
from camserver.clients.onvif_discovery import Answers, discover
from camserver.clients.onvif_media import profiles
from tests.fakes.onvif.device import FakeDevice, FakeProfile, fake_device

# Answers come at once; a device that was not found by then never will be.
WAIT_SEC = 60.0


@pytest.fixture
async def device() -> AsyncIterator[FakeDevice]:
    profiles = [
        FakeProfile("sub", "H264", (640, 360), "rtsp://10.255.255.1:8554/Streaming/Channels/102"),
        FakeProfile("main", "H265", (2688, 1520), "rtsp://10.255.255.1:8554/Streaming/Channels/101?a=1&b=2", 25, 50),
    ]
    async with fake_device(FakeDevice(profiles=profiles)) as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


def client(device: FakeDevice, session: aiohttp.ClientSession, password: str | None = None) -> OnvifDevice:
    login = Login(device.user, Secret(password or device.password))
    return OnvifDevice(session, f"127.0.0.1:{device.http_port}", login, StoreClock())


@pytest.mark.parametrize("auth", ["token", "http", "none"])
async def test_streams_are_found_with_a_login_that_is_never_sent(
    device: FakeDevice, session: aiohttp.ClientSession, auth: str
) -> None:
    device.auth = auth
    asked = client(device, session)
    await asked.learn_time()
    assert await asked.about() == About("HIKVISION", "DS-2CD2043G2", "V5.7.3", "DS-0123")
    main, sub = await profiles(asked)
    assert (main.token, main.codec, main.width, main.height, main.fps, main.gop) == (
        "main",
        "H265",
        2688,
        1520,
        25,
        50,
    )
    # Path and port are the device's, the host is the one that was asked.
    assert main.stream_url == "rtsp://127.0.0.1:8554/Streaming/Channels/101?a=1&b=2"
    assert sub.stream_url == "rtsp://127.0.0.1:8554/Streaming/Channels/102"
    assert sub.snapshot_url == ""


async def test_the_newer_media_service_knows_more(device: FakeDevice, session: aiohttp.ClientSession) -> None:
    device.media = "newer"
    main, sub = await profiles(client(device, session))
    assert (main.codec, main.width, main.fps, main.gop) == ("H265", 2688, 25, 50)
    assert main.stream_url == "rtsp://127.0.0.1:8554/Streaming/Channels/101?a=1&b=2"
    assert sub.codec == "H264"


async def test_where_the_newer_one_is_broken_the_older_one_is_asked(
    device: FakeDevice, session: aiohttp.ClientSession
) -> None:
    device.media = "broken"
    assert [one.token for one in await profiles(client(device, session))] == ["sub"]


async def test_a_snapshot_address_is_taken_where_there_is_one(
    device: FakeDevice, session: aiohttp.ClientSession
) -> None:
    device.snapshot_uri = "http://10.255.255.1/snap.jpg"
    asked = client(device, session)
    await asked.learn_time()
    main, _ = await profiles(asked)
    assert main.snapshot_url == f"http://127.0.0.1:{device.http_port}/snap.jpg"


async def test_a_device_whose_clock_is_wrong_accepts_the_login(
    device: FakeDevice, session: aiohttp.ClientSession
) -> None:
    device.clock_skew = timedelta(days=-4000)
    asked = client(device, session)
    with pytest.raises(Forbidden):
        await asked.about()
    await asked.learn_time()
    assert (await asked.about()).serial == "DS-0123"


@pytest.mark.parametrize("auth", ["token", "http"])
async def test_a_wrong_password_is_told_without_it(
    device: FakeDevice, session: aiohttp.ClientSession, auth: str
) -> None:
    device.auth = auth
    with pytest.raises(Forbidden, match="refused user or password") as refused:
        await client(device, session, "falsches-passwort").about()
    assert "falsches" not in str(refused.value)


async def test_a_device_that_wants_a_login_says_so(device: FakeDevice, session: aiohttp.ClientSession) -> None:
    with pytest.raises(Forbidden, match="give user and password"):
        await OnvifDevice(session, f"127.0.0.1:{device.http_port}", None, StoreClock()).about()


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"",
        b"\xff\xfe\x00",
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a>" * 100 + b"</a>" * 100,
        b"<a>" + b"<b/>" * 30_000 + b"</a>",
        b"<a>" + b"x" * 1_100_000 + b"</a>",
    ],
    ids=["no XML", "nothing", "binary", "entity", "file", "deep", "wide", "long"],
)
async def test_what_a_device_sends_is_not_trusted(
    device: FakeDevice, session: aiohttp.ClientSession, answer: bytes
) -> None:
    device.raw_answer = answer
    with pytest.raises(onvif_xml.Malformed):
        await client(device, session).about()


async def test_nothing_there_and_no_service_there(device: FakeDevice, session: aiohttp.ClientSession) -> None:
    here = f"http://127.0.0.1:{device.http_port}"
    with pytest.raises(NotFound, match="is ONVIF switched on"):
        await OnvifDevice(session, f"{here}/elsewhere", None, StoreClock()).about()
    with pytest.raises(Unavailable, match="does not answer"):
        await OnvifDevice(session, "127.0.0.1:1", None, StoreClock()).about()


def test_addresses_of_devices() -> None:
    assert service_url("192.0.2.7") == "http://192.0.2.7/onvif/device_service"
    assert service_url("192.0.2.7:8000") == "http://192.0.2.7:8000/onvif/device_service"
    assert service_url("https://[fd00::1]/") == "https://[fd00::1]/onvif/device_service"
    assert service_url("http://192.0.2.7/own") == "http://192.0.2.7/own"
    for wrong in ("rtsp://192.0.2.7", "http://", "u:p@192.0.2.7", "192.0.2.7:99999", "http://[x"):
        with pytest.raises(BadInput):
            service_url(wrong)


async def test_a_device_is_found_by_its_address(device: FakeDevice) -> None:
    [found] = await discover(WAIT_SEC, ["127.0.0.1"], multicast=False, port=device.udp_port, wanted=lambda _: True)
    assert found.reference == device.reference
    assert (found.address, found.service_url) == ("127.0.0.1", device.service)
    assert (found.name, found.hardware, found.location) == ("Entrance camera", "DS-2CD2043G2", "hall")
    assert found.mac == "00:11:22:aa:bb:cc"


async def test_a_device_is_found_by_multicast() -> None:
    reference = "urn:uuid:of-the-multicast-test"
    async with fake_device(FakeDevice(reference=reference), in_group=True):
        found = await discover(WAIT_SEC, wanted=lambda one: one.reference == reference)
    assert reference in {one.reference for one in found}


async def test_a_device_that_names_another_host_is_asked_where_it_is(device: FakeDevice) -> None:
    device.named_address = "http://203.0.113.5/onvif/device_service"
    [found] = await discover(WAIT_SEC, ["127.0.0.1"], multicast=False, port=device.udp_port, wanted=lambda _: True)
    assert found.service_url == "http://127.0.0.1/onvif/device_service"


async def test_an_answer_to_another_question_does_not_count(device: FakeDevice) -> None:
    answers = Answers()
    foreign = device.probe_match(b"<a:MessageID>urn:uuid:other</a:MessageID>NetworkVideoTransmitter")
    own = device.probe_match(answers.question())
    assert foreign is not None
    assert own is not None
    answers.datagram_received(foreign, ("192.0.2.1", 3702))
    answers.datagram_received(b"<a/>", ("192.0.2.1", 3702))
    assert not answers.found
    answers.datagram_received(own, ("192.0.2.2", 3702))
    assert [one.address for one in answers.found.values()] == ["192.0.2.2"]


async def test_a_flood_of_devices_is_bounded(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onvif_discovery, "DEVICES_MAX", 3)
    answers = Answers()
    question = answers.question()
    for number in range(10):
        device.reference = f"urn:uuid:{number}"
        answer = device.probe_match(question)
        assert answer is not None
        answers.datagram_received(answer, ("192.0.2.1", 3702))
    assert len(answers.found) == 3


async def test_profiles_without_video_are_left_out(device: FakeDevice, session: aiohttp.ClientSession) -> None:
    device.profiles = [replace(device.profiles[0], codec=""), device.profiles[1]]
    asked = client(device, session)
    await asked.learn_time()
    assert [one.token for one in await profiles(asked)] == ["main"]
