import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from camserver.domain.leases import Fault
from camserver.media.addresses import AddressPolicy, Place
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot
from camserver.media.sources import FileSource
from tests.rig.polling import TIMEOUT_SEC, until

STRICT = AddressPolicy()
HERE = AddressPolicy(allow_loopback=True)


def lying(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[object]:
    """The name service says that every name is at these addresses; returns what it was asked."""
    asked: list[object] = []

    def lies(*arguments: object, **_: object) -> list[Any]:
        asked.append(arguments)
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 554))
            for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", lies)
    return asked


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
        "::ffff:169.254.1.1",
        "64:ff9b::a9fe:a9fe",
    ],
)
@pytest.mark.parametrize("policy", [STRICT, HERE])
def test_addresses_without_cameras_are_refused(
    address: str, policy: AddressPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy.why_not(address)
    lying(monkeypatch, address)
    found = policy.resolve("camera.example", 554)
    assert isinstance(found, Miss)
    assert found.fault is Fault.REFUSED


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_this_machine_is_refused_unless_allowed(address: str) -> None:
    assert "allow_loopback" in str(STRICT.why_not(address))
    assert HERE.why_not(address) is None


def test_this_machine_is_known_by_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by those of its network; 127.0.0.1 stands for one, taken for no loopback."""
    monkeypatch.setattr("ipaddress.IPv4Address.is_loopback", False)
    assert "this machine" in str(STRICT.why_not("127.0.0.1"))


def test_the_server_is_refused() -> None:
    policy = AddressPolicy(own=frozenset({"192.0.2.7", "2001:db8::7"}))
    assert "server" in str(policy.why_not("192.0.2.7"))
    assert "server" in str(policy.why_not("::ffff:192.0.2.7"))
    assert "server" in str(policy.why_not("2001:db8:0::7"))
    assert policy.why_not("192.0.2.8") is None


@pytest.mark.parametrize("address", ["192.168.1.10", "10.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1"])
def test_addresses_of_cameras_are_fine(address: str) -> None:
    assert STRICT.why_not(address) is None


def test_unknown_name_has_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = STRICT.resolve("camera.example", 554)
    assert isinstance(found, Miss)
    assert found.fault is Fault.NO_ROUTE


def test_a_name_is_asked_for_once_and_ipv4_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = lying(monkeypatch, "2001:db8::7", "192.0.2.7")
    assert STRICT.resolve("camera.example", 8554) == Place(socket.AF_INET, "192.0.2.7", 8554)
    assert len(asked) == 1


def test_one_refused_address_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, "169.254.169.254", "192.0.2.7")
    assert isinstance(STRICT.resolve("camera.example", 554), Miss)


def test_places_in_addresses() -> None:
    assert Place(socket.AF_INET, "192.0.2.7", 554).netloc == "192.0.2.7:554"
    assert Place(socket.AF_INET6, "2001:db8::7", 554).netloc == "[2001:db8::7]:554"


async def test_an_address_waits_for_no_name_and_a_name_only_for_other_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering, asked = threading.Event(), []
    resolve = socket.getaddrinfo

    def hangs(host: str, *arguments: Any, **more: Any) -> Any:
        if host.endswith(".example"):
            asked.append(host)
            answering.wait(TIMEOUT_SEC)
            raise OSError("nobody there")
        return resolve(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    # More than there are threads for anything.
    waiting = [asyncio.ensure_future(STRICT.find(f"camera-{number}.example", 80)) for number in range(64)]
    try:
        await until(lambda: len(asked) > 0, "a name that is not answered")
        assert await STRICT.find("192.0.2.7", 80) == Place(socket.AF_INET, "192.0.2.7", 80)
        assert await STRICT.find("2001:db8::7", 80) == Place(socket.AF_INET6, "2001:db8::7", 80)
        (tmp_path / "a.jpg").write_bytes(b"a picture")
        shot = await asyncio.wait_for(FileSource(tmp_path / "a.jpg").grab(), TIMEOUT_SEC)
        assert isinstance(shot, JpegShot)
        await asyncio.wait_for(asyncio.to_thread(lambda: None), TIMEOUT_SEC)
    finally:
        answering.set()
    assert {type(one) for one in await asyncio.gather(*waiting)} == {Miss}
