"""Why a connection failed is said as the system says it."""

import socket

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from camserver.clients.causes import cause_of

_KEY = ConnectionKey("h", 9, False, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            aiohttp.ClientConnectorError(_KEY, ConnectionRefusedError(111, "Connect call failed ('h', 9)")),
            "Connection refused",
        ),
        (
            aiohttp.ClientConnectorDNSError(_KEY, socket.gaierror(-2, "Name or service not known")),
            "Name or service not known",
        ),
        (aiohttp.ClientPayloadError("cut off"), "ClientPayloadError: cut off"),
    ],
)
def test_a_cause_is_in_plain_words(error: Exception, said: str) -> None:
    assert cause_of(error) == said
