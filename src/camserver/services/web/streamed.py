"""An answer that is made while it is sent, and let go of when it ends, also when its reader leaves in the middle."""

from collections.abc import AsyncGenerator, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Streamed(StreamingResponse):
    """Closes what it sends from. Otherwise a generator that nobody goes on with waits for the garbage collector."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str],
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(chunks, media_type=media_type, headers=headers)
        self._chunks = chunks
        self._let_go = let_go

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                await self._chunks.aclose()
            finally:
                self._let_go()
