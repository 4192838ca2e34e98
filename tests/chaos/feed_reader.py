"""Somebody who follows the change feed through the whole storm, as a browser does: by cursor, over the web API."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp

from camserver.config.secret_files import LOCAL_ADMIN_TOKEN

POLL_SEC = 0.2
REQUEST_TIMEOUT_SEC = 5


class FeedReader:
    """`notes` is what it was shown: seq -> (kind, at). Errors of a server that is away are waited out."""

    def __init__(self, web_url: str, secrets: Path) -> None:
        self._url = f"{web_url}/api/changes"
        self._token_file = secrets / LOCAL_ADMIN_TOKEN
        self._cursor = 0
        self.notes: dict[int, tuple[str, int]] = {}
        self.events_seen: set[str] = set()
        self.resyncs = 0

    async def run(self) -> None:
        """Reads until cancelled."""
        headers = {"Authorization": f"Bearer {self._token_file.read_text().strip()}"}
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
        async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
            while True:
                with suppress(aiohttp.ClientError, TimeoutError):  # it was killed, or is starting
                    await self._read(session)
                await asyncio.sleep(POLL_SEC)

    async def _read(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self._url, params={"after": self._cursor}) as answer:
            if answer.status != 200:
                return
            page = await answer.json()
        self.resyncs += bool(page["resync"])
        for change in page["changes"]:
            self.notes.setdefault(change["seq"], (change["kind"], change["at"]))
            if change["kind"] == "event" and change["object"]:
                self.events_seen.add(change["object"])
        self._cursor = page["last_seq"]
