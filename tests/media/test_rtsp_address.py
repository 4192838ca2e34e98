import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.addresses import AddressPolicy, Place
from camserver.media.packets import Miss
from camserver.media.rtsp_address import Login, RtspAddress

POLICY = AddressPolicy()


def opened(url: str, login: Login | None = None) -> str:
    address = RtspAddress(url, login, POLICY)
    place = address.find()
    assert isinstance(place, Place)
    return address.for_ffmpeg(place)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("rtsp://192.0.2.1/live", "rtsp://192.0.2.1:554/live"),
        ("rtsp://192.0.2.1:8554/live?token=1&x=2", "rtsp://192.0.2.1:8554/live?token=1&x=2"),
        ("rtsps://192.0.2.1/live", "rtsps://192.0.2.1:322/live"),
        ("rtsp://[2001:db8::1]/live", "rtsp://[2001:db8::1]:554/live"),
        ("rtsp://192.0.2.1", "rtsp://192.0.2.1:554"),
    ],
)
def test_address_is_opened_as_it_is(url: str, expected: str) -> None:
    assert opened(url) == expected
    assert RtspAddress(url, None, POLICY).plain_url == expected


def test_login_is_put_in_only_for_opening() -> None:
    login = Login("us er", Secret("p@ss:w/rd?#%"))
    url = "rtsp://192.0.2.1/live?token=abc"
    assert opened(url, login) == "rtsp://us%20er:p%40ss%3Aw%2Frd%3F%23%25@192.0.2.1:554/live?token=abc"
    # Neither password nor token is in what may be shown, and no login in what is sent in requests.
    address = RtspAddress(url, login, POLICY)
    assert str(address) == "rtsp://192.0.2.1:554/…"
    assert address.plain_url == "rtsp://192.0.2.1:554/live?token=abc"


def test_what_stands_in_requests_is_one_word() -> None:
    address = RtspAddress("rtsp://192.0.2.1/a b%20c/ö?x=1&y=[2]", None, POLICY)
    assert address.plain_url == "rtsp://192.0.2.1:554/a%20b%20c/%C3%B6?x=1&y=[2]"


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
        RtspAddress(url, None, POLICY)
    assert "a:b" not in refused.value.message


def test_the_policy_decides() -> None:
    found = RtspAddress("rtsp://127.0.0.1/live", None, POLICY).find()
    assert isinstance(found, Miss)
    assert found.fault is Fault.REFUSED


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, "rtsp://" + text):
        with contextlib.suppress(BadInput):
            assert str(RtspAddress(url, None, POLICY)).startswith("rtsp")
