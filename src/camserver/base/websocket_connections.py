"""WebSockets of the HTTP server, as uvicorn has them but for what it gets wrong about refusals.

How their connections begin, and what they may cost until then, is `http_connections`'.
"""

from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent


class AnsweredProtocol(WebSocketsSansIOProtocol):
    """Takes a refusal that was sent for the answer it is."""

    async def send(self, message: "ASGISendEvent") -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # uvicorn knows a handshake as complete only when it was accepted or closed with 403. An application that
            # answered by anything else would be reported as an error, for each sign-in that is over.
            self.handshake_complete = True
