"""WebSockets of the HTTP server, as uvicorn has them but for what it gets wrong about refusals and about peers.

How their connections begin, and what they may cost until then, is `http_connections`'.
"""

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from camserver.base.addresses import peer_host

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent


class AnsweredProtocol(WebSocketsSansIOProtocol):
    """Takes a refusal that was sent for the answer it is, and IPv4 peers for what they are."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.client is not None:
            self.client = (peer_host(self.client[0]), self.client[1])

    async def send(self, message: "ASGISendEvent") -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # uvicorn knows a handshake as complete only when it was accepted or closed with 403. An application that
            # answered by anything else would be reported as an error, for each sign-in that is over.
            self.handshake_complete = True
