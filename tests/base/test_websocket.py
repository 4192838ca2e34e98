"""WebSocket frames: what is framed comes out again, however it is cut on its way."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base import websocket
from camserver.base.errors import BadInput
from camserver.base.websocket import BINARY, CONTINUATION, PING, TEXT, Frames

PAYLOADS = st.one_of(st.binary(max_size=300), st.sampled_from([b"x" * 125, b"x" * 126, b"x" * 65_535, b"x" * 65_536]))


def masked(opcode: int, payload: bytes, mask: bytes, is_last: bool = True) -> bytes:
    head = bytearray(websocket.client_head(opcode, len(payload)))
    if not is_last:
        head[0] &= 0x7F
    body = bytes(byte ^ mask[number % 4] for number, byte in enumerate(payload))
    return bytes(head[:-4]) + mask + body


@given(st.lists(st.tuples(PAYLOADS, st.binary(min_size=4, max_size=4)), max_size=4), st.integers(1, 70_000))
def test_messages_come_out_as_they_went_in(sent: list[tuple[bytes, bytes]], step: int) -> None:
    stream = b"".join(masked(BINARY, payload, mask) for payload, mask in sent)
    frames = Frames(100_000)
    found = [one for at in range(0, len(stream), step) for one in frames.feed(stream[at : at + step])]
    assert found == [(BINARY, payload) for payload, _ in sent]


@given(PAYLOADS)
def test_a_server_does_not_mask_and_a_client_masks_with_nothing(payload: bytes) -> None:
    assert Frames(100_000).feed(websocket.frame(TEXT, payload)) == [(TEXT, payload)]
    assert Frames(100_000).feed(websocket.client_head(TEXT, len(payload)) + payload) == [(TEXT, payload)]


def test_a_message_in_pieces_is_put_together() -> None:
    zero = b"\0" * 4
    stream = masked(TEXT, b"one ", zero, False) + masked(PING, b"?", zero) + masked(CONTINUATION, b"two", zero)
    assert Frames(100).feed(stream) == [(PING, b"?"), (TEXT, b"one two")]


@pytest.mark.parametrize(
    "stream",
    [
        websocket.client_head(BINARY, 101),
        masked(BINARY, b"x" * 60, b"\0" * 4, False) + masked(CONTINUATION, b"x" * 60, b"\0" * 4),
        masked(CONTINUATION, b"x", b"\0" * 4),
        b"\xc2\x01x",
    ],
    ids=["too long", "too long in pieces", "goes on without a beginning", "compressed"],
)
def test_what_makes_no_sense_is_refused(stream: bytes) -> None:
    with pytest.raises(BadInput):
        Frames(100).feed(stream)


def test_the_handshake_of_the_specification() -> None:
    assert websocket.accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    asked = websocket.request("cam.example:1", "/v1/feed", "KEY", {"Authorization": "Bearer x"}).decode()
    assert asked.startswith("GET /v1/feed HTTP/1.1\r\nHost: cam.example:1\r\n")
    assert asked.endswith("\r\nAuthorization: Bearer x\r\n\r\n")


def test_why_it_is_closed() -> None:
    payload = websocket.close_payload(4404, "over")
    assert (websocket.close_code(payload), payload[2:]) == (4404, b"over")
    assert websocket.close_code(b"") == 1005
    assert len(websocket.close_payload(1000, "x" * 500)) == 125


@pytest.mark.parametrize("size", [20, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("head", [websocket.head, websocket.client_head])
def test_a_message_that_comes_alone_is_looked_at_where_it_is(size: int, head: Callable[[int, int], bytes]) -> None:
    payload = bytes(range(1, 255)) * 300
    data = head(BINARY, size) + payload[:size]
    found = websocket.sole_message(data, 65_536)
    assert found is not None
    assert (bytes(found), found.obj) == (payload[:size], data)
    # Anything else is sorted out by `Frames`.
    assert websocket.sole_message(data[:-1], 65_536) is None
    assert websocket.sole_message(data + b"x", 65_536) is None
    assert websocket.sole_message(data, size - 1) is None
    assert websocket.sole_message(head(TEXT, size) + payload[:size], 65_536) is None


def test_a_message_with_a_mask_is_not_looked_at_where_it_is() -> None:
    data = bytes((0x82, 0x80 | 20)) + b"mask" + bytes(20)
    assert websocket.sole_message(data, 100) is None
    frames = Frames(100)
    assert not frames.has_part
    assert frames.feed(data[:9]) == []
    assert frames.has_part
