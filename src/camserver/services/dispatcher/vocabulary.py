"""Keeps the analyzer's vocabulary the one that the store calls active: at start, on change, and on a 409."""

import asyncio
import json

from camserver.base.clock import Clock
from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError
from camserver.domain.vocabulary import Vocabulary, parse_vocabulary
from camserver.store import Store, vocabularies

log = get_logger(__name__)

REFRESH_SEC = 30.0


class ActiveVocabulary:
    def __init__(self, store: Store, analyzer: AnalyzerClient) -> None:
        self._store = store
        self._analyzer = analyzer
        self._current: Vocabulary | None = None
        self._text = ""
        self._sending = asyncio.Lock()
        self._sent_version: str | None = None
        self.sent = 0  # how often the analyzer took one from us

    @property
    def current(self) -> Vocabulary | None:
        """None until the store was read for the first time."""
        return self._current

    async def refresh(self) -> None:
        """Reads the active version."""
        document = await self._store.read(vocabularies.active)
        if self._current is None or document.version != self._current.version:
            self._current = parse_vocabulary(document.parsed())
            self._text = document.text

    async def push(self, sent_before: int | None = None) -> None:
        """PUTs what the store calls active now.

        `sent_before` is what `sent` was when the caller's request was made: of many requests that are refused at
        once, only the first sends the vocabulary, and the others wait for that.
        """
        async with self._sending:
            if sent_before is not None and sent_before != self.sent:
                return
            await self.refresh()
            assert self._current is not None
            await self._analyzer.put_vocabulary(self._current.version, json.loads(self._text))
            self.sent += 1
            self._sent_version = self._current.version
            log.info("vocabulary_sent", schema_version=self._current.version, analyzer=self._analyzer.host)

    async def offer(self) -> None:
        """Sends the active vocabulary unless the analyzer has it from us. One that is away gets it later."""
        try:
            await self.refresh()
            if self._current is not None and self._current.version != self._sent_version:
                await self.push()
        except (AnalyzerError, Retry) as error:
            log.info("vocabulary_not_sent", why=error.message)
        except CamError as error:
            # The one in use stays in use.
            log.error("vocabulary_unusable", why=error.message, error_code=error.code)

    async def follow(self, clock: Clock) -> None:
        """Offers every change."""
        while True:
            await clock.sleep(REFRESH_SEC)
            await self.offer()
