"""Where the streamer learns which viewings are valid and says what they need: the store, or control's API."""

from typing import Protocol

import aiohttp

from camserver.base.errors import BadInput, Unavailable
from camserver.wire.live import SYNC_MAX_BYTES, SYNC_PATH, Sync, Synced, parse_synced

SYNC_SEC = 5.0


class Desk(Protocol):
    async def sync(self, sync: Sync) -> Synced:
        """What is valid now. Retry (such as Unavailable) when it can't be said."""


class ApiDesk:
    """Through control, where the store is a file that only the server may open."""

    def __init__(self, session: aiohttp.ClientSession, control_url: str, token: str) -> None:
        self._session = session
        self._url = control_url.rstrip("/") + SYNC_PATH
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    async def sync(self, sync: Sync) -> Synced:
        timeout = aiohttp.ClientTimeout(total=SYNC_SEC)
        try:
            async with self._session.post(
                self._url, data=sync.model_dump_json(), headers=self._headers, timeout=timeout, allow_redirects=False
            ) as answer:
                body = await answer.content.read(SYNC_MAX_BYTES)
                if answer.status != 200:
                    raise Unavailable(f"control answered {answer.status} to the streamer's sync")
                return parse_synced(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"control can't be reached: {type(error).__name__}") from None
        except BadInput as error:
            raise Unavailable(error.message) from None
