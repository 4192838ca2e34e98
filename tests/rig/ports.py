"""TCP ports for tests.

A server that takes a socket gets one that is bound already: no race. `free_port` is for programs that only
take a number; somebody else may get the port before them, so whoever starts such a program tries again.
"""

import random
import socket
from pathlib import Path

ATTEMPTS_MAX = 200
LOOPBACK = "127.0.0.1"


def listening_socket(port: int = 0, backlog: int = 128) -> socket.socket:
    """A listening TCP socket on loopback; `port` 0 takes any free one."""
    return socket.create_server((LOOPBACK, port), backlog=backlog, reuse_port=False)


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def free_port() -> int:
    """A port that is free now and that no outgoing connection gets, because it is below their range."""
    lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(ATTEMPTS_MAX):
        port = random.randrange(10_000, max(lowest_outgoing, 10_001))
        try:
            listening_socket(port).close()
        except OSError:
            continue
        return port
    raise RuntimeError(f"no free port below {lowest_outgoing} in {ATTEMPTS_MAX} attempts")
