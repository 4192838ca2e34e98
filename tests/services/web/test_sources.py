from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.services.web.sources import parse_source, shown_url
from camserver.wire.api import SourceAsked


@pytest.mark.parametrize(
    ("asked", "kind", "url", "user", "password"),
    [
        ({"url": "rtsp://10.0.0.9/1"}, "rtsp", "rtsp://10.0.0.9/1", None, None),
        ({"url": "RTSPS://h:322/1?a=b"}, "rtsp", "rtsps://h:322/1?a=b", None, None),
        ({"url": "rtsp://u:p%40w@h/1"}, "rtsp", "rtsp://h/1", "u", "p@w"),
        ({"url": "rtsp://u:p@w@h/1"}, "rtsp", "rtsp://h/1", "u", "p@w"),
        ({"url": "http://u@h/x.jpg"}, "http", "http://h/x.jpg", "u", ""),
        ({"url": "https://[fd00::1]:81/x", "user": "u", "password": "p"}, "http", "https://[fd00::1]:81/x", "u", "p"),
        ({"type": "file", "url": "file:///srv/a.jpg"}, "file", "file:///srv/a.jpg", None, None),
        ({"url": "webcam:///dev/v4l/by-id/usb-C920-video-index0"}, "webcam",
         "webcam:/dev/v4l/by-id/usb-C920-video-index0", None, None),
        ({"url": "test://moving?period=10"}, "test", "test://moving?period=10", None, None),
    ],
)  # fmt: skip
def test_credentials_are_taken_out_of_the_address(
    asked: dict[str, str], kind: str, url: str, user: str | None, password: str | None
) -> None:
    source = parse_source(SourceAsked.model_validate(asked))
    assert (source.type, source.url) == (kind, url)
    if user is None:
        assert source.login is None
    else:
        assert source.login is not None
        assert (source.login.user, source.login.password.reveal()) == (user, password)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"url": "ftp://h/x"}, "url_scheme"),
        ({"url": "/dev/video0"}, "url_scheme"),
        ({"url": "concat:rtsp://h/1|file:///etc/passwd"}, "url_scheme"),
        ({"url": "javascript:alert(1)"}, "url_scheme"),
        ({"url": "rtsp:///1"}, "url_form"),
        ({"url": "rtsp://h:99999/1"}, "url_form"),
        ({"url": "rtsp://h/1\r\nX: y"}, "url_form"),
        ({"url": "rtsp://[h/1"}, "url_form"),
        ({"url": "file://host/x"}, "url_form"),
        ({"url": "file:///srv/../etc/shadow"}, "url_form"),
        ({"url": "webcam:///dev/sda"}, "url_form"),
        ({"url": "webcam:///dev/v4l/by-id/../../sda"}, "url_form"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "url_never"),
        ({"url": "rtsp://u:p@[::ffff:169.254.169.254]:554/x"}, "url_never"),
        ({"url": "http://[fd00:ec2::254]/"}, "url_never"),
        ({"url": "rtsp://[fe80::1%25eth0]/x"}, "url_never"),
        ({"url": "rtsp://239.1.2.3/x"}, "url_never"),
        ({"url": "rtsp://0.0.0.0/x"}, "url_never"),
        ({"type": "rtsp", "url": "http://h/x"}, "url_type"),
        ({"url": "rtsp://u:p@h/1", "password": "p"}, "url_two_credentials"),
    ],
)
def test_what_is_no_camera_address_is_refused(asked: dict[str, str], reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_source(SourceAsked.model_validate(asked))
    assert refused.value.details["reason"] == reason


@given(st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=6, max_size=20))
def test_a_password_never_stays_in_the_address(password: str) -> None:
    """However it is written: encoded it is taken out, raw it is taken out or refused without being repeated."""
    mark = f"Zq{password}qZ"
    encoded = parse_source(SourceAsked(url=f"rtsp://user:{quote(mark, safe='')}@host/live"))
    assert encoded.url == "rtsp://host/live"
    assert encoded.login is not None
    assert encoded.login.password.reveal() == mark
    said = parsed_or_refused(f"rtsp://user:{mark}@host/live")
    assert said == "rtsp://host/live" or "Zq" not in said
    assert mark not in said


def parsed_or_refused(url: str) -> str:
    try:
        return parse_source(SourceAsked(url=url)).url
    except BadInput as refused:
        return f"{refused} {dict(refused.details)}"


def test_a_query_is_not_shown_for_cameras_in_the_network() -> None:
    assert shown_url("http", "http://h/snap?user=a&pwd=b") == "http://h/snap?…"
    assert shown_url("rtsp", "rtsp://h/1") == "rtsp://h/1"
    assert shown_url("test", "test://moving?period=10") == "test://moving?period=10"
