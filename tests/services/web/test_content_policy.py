"""Where a page may get live video from: the streamer as this browser reaches it, and nowhere else."""

import dataclasses

import pytest

from camserver.config import StreamerSettings, load
from camserver.services.web.edge import content_policy

STREAMER = load(None, {}).streamer


def connect_src(streamer: StreamerSettings, host: str) -> str:
    parts = [part.strip() for part in content_policy(streamer, host).split(";")]
    return next(part.removeprefix("connect-src ") for part in parts if part.startswith("connect-src"))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("cam.example:8080", "'self' http://cam.example:8082 ws://cam.example:8082"),
        ("10.0.0.5", "'self' http://10.0.0.5:8082 ws://10.0.0.5:8082"),
        ("[::1]:8080", "'self' http://[::1]:8082 ws://[::1]:8082"),
        ("", "'self'"),
        ("x; script-src *", "'self'"),
        ("x' 'unsafe-inline", "'self'"),
    ],
)
def test_the_streamer_is_at_the_host_of_the_page(host: str, allowed: str) -> None:
    assert connect_src(STREAMER, host) == allowed


def test_a_streamer_with_an_address_of_its_own_is_reached_there() -> None:
    streamer = dataclasses.replace(STREAMER, public_url="https://live.example/cams")
    assert connect_src(streamer, "cam.example") == "'self' https://live.example wss://live.example"


def test_any_port_where_it_is_chosen_at_start() -> None:
    streamer = dataclasses.replace(STREAMER, port=0)
    assert connect_src(streamer, "cam.example") == "'self' http://cam.example:* ws://cam.example:*"
