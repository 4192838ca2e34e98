"""Who looks at pictures for `camserver analyze`: the model of this machine, or an analyzer somewhere."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from camserver.base.errors import BadInput, CamError, Unavailable
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError, Question, iso_utc
from camserver.commands.native_output import without_notes
from camserver.domain.analysis import Analysis
from camserver.domain.jobs import ErrorKind
from camserver.domain.vocabulary import Vocabulary, parse_vocabulary
from camserver.store.vocabularies import shipped

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.services.analyzer.detector import Detector

CAMERA_ID = "analyze"
REQUEST_ID = "analyze"
# What says something about the analyzer and nothing about a picture: the next one would fare no better.
_AWAY = frozenset({ErrorKind.CONNECTION, ErrorKind.UNAVAILABLE, ErrorKind.OVERLOADED})


@dataclass(frozen=True, slots=True)
class Asking:
    """What is said besides the picture, as a server would."""

    previous: bytes | None = None
    previous_age_ms: int | None = None
    hints: Mapping[str, object] = field(default_factory=dict)

    def hints_at(self, now_ms: int) -> dict[str, object]:
        if self.previous is None or self.previous_age_ms is None:
            return dict(self.hints)
        return {**self.hints, "prev_captured_at": iso_utc(now_ms - self.previous_age_ms)}


class Eyes(Protocol):
    @property
    def vocabulary(self) -> Vocabulary: ...

    async def look(self, jpeg: bytes, now_ms: int, asking: Asking) -> Analysis:
        """BadInput when it is about this picture; another error when it is about who looks."""


@dataclass(frozen=True, slots=True)
class LocalEyes:
    """Uses its detector on the caller's thread: a command has nothing else to do meanwhile."""

    detector: "Detector"
    settings: "Settings"
    vocabulary: Vocabulary

    async def look(self, jpeg: bytes, now_ms: int, asking: Asking) -> Analysis:
        from camserver.services.analyzer.analyzing import Question as Asked
        from camserver.services.analyzer.analyzing import analyze
        from camserver.wire.analyzer import parse_answer
        from camserver.wire.analyzer_service import parse_fields

        fields = {
            "camera_id": CAMERA_ID,
            "captured_at": iso_utc(now_ms),
            "schema_version": self.vocabulary.version,
            "hints_json": json.dumps(asking.hints_at(now_ms)),
        }
        asked = Asked(parse_fields(fields), jpeg, asking.previous)
        answer = analyze(asked, self.detector, self.vocabulary, self.settings.detections)
        body = answer.model_dump_json(exclude_none=True).encode()
        return parse_answer(body, CAMERA_ID, now_ms, REQUEST_ID, self.vocabulary)


@dataclass(frozen=True, slots=True)
class RemoteEyes:
    client: AnalyzerClient
    vocabulary: Vocabulary

    async def look(self, jpeg: bytes, now_ms: int, asking: Asking) -> Analysis:
        question = Question(CAMERA_ID, now_ms, REQUEST_ID, jpeg, asking.previous, asking.hints_at(now_ms))
        try:
            return await self.client.analyze(question, self.vocabulary)
        except AnalyzerError as error:
            raise self._meant(error) from None

    def _meant(self, error: AnalyzerError) -> CamError:
        if error.kind is ErrorKind.VOCABULARY_MISMATCH:
            return Unavailable(
                f"the analyzer at {self.client.host} holds another vocabulary than {self.vocabulary.version}, or "
                "none; give it that one with --put-vocabulary (a server that uses it puts its own again)"
            )
        if error.kind in _AWAY:
            return Unavailable(f"the analyzer at {self.client.host} can't be asked: {error.message}")
        return BadInput(error.message)


@asynccontextmanager
async def opened(settings: "Settings", url: str | None, put_vocabulary: bool) -> AsyncIterator[Eyes]:
    """Those of `url`; without one those that the settings name."""
    document = json.loads(shipped().text)
    vocabulary = parse_vocabulary(document)
    if url is None and settings.analyzer.detector == "remote":
        url = settings.analyzer.remote_url
    if not url:
        yield _local(settings, vocabulary)
        return
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is no address of an analyzer; it begins with http:// or https://")
    client = AnalyzerClient(
        url,
        analyze_timeout_sec=settings.analyzer.analyze_timeout_sec,
        schema_timeout_sec=settings.analyzer.schema_timeout_sec,
        health_timeout_sec=settings.analyzer.health_timeout_sec,
    )
    try:
        if put_vocabulary:
            try:
                await client.put_vocabulary(vocabulary.version, document)
            except AnalyzerError as error:
                raise Unavailable(f"the analyzer at {client.host} takes no vocabulary: {error.message}") from None
        yield RemoteEyes(client, vocabulary)
    finally:
        await client.close()


def _local(settings: "Settings", vocabulary: Vocabulary) -> LocalEyes:
    from camserver.services.analyzer.models.loading import load

    alone = replace(settings, analyzer=replace(settings.analyzer, workers=1))
    with without_notes():
        detector = load(alone, stand_in=False).detectors[0]
    return LocalEyes(detector, settings, vocabulary)
