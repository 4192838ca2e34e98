import os
import socket
import subprocess
import sys

import pytest

from tests.rig import ports
from tests.rig.ports import free_port, listening_socket, port_of
from tests.rig.processes import REPOSITORY

GIVES_OUT = "from tests.rig.ports import free_port; print(*(free_port() for _ in range(50)))"


def test_a_listening_socket_holds_its_port() -> None:
    with listening_socket() as sock:
        with pytest.raises(OSError, match="in use"):
            listening_socket(port_of(sock)).close()
        socket.create_connection(("127.0.0.1", port_of(sock))).close()


def test_a_free_port_can_be_bound() -> None:
    listening_socket(free_port()).close()


def test_no_two_programs_are_given_one_port() -> None:
    given = [free_port() for _ in range(50)]
    assert len(set(given)) == 50


def test_another_process_is_given_others() -> None:
    mine = {free_port() for _ in range(50)}
    asked = [sys.executable, "-c", GIVES_OUT]
    said = subprocess.run(asked, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=60).stdout
    blocks = {(int(port) - ports.LOWEST) // ports.BLOCK_PORTS for port in said.split()}
    assert blocks.isdisjoint((port - ports.LOWEST) // ports.BLOCK_PORTS for port in mine)


def test_a_port_that_somebody_has_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening_socket() as taken:
        other = free_port()
        monkeypatch.setattr(ports, "_owned", (os.getpid(), -1, iter([port_of(taken), other])))
        assert free_port() == other
