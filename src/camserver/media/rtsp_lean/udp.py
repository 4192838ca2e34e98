"""RTP over UDP: a pair of ports, packets put in order again, and nothing taken from anybody but the camera."""

import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable

from camserver.base.log import get_logger

log = get_logger(__name__)

# A keyframe comes as one burst.
SOCKET_BUFFER_BYTES = 2_000_000
DATAGRAM_MAX_BYTES = 65_536
READS_MAX = 512
# So many packets may overtake one that is missing, for so long; then it counts as lost.
HELD_MAX = 64
HELD_MAX_SEC = 0.3
LATE_MAX = 100
PAIRS_TRIED_MAX = 50
Push = Callable[[bytearray, int, int], None]


class Order:
    """Packets in the order of their numbers; those that come too late or twice are left out."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self._next: int | None = None
        self._held: dict[int, bytes] = {}
        self._held_since_sec = 0.0
        self._late = 0  # in a row

    def take(self, packet: bytes, now_sec: float) -> None:
        if len(packet) < 12:
            return
        seq = packet[2] << 8 | packet[3]
        if self._next is None:
            self._next = seq
        if seq - self._next & 0xFFFF >= 0x8000:
            self._late += 1
            if self._late < LATE_MAX:
                return
            self._next = seq  # nothing but late ones: the camera counts anew
            self._held.clear()
        self._late = 0
        if not self._held:
            self._held_since_sec = now_sec
        self._held[seq] = packet
        if len(self._held) > HELD_MAX or now_sec - self._held_since_sec > HELD_MAX_SEC:
            expected = self._next
            self._next = min(self._held, key=lambda one: one - expected & 0xFFFF)
        while (following := self._held.pop(self._next, None)) is not None:
            self._push(bytearray(following), 0, len(following))
            self._next = self._next + 1 & 0xFFFF
            self._held_since_sec = now_sec


class UdpPair:
    """The two ports of a track: packets, and reports about them."""

    def __init__(self, control: socket.socket, push: Push) -> None:
        """Beside the connection `control`, over the same addresses. OSError when there are no ports."""
        self._camera = _plain(control.getpeername()[0])
        self._data, self._reports = _pair(control.family, control.getsockname()[0])
        self._order = Order(push)
        self._strangers = 0
        self._targets: tuple[int, int] | None = None
        self._peer = control.getpeername()

    @property
    def ports(self) -> tuple[int, int]:
        return self._data.getsockname()[1], self._reports.getsockname()[1]

    def filenos(self) -> tuple[int, ...]:
        return self._data.fileno(), self._reports.fileno()

    def aim(self, targets: tuple[int, int]) -> None:
        """The camera's ports. A word to them opens the way back through a firewall."""
        self._targets = targets
        self.report(b"\x80\xc9\0\1\0\0\0\0")
        self._send(self._data, targets[0], b"\x80\0\0\0\0\0\0\0\0\0\0\0")

    def report(self, report: bytes) -> None:
        if self._targets is not None:
            self._send(self._reports, self._targets[1], report)

    def receive(self) -> None:
        """Takes what has arrived; never waits."""
        now_sec = time.monotonic()
        for sock, is_data in ((self._data, True), (self._reports, False)):
            for _ in range(READS_MAX):
                try:
                    packet, sender = sock.recvfrom(DATAGRAM_MAX_BYTES)
                except BlockingIOError:
                    break
                if _plain(sender[0]) != self._camera:
                    self._note_stranger()
                elif is_data:
                    self._order.take(packet, now_sec)

    def close(self) -> None:
        self._data.close()
        self._reports.close()

    def _send(self, sock: socket.socket, port: int, data: bytes) -> None:
        # What does not get through is sent again with the next sign of life.
        with contextlib.suppress(OSError):
            sock.sendto(data, (self._peer[0], port, *self._peer[2:]))

    def _note_stranger(self) -> None:
        if not self._strangers:
            log.warning("packets of somebody else on the way of a camera are left out")
        self._strangers += 1


def _pair(family: int, address: str) -> tuple[socket.socket, socket.socket]:
    """Sockets on an even port and the one after it, as RTP wants it."""
    for _ in range(PAIRS_TRIED_MAX):
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            first.bind((address, 0))
            port = first.getsockname()[1]
            if port % 2:
                continue
            second = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            try:
                second.bind((address, port + 1))
            except OSError:
                continue
            first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
            for sock in (first, second):
                sock.setblocking(False)
            stack.pop_all()
            return first, second
    raise OSError("there are no two ports side by side for UDP")


def _plain(address: str) -> str:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
