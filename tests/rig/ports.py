"""TCP ports for tests.

A server that takes a socket gets one that is bound already: no race. `free_port` is for programs that only take a
number. Every test process gives out ports of a block of its own, in turn, so that neither two tests that run at the
same time nor two programs of one test are given the same; what is not a test may still get there first.
"""

import fcntl
import itertools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LOOPBACK = "127.0.0.1"
# Above what people use by habit, below where outgoing connections begin.
LOWEST: Final = 10_000
BLOCK_PORTS: Final = 500
USUAL_LOWEST_OUTGOING: Final = 32_768


def listening_socket(port: int = 0, backlog: int = 128) -> socket.socket:
    """A listening TCP socket on loopback; `port` 0 takes any free one."""
    sock = socket.create_server((LOOPBACK, port), backlog=backlog, reuse_port=False)
    # Connections inherit it. asyncio, unlike uvloop, sets it only on sockets that name their protocol, and without it
    # an answer of two pieces takes 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def free_port() -> int:
    """A port that is free now and that no outgoing connection gets, because it is below their range."""
    ports = _own_ports()
    for port in itertools.islice(ports, BLOCK_PORTS):
        try:
            listening_socket(port).close()
        except OSError:
            continue
        return port
    raise RuntimeError(f"none of this process's {BLOCK_PORTS} ports is free")


# Of the process that made it: a fork must not go on with its parent's. The open file holds the block's lock.
_owned: tuple[int, int, Iterator[int]] | None = None


def _own_ports() -> Iterator[int]:
    global _owned
    if _owned is None or _owned[0] != os.getpid():
        lock, block = _take_block(Path(tempfile.gettempdir()))
        _owned = (os.getpid(), lock, itertools.cycle(block))
    return _owned[2]


def _take_block(folder: Path) -> tuple[int, range]:
    """A block that no other process has, and the lock that keeps it ours until this process ends."""
    lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if lowest_outgoing < LOWEST + BLOCK_PORTS:
        lowest_outgoing = USUAL_LOWEST_OUTGOING  # a machine where there is no such room; better a small risk
    firsts = list(range(LOWEST, lowest_outgoing - BLOCK_PORTS + 1, BLOCK_PORTS))
    # Not in order: a port that was just let go by another process shall rest a while.
    random.shuffle(firsts)
    for first in firsts:
        file = folder / f"camserver-tests-{os.getuid()}-ports-{first}"
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return lock, range(first, first + BLOCK_PORTS)
    raise RuntimeError(f"other test processes have all {len(firsts)} blocks of ports below {lowest_outgoing}")
