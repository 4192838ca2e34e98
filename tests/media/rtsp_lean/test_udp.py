import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.media.rtsp_lean import udp
from camserver.media.rtsp_lean.udp import Order, UdpPair
from tests.rig.ports import listening_socket, port_of


def packet(seq: int) -> bytes:
    return b"\x80\x60" + (seq & 0xFFFF).to_bytes(2, "big") + bytes(8) + str(seq).encode()


def ordered(seqs: list[int], step_sec: float = 0.0) -> list[int]:
    taken: list[int] = []
    order = Order(lambda buffer, start, stop: taken.append(int(buffer[12:stop])))
    for number, seq in enumerate(seqs):
        order.take(packet(seq), number * step_sec)
    return taken


@given(st.integers(0, 65_535), st.lists(st.integers(0, 8), min_size=60, max_size=60))
def test_packets_that_overtook_others_are_put_in_order(first: int, delays: list[int]) -> None:
    sent = [first + number for number in range(60)]
    arrival = sorted(range(60), key=lambda number: (number + (delays[number] if number else 0), number))
    assert ordered([sent[number] for number in arrival]) == sent


@given(st.sets(st.integers(1, 300), max_size=40))
def test_lost_ones_are_waited_for_with_a_bound(lost: set[int]) -> None:
    sent = [number for number in range(500) if number not in lost]
    taken = ordered(sent)
    assert taken == sent[: len(taken)]
    assert len(taken) >= len(sent) - udp.HELD_MAX - 1 or not lost


def test_a_lost_one_is_not_waited_for_longer_than_a_moment() -> None:
    assert ordered([0, 2, 3, 4, 5, 6], step_sec=0.1) == [0, 2, 3, 4, 5, 6]


def test_twice_or_too_late_is_left_out() -> None:
    assert ordered([10, 11, 11, 12, 9, 10, 13]) == [10, 11, 12, 13]


def test_a_camera_that_counts_anew() -> None:
    seqs = list(range(40_000, 40_010)) + list(range(30_000, 30_000 + udp.LATE_MAX + 20))
    assert ordered(seqs)[-1] == seqs[-1]


def test_numbers_wrap() -> None:
    assert ordered([65_534, 65_535, 65_537, 65_536, 65_538]) == [65_534, 65_535, 65_536, 65_537, 65_538]


@pytest.fixture
def control() -> Iterator[socket.socket]:
    with listening_socket() as listener, socket.create_connection(("127.0.0.1", port_of(listener))) as sock:
        yield sock


def test_a_pair_hears_only_the_camera(control: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    pair = UdpPair(control, lambda buffer, start, stop: taken.append(bytes(buffer[start:stop])))
    ports = pair.ports
    assert (ports[0] % 2, ports[1]) == (0, ports[0] + 1)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as camera,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        camera.bind(("127.0.0.1", 0))
        stranger.bind(("127.0.0.2", 0))
        stranger.sendto(packet(1), ("127.0.0.1", ports[0]))
        camera.sendto(packet(2), ("127.0.0.1", ports[0]))
        camera.sendto(b"report", ("127.0.0.1", ports[1]))
        pair.receive()  # over loopback it is there at once
        assert taken == [packet(2)]
        # The camera is told where to send, which opens the way for it.
        camera.settimeout(60)
        pair.aim((camera.getsockname()[1], camera.getsockname()[1]))
        assert {camera.recv(100)[:2] for _ in range(2)} == {b"\x80\xc9", b"\x80\x00"}
    pair.close()


def test_no_ports(control: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "PAIRS_TRIED_MAX", 0)
    with pytest.raises(OSError, match="no two ports"):
        UdpPair(control, lambda buffer, start, stop: None)
