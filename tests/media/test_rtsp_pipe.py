"""What a camera says reaches FFmpeg, unless it would send it elsewhere."""

import contextlib
import socket
import threading
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Miss
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets
from camserver.media.rtsp_pipe import FIRST_LINE_MAX_BYTES, RedirectGuard

HEADERS = b" Moved\r\nCSeq: 1\r\nLocation: rtsp://127.0.0.1:%d/admin\r\n\r\n"
ELSEWHERE = [
    b"RTSP/1.0 302",
    b"RTSP/1.00 302",
    b"RTSP/x 302",
    b"RTSP/ 302",
    b"RTSP/1.0" + b" " * 20 + b"302",
    b"RTSP/1.0\t302",
    b"RTSP/1.0 +302",
    b"RTSP/1.0 0302",
    b"RTSP/1.0 4294967598",
    b"RTSP/1.0 \v302",
    b"R\rTS\r\rP/1.0 3\r02",
    b"RTSP/1.0 399",
    b"  RTSP/1.0 301",
]
STAYING = [
    b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: OPTIONS, DESCRIBE\r\n\r\n",
    b'RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Digest realm="a"\r\n\r\n',
    b"RTSP/1.0 200\r\nServer: Some RTSP/1.0 server\r\nX: RTSP/1.0\r\n\r\n",
    b"RTSP/1.0 454 Session Not Found\r\n\r\nOPTIONS * RTSP/1.0\r\nCSeq: 3\r\n\r\n",
    b"GET_PARAMETER rtsp://10.0.0.9/ RTSP/1.0\r\nCSeq: 4\r\nSession: 302\r\n\r\n",
    b"RTSP/1.0 200 OK\r\nContent-Length: 9\r\n\r\ns=302 RTSRTSP/1.0 200 OK\r\n\r\n$\x00\x00\x04RTSP",
]


def forbidden(pieces: list[bytes]) -> bool:
    guard = RedirectGuard()
    return any(guard.forbids(piece) for piece in pieces)


@pytest.mark.parametrize("begin", ELSEWHERE)
@pytest.mark.parametrize("before", [b"", STAYING[0], b"$\x00\x00\x02ab", b"no line end"])
def test_what_sends_elsewhere_is_seen_wherever_it_is_cut(begin: bytes, before: bytes) -> None:
    said = before + begin + HEADERS % 9
    line_end = len(before) + len(begin + HEADERS.partition(b"\r\n")[0])
    for cut in range(len(said)):
        assert forbidden([said[:cut], said[cut:]])
    guard = RedirectGuard()
    seen = next(at for at in range(len(said)) if guard.forbids(said[at : at + 1]))
    assert seen <= line_end, "a reader acts at the end of the line"


@given(st.sampled_from(STAYING), st.lists(st.integers(0, 200), max_size=6))
def test_what_stays_is_passed_wherever_it_is_cut(said: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(said)) for cut in cuts), len(said)]
    assert not forbidden([said[begin:end] for begin, end in pairwise(places)])


@pytest.mark.parametrize("filling", [b"\r", b" ", b"x"])
def test_what_never_says_what_it_is_ends_bounded(filling: bytes) -> None:
    guard = RedirectGuard()
    said = b"RTSP/" + filling * 100_000 if filling != b"\r" else b"R" + filling * 100_000
    at = next(at for at in range(len(said)) if guard.forbids(said[at : at + 1]))
    assert at <= FIRST_LINE_MAX_BYTES
    assert len(guard._last) <= FIRST_LINE_MAX_BYTES


def test_a_reader_that_plays_follows_nothing() -> None:
    guard = RedirectGuard()
    guard.asked(b"SETUP rtsp://10.0.0.9/")
    guard.asked(b"PLAY RTSP/1.0\r\n\r\n")
    assert guard.forbids(b"RTSP/1.0 302 Moved\r\n"), "that was the end of an address"
    guard = RedirectGuard()
    guard.asked(b"SETUP rtsp://10.0.0.9/ RTSP/1.0\r\n\r\n")
    guard.asked(b"PLAY rtsp://10.0.0.9/ RTSP/1.0\r\n\r\n")
    assert not guard.forbids(b"RTSP/1.0 302 Moved\r\n")


@pytest.mark.parametrize("begin", ELSEWHERE)
def test_ffmpeg_is_led_nowhere(begin: bytes) -> None:
    reached = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, socket.create_server(("127.0.0.1", 0)) as camera:

        def answer() -> None:
            reader, _ = camera.accept()
            with reader, contextlib.suppress(OSError):
                reader.recv(4096)
                said = begin + HEADERS % elsewhere.getsockname()[1]
                reader.sendall(said[:20])
                reader.sendall(said[20:])
                reader.recv(4096)  # until the other side ends

        def wait() -> None:
            try:
                elsewhere.accept()[0].close()
                reached.set()
            except OSError:
                return

        threads = [threading.Thread(target=work, daemon=True) for work in (answer, wait)]
        for one in threads:
            one.start()
        address = RtspAddress(
            f"rtsp://127.0.0.1:{camera.getsockname()[1]}/x", None, AddressPolicy(allow_loopback=True)
        )
        packets = FfmpegPackets(address, 10, 10, lambda: int(time.monotonic() * 1000))
        assert isinstance(packets.read(lambda _: None, lambda: True), Miss)
        threads[0].join(10)
        elsewhere.shutdown(socket.SHUT_RDWR)
        threads[1].join(10)
    assert not reached.is_set()
