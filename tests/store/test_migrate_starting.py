"""A PostgreSQL that is still starting up refuses connections in a way of its own: that is an outage, not a fault."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.base.exits import Exit, exit_of
from camserver.store import migrate
from tests.rig.ports import LOOPBACK, listening_socket, port_of

SSL_REQUEST_CODE = 80877103
REFUSAL = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"


def _refuse(client: socket.socket) -> None:
    """Answers the start of a PostgreSQL connection as a server does that replays its log."""
    with client:
        while True:
            (size_bytes,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
            message = client.recv(size_bytes - 4, socket.MSG_WAITALL)
            if struct.unpack("!I", message[:4])[0] != SSL_REQUEST_CODE:
                break
            client.sendall(b"N")
        client.sendall(b"E" + struct.pack("!I", len(REFUSAL) + 4) + REFUSAL)


def _serve(sock: socket.socket) -> None:
    with suppress(OSError):  # the test is over
        while True:
            client, _ = sock.accept()
            _refuse(client)


@pytest.fixture
def starting_up() -> Iterator[int]:
    sock = listening_socket()
    thread = threading.Thread(target=_serve, args=(sock,))
    thread.start()
    yield port_of(sock)
    sock.shutdown(socket.SHUT_RDWR)
    sock.close()
    thread.join()


def test_a_server_that_is_starting_up_is_unavailable(starting_up: int) -> None:
    with pytest.raises(StoreUnavailable, match="starting up") as caught:
        migrate.status(f"postgresql://cam:s3cret-word@{LOOPBACK}:{starting_up}/cam")
    assert "s3cret-word" not in caught.value.message
    assert exit_of(caught.value) is Exit.STORE_AWAY
    assert Exit.STORE_AWAY.restart
