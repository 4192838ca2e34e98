"""Addresses that people typed: resolved once, checked, and never somewhere else than checked."""

import asyncio
import errno
import socket
from typing import Any

import aiohttp
import pytest

from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy, retry_after_sec
from camserver.domain.deliveries import DeliveryError, Trouble

STRICT = OutgoingPolicy(own=frozenset({"203.0.113.9"}))


def lying(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """The name service says that every name is at these addresses."""

    def lies(*_: object, **__: object) -> list[Any]:
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80))
            for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", lies)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "100.100.100.200",
     "168.63.129.16", "::ffff:168.63.129.16", "fd00:c1::a9fe:a9fe", "fd00:42::42",
     "0.0.0.0", "224.0.0.1", "127.0.0.1", "::1", "203.0.113.9"],
)  # fmt: skip
async def test_where_secrets_are_and_where_we_are_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    http = OutgoingHttp(STRICT)
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(DeliveryError) as by_literal:
        await http.request("GET", f"http://{host}/")
    lying(monkeypatch, address)
    with pytest.raises(DeliveryError) as by_name:
        await http.request("GET", "http://receiver.example/")
    await http.close()
    assert by_literal.value.kind is by_name.value.kind is Trouble.REFUSED


@pytest.mark.parametrize(
    "host",
    [
        "１２７.0.0.1",
        "127。0。0。1",
        "１６９。254。169。254",
        "[fe80::１]",
        "①27.0.0.1",
        "[::１]",
        "１０0.100.100.200",
    ],
)
async def test_an_address_is_checked_as_the_client_reads_it(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full-width digits and dots are plain ones to it, and then it asks nobody where that is."""
    reached: list[object] = []

    async def noted(*given: object, **_: object) -> None:
        reached.append(given)
        raise OSError(errno.ECONNREFUSED, "refused")

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", noted)
    http = OutgoingHttp(STRICT)
    with pytest.raises(DeliveryError) as caught:
        await http.request("GET", f"http://{host}/")
    await http.close()
    assert caught.value.kind is Trouble.REFUSED
    assert not reached


@pytest.mark.parametrize("address", ["192.168.1.20", "10.1.2.3", "fd12::1"])
async def test_private_networks_are_fine(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, address)
    assert (await STRICT.resolve("broker.local", 1883)).address == address


async def test_of_several_addresses_the_allowed_ones_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, "fe80::1", "fd12::1", "192.168.1.20")
    assert (await STRICT.resolve("broker.local", 1883)).address == "192.168.1.20"
    assert {place.address for place in await STRICT.places("broker.local", 1883)} == {"fd12::1", "192.168.1.20"}


async def test_an_unknown_name_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(DeliveryError, match="unknown") as caught:
        await STRICT.resolve("nowhere.example", 80)
    assert caught.value.kind is Trouble.RETRY


@pytest.mark.parametrize(
    "url", ["ftp://host/", "file:///etc/passwd", "http://", "//host", "http://[::1", "http://h:x/"]
)
async def test_other_addresses_are_refused(url: str) -> None:
    http = OutgoingHttp(STRICT)
    with pytest.raises(DeliveryError, match="https://") as caught:
        await http.request("GET", url)
    await http.close()
    assert caught.value.kind is Trouble.REFUSED


@pytest.mark.parametrize("status", [200, 202, 404, 503])
@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "dripping"])
async def test_once_the_headers_are_here_the_status_decides(status: int, is_cut: bool) -> None:
    """What arrived must not be sent again because the receiver never ends its answer."""
    requests, over = 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.write(f"HTTP/1.1 {status} So\r\nContent-Length: 1000\r\n\r\nok so".encode())
        if not is_cut:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    answer = await http.request("POST", url, data=b"news", timeout_sec=60 if is_cut else 1)
    over.set()
    await http.close()
    server.close()
    assert (answer.status, requests) == (status, 1)
    assert (answer.body, answer.whole) == (b"ok so", False)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        (None, None, None),
        ("120", None, 120.0),
        ("later", None, None),
        ("Mon, 01 Jan 2029 00:02:00 GMT", "Mon, 01 Jan 2029 00:00:00 GMT", 120.0),
        ("Mon, 01 Jan 2029 00:02:00 GMT", None, None),
    ],
)
def test_retry_after_in_both_forms(value: str | None, date: str | None, seconds: float | None) -> None:
    assert retry_after_sec(value, date) == seconds
