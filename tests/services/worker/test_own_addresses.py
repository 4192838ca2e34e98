"""Where no camera may be, also when the name service was late."""

import socket
from typing import Any

import pytest

from camserver.media.addresses import AddressPolicy
from camserver.services.worker.own_addresses import OwnAddresses


def test_a_name_service_that_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    is_there = False

    def asked(host: str, *_: object, **__: object) -> list[Any]:
        if not is_there:
            raise OSError("no name service")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("198.51.100.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    own = OwnAddresses("https://server.example:8443")
    policy = AddressPolicy(also_own=own)
    own.find()
    assert policy.why_not("198.51.100.1") is None
    is_there = True
    own.find()
    assert "the server itself" in str(policy.why_not("198.51.100.1"))
    assert policy.why_not("198.51.100.2") is None
    is_there = False
    own.find()
    assert "the server itself" in str(policy.why_not("198.51.100.1"))
