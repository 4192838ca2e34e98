"""Addresses of live streams and tickets for feeds: what was signed is known again, and nothing else."""

import dataclasses

import pytest

from camserver.base.errors import Forbidden
from camserver.domain import live_links as links

KEYS = links.live_keys(b"a media key")
OTHER = links.live_keys(b"another media key")
LEASE = "0198c7a1-0000-7000-8000-000000000001"
TICKET = links.Ticket("streamer-1", 1, "cam_2f_19", 7, "sub", False, "worker-1", 40_000, "n1")


def sig_of(url: str) -> str:
    return url.partition("sig=")[2]


def test_an_address_of_ours_is_known_again() -> None:
    url = links.stream_url(KEYS, "http://cam.example:8082", "cam_2f_19", LEASE)
    assert url.startswith(f"ws://cam.example:8082/stream/cam_2f_19?lease={LEASE}&sig=")
    assert links.is_signed(KEYS, LEASE, sig_of(url))
    name = links.hls_url(KEYS, "https://cam.example/", LEASE).removeprefix("https://cam.example/hls/").split("/")[0]
    assert links.signed_lease(KEYS, name) == LEASE
    assert links.snapshot_url(KEYS, "https://cam.example", LEASE) == f"https://cam.example/snapshot/{name}"


@pytest.mark.parametrize("text", ["", ".", LEASE, f"{LEASE}.", f"{LEASE}.{'A' * 43}", f"x{LEASE}.é", "../../etc"])
def test_what_is_not_signed_opens_nothing(text: str) -> None:
    assert links.signed_lease(KEYS, text) is None


def test_a_key_that_is_replaced_still_counts() -> None:
    both = links.live_keys(b"another media key", b"a media key")
    sig = links.view_signature(KEYS, LEASE)
    assert not links.is_signed(OTHER, LEASE, sig)
    assert links.is_signed(both, LEASE, sig)
    assert links.read_ticket(both, links.sign_ticket(KEYS, TICKET), "streamer-1", 40_000) == TICKET


def test_where_a_browser_reaches_the_streamer() -> None:
    assert links.streamer_origin("https://live.example/", 8082, "http", "10.0.0.5") == "https://live.example"
    assert links.streamer_origin("", 8082, "http", "10.0.0.5") == "http://10.0.0.5:8082"


def test_a_ticket_says_what_was_put_in() -> None:
    assert links.read_ticket(KEYS, links.sign_ticket(KEYS, TICKET), "streamer-1", 40_000) == TICKET


def test_a_longest_ticket_fits() -> None:
    long = dataclasses.replace(
        TICKET, streamer_id="s" * 64, camera_id="c" * 64, worker_id="w" * 64, generation=2**62, nonce="n" * 32
    )
    text = links.sign_ticket(KEYS, long)
    assert len(text) <= links.TICKET_MAX_CHARS
    assert links.read_ticket(KEYS, text, "s" * 64, 0) == long


@pytest.mark.parametrize(
    ("text", "streamer_id", "now_ms"),
    [
        ("", "streamer-1", 0),
        ("W10.x", "streamer-1", 0),
        ("é.é", "streamer-1", 0),
        (links.sign_ticket(OTHER, TICKET), "streamer-1", 0),
        (links.sign_ticket(KEYS, TICKET), "streamer-2", 0),
        (links.sign_ticket(KEYS, TICKET), "streamer-1", 40_001),
        (links.sign_ticket(KEYS, TICKET) + "x", "streamer-1", 0),
    ],
)
def test_another_ticket_is_refused(text: str, streamer_id: str, now_ms: int) -> None:
    with pytest.raises(Forbidden):
        links.read_ticket(KEYS, text, streamer_id, now_ms)


def test_workers_are_told_the_address_that_is_theirs() -> None:
    both = links.feed_addresses("ws://127.0.0.1:8082/v1/feed", "wss://cams.example.com:8444/v1/feed")
    assert links.feed_address(both, is_remote=False) == "ws://127.0.0.1:8082/v1/feed"
    assert links.feed_address(both, is_remote=True) == "wss://cams.example.com:8444/v1/feed"
    # One for all, such as a proxy's.
    one = links.feed_addresses("wss://cams.example.com/v1/feed", "")
    assert {links.feed_address(one, is_remote=remote) for remote in (True, False)} == {one}
