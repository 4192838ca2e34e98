import os
import socket
import subprocess
import sys

import pytest

from camserver.base import ports
from camserver.base.errors import BadSettings, PortUnusable
from tests.rig.ports import listening_socket, port_of

TIMEOUT_SEC = 60


def test_the_socket_listens_at_once() -> None:
    with ports.listen("127.0.0.1", 0, "web.port") as sock, socket.create_connection(sock.getsockname(), TIMEOUT_SEC):
        assert not sock.getblocking()


def test_a_port_in_use_names_port_holder_and_way_out() -> None:
    with listening_socket() as held:
        port = port_of(held)
        with pytest.raises(PortUnusable) as caught:
            ports.listen("127.0.0.1", port, "web.port")
    message = caught.value.message
    assert f"port {port}" in message
    assert f"process {os.getpid()} (this process)" in message
    assert "web.port" in message
    assert "CAMSERVER_WEB_PORT" in message


def test_another_process_that_holds_it_is_named() -> None:
    source = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    argv = [sys.executable, "-c", source]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        port = int(holder.stdout.readline())
        with pytest.raises(PortUnusable, match=f"process {holder.pid}"):
            ports.listen("127.0.0.1", port, "control.port")
        holder.stdin.write("\n")


def test_a_port_that_is_only_bound_twice_is_found_out_too() -> None:
    """Two sockets with SO_REUSEADDR may both bind; listening is what tells them apart."""
    with ports.listen("127.0.0.1", 0, "web.port") as first, pytest.raises(PortUnusable):
        ports.listen("127.0.0.1", port_of(first), "web.port")


def test_a_closed_port_can_be_taken_again_while_connections_wind_down() -> None:
    first = ports.listen("127.0.0.1", 0, "web.port")
    client = socket.create_connection(first.getsockname(), TIMEOUT_SEC)
    first.setblocking(True)
    accepted, _ = first.accept()
    port = port_of(first)
    accepted.close()  # the side that closes first keeps the port in TIME_WAIT
    client.close()
    first.close()
    ports.listen("127.0.0.1", port, "web.port").close()


def test_a_host_that_is_not_ours_or_unknown_is_a_matter_of_settings() -> None:
    with pytest.raises(BadSettings, match=r"192\.0\.2\.1 is not an address of this machine; set web\.host"):
        ports.listen("192.0.2.1", 8080, "web.port")
    with pytest.raises(BadSettings, match=r"control\.host"):
        ports.listen("no such host", 8080, "control.port")


def test_nobody_holds_a_free_port() -> None:
    with listening_socket() as held:
        port = port_of(held)
    assert ports.holder_of(port) is None
