from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media.rtsp_lean import wire as wire_module
from camserver.media.rtsp_lean.messages import BrokenTalk, Reply, request
from camserver.media.rtsp_lean.wire import Wire

REPLY = b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nX: 1\r\nX: 2\r\nContent-Length: 4\r\n\r\nbody"


def fed(data: bytes, cuts: list[int]) -> tuple[list[tuple[int, bytes]], list[Reply]]:
    """What comes out when the bytes arrive cut at these places."""
    wire, packets, replies = Wire(), [], []

    def take(buffer: bytearray, channel: int, start: int, stop: int, end: int) -> int:
        packets.append((channel, bytes(buffer[start:stop])))
        return stop

    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for begin, end in pairwise(edges):
        while begin < end:
            room = wire.room()
            count = min(len(room), end - begin)
            room[:count] = data[begin : begin + count]
            begin += count
            reply = wire.read(count, take)
            while reply is not None:
                replies.append(reply)
                reply = wire.read(0, take)
    return packets, replies


packet = st.tuples(
    st.integers(0, 255), st.binary(max_size=3000) | st.binary(min_size=1).map(lambda one: (one * 65_535)[:65_535])
)


@given(st.lists(packet | st.just(REPLY), max_size=12), st.lists(st.integers(0, 10**6), max_size=8))
def test_however_it_is_cut_the_same_comes_out(parts: list[tuple[int, bytes] | bytes], cuts: list[int]) -> None:
    data = b"".join(
        one if isinstance(one, bytes) else bytes([0x24, one[0]]) + len(one[1]).to_bytes(2, "big") + one[1]
        for one in parts
    )
    packets, replies = fed(data, cuts)
    assert packets == [one for one in parts if not isinstance(one, bytes)]
    assert replies == [Reply(200, {"cseq": ("3",), "x": ("1", "2"), "content-length": ("4",)}, b"body")] * (
        len(parts) - len(packets)
    )


@given(st.binary(max_size=5000), st.lists(st.integers(0, 10**6), max_size=4))
def test_noise_is_passed_over_or_refused(noise: bytes, cuts: list[int]) -> None:
    for data in (noise, REPLY + noise, b"RTSP/1.0 " + noise):
        try:
            fed(data, cuts)
        except BrokenTalk:
            continue


@pytest.mark.parametrize(
    "data",
    [
        b"RTSP/1.0 200 OK\r\n" + b"a: b\r\n" * 10_000,
        b"RTSP/1.0 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_messages_without_end_are_refused(data: bytes) -> None:
    with pytest.raises(BrokenTalk):
        fed(data, [])


def test_garbage_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "GARBAGE_MAX_BYTES", 1000)
    with pytest.raises(BrokenTalk):
        fed(bytes(2000), [])


def test_no_line_is_smuggled_into_a_request() -> None:
    with pytest.raises(BrokenTalk):
        request("DESCRIBE", "rtsp://host/\r\nX: y", 1, {})
    assert request("PLAY", "rtsp://host/a", 2, {"Session": "1"}).startswith(
        b"PLAY rtsp://host/a RTSP/1.0\r\nCSeq: 2\r\n"
    )
