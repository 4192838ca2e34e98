"""Keeps every analyzer's vocabulary the one that the store calls active: at start, on change, and on a 409."""

import asyncio
import json

from camserver.base.errors import CamError, Retry
from camserver.base.log import get_logger
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError
from camserver.domain.vocabulary import Vocabulary, parse_vocabulary
from camserver.store import Store, vocabularies

log = get_logger(__name__)


class ActiveVocabulary:
    """What the store calls active, as it was last read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._current: Vocabulary | None = None
        self._text = ""

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

    async def refresh_if_usable(self) -> None:
        """The same, but one that can't be used leaves the one in use; Retry when the store is away."""
        try:
            await self.refresh()
        except Retry:
            raise
        except CamError as error:
            if self._current is None:
                raise
            log.error("vocabulary_unusable", why=error.message, error_code=error.code)

    def document(self) -> tuple[str, object]:
        """Its version and the document as an analyzer gets it."""
        assert self._current is not None
        return self._current.version, json.loads(self._text)


class Supply:
    """The active vocabulary on its way to one analyzer."""

    def __init__(self, active: ActiveVocabulary, analyzer: AnalyzerClient) -> None:
        self._active = active
        self._analyzer = analyzer
        self._sending = asyncio.Lock()
        self._sent_version: str | None = None
        self.sent = 0  # how often the analyzer took one from us

    async def push(self, sent_before: int | None = None) -> None:
        """PUTs what the store calls active now.

        `sent_before` is what `sent` was when the caller's request was made: of many requests that are refused at
        once, only the first sends the vocabulary, and the others wait for that.
        """
        async with self._sending:
            if sent_before is not None and sent_before != self.sent:
                return
            await self._active.refresh_if_usable()
            await self._put()

    async def offer(self) -> None:
        """Sends the active vocabulary unless the analyzer has it from us. One that is away gets it later."""
        try:
            # Several offer it at once: whoever comes second finds it sent.
            async with self._sending:
                await self._active.refresh_if_usable()
                current = self._active.current
                if current is not None and current.version != self._sent_version:
                    await self._put()
        except (AnalyzerError, Retry) as error:
            log.info("vocabulary_not_sent", why=error.message, analyzer=self._analyzer.host)
        except CamError as error:
            # Not even the first one can be used.
            log.error("vocabulary_unusable", why=error.message, error_code=error.code)

    async def _put(self) -> None:
        version, document = self._active.document()
        await self._analyzer.put_vocabulary(version, document)
        self.sent += 1
        self._sent_version = version
        log.info("vocabulary_sent", schema_version=version, analyzer=self._analyzer.host)
