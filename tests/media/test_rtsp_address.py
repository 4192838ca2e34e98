import contextlib
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.packets import Miss
from camserver.media.rtsp_address import Login, RtspAddress, is_refused


def resolved(url: str, login: Login | None = None) -> str | Miss:
    return RtspAddress(url, login).resolve()


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("rtsp://192.0.2.1/live", "rtsp://192.0.2.1:554/live"),
        ("rtsp://192.0.2.1:8554/live?token=1&x=2", "rtsp://192.0.2.1:8554/live?token=1&x=2"),
        ("rtsps://192.0.2.1/live", "rtsps://192.0.2.1:322/live"),
        ("rtsp://[2001:db8::1]/live", "rtsp://[2001:db8::1]:554/live"),
        ("rtsp://192.0.2.1", "rtsp://192.0.2.1:554"),
    ],
)
def test_address_is_opened_as_it_is(url: str, opened: str) -> None:
    assert resolved(url) == opened


def test_login_is_put_in_only_for_opening() -> None:
    login = Login("us er", Secret("p@ss:w/rd?#%"))
    address = RtspAddress("rtsp://192.0.2.1/live?token=abc", login)
    assert address.resolve() == "rtsp://us%20er:p%40ss%3Aw%2Frd%3F%23%25@192.0.2.1:554/live?token=abc"
    # Neither password nor token is in what may be shown.
    assert str(address) == "rtsp://192.0.2.1:554/…"


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/",
        "rtsp://",
        "rtsp://:554/x",
        "rtsp://192.0.2.1:0x1/",
        "rtsp://a:b@192.0.2.1/",
        "file:///etc",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        RtspAddress(url, None)
    assert "a:b" not in refused.value.message


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:169.254.1.1"],
)
def test_addresses_without_cameras_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_refused(address)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def lies(*_: object, **__: object) -> list[Any]:
        return [(family, socket.SOCK_STREAM, 6, "", (address, 554))]

    monkeypatch.setattr(socket, "getaddrinfo", lies)
    found = resolved("rtsp://camera.example/live")
    assert isinstance(found, Miss)
    assert found.fault is Fault.REFUSED


@pytest.mark.parametrize("address", ["192.168.1.10", "10.0.0.1", "127.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1"])
def test_addresses_of_cameras_are_fine(address: str) -> None:
    assert not is_refused(address)


def test_unknown_name_has_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = resolved("rtsp://camera.example/live")
    assert isinstance(found, Miss)
    assert found.fault is Fault.NO_ROUTE


def test_the_address_that_was_checked_is_the_one_that_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def both(*arguments: object, **_: object) -> list[Any]:
        asked.append(arguments)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::7", 554, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 554)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    assert resolved("rtsp://camera.example/live") == "rtsp://192.0.2.7:554/live"
    assert len(asked) == 1


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, "rtsp://" + text):
        with contextlib.suppress(BadInput):
            assert str(RtspAddress(url, None)).startswith("rtsp")
