import socket

import pytest

from tests.rig.ports import free_port, listening_socket, port_of


def test_a_listening_socket_holds_its_port() -> None:
    with listening_socket() as sock:
        with pytest.raises(OSError, match="in use"):
            listening_socket(port_of(sock)).close()
        socket.create_connection(("127.0.0.1", port_of(sock))).close()


def test_a_free_port_can_be_bound() -> None:
    listening_socket(free_port()).close()
