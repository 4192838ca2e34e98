"""Another analyzer in the place of a detector: requests are passed on to it.

Its answers are believed no more than a server believes an analyzer, and passed back in full: tags, boxes, which model
saw them. Its refusals become ours, with the time to wait. Analyzers that pass on to one another in a circle are
noticed by the names they leave in a header.
"""

import asyncio
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from typing import Any

from PIL import Image

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Bug, CamError, Unavailable
from camserver.base.log import get_logger
from camserver.clients import analyzer as clients
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError
from camserver.domain.analysis import Analysis
from camserver.domain.detections import ALL_EVENTS, Detection
from camserver.domain.jobs import ErrorKind
from camserver.domain.vocabulary import Vocabulary
from camserver.services.analyzer.analyzing import Question
from camserver.services.analyzer.detector import InForce, Model
from camserver.services.analyzer.line import Overloaded
from camserver.services.analyzer.vocabulary_file import Held, VocabularyMismatch
from camserver.wire.analyzer import AnalyzeAnswer, DiffInfo
from camserver.wire.analyzer_service import make_answer

log = get_logger(__name__)

# A chain longer than this is a mistake, too.
HOPS_MAX = 8
RETRY_AFTER_SEC_MAX = 300
# While it has not said yet what it runs.
ASK_AGAIN_SEC = 30.0
# It may be given another model.
ASK_EVERY_SEC = 600.0
UNKNOWN = "unknown"
# Of the time that whoever asked us still waits, this is ours: to say that the other one was too slow.
OWN_SEC = 1.0


class RemoteFailed(CamError):
    """The other analyzer did not do what it should; the attempt counts."""

    code = "remote_failed"


class RemoteAnalyzer:
    """The connection to the other analyzer, shared by all that stand in the line. For one event loop.

    `held` gives the vocabulary that is in force here; the other one is given it when it asks for it.
    """

    def __init__(self, client: AnalyzerClient, held: Callable[[], Held | None]) -> None:
        self._client = client
        self._held = held
        self._name = secrets.token_hex(8)
        self._putting = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, clock: Clock, in_force: InForce) -> None:
        """Until cancelled; then nobody waits for the other analyzer any longer."""
        try:
            while True:
                await clock.sleep(ASK_AGAIN_SEC if in_force.model.version == UNKNOWN else ASK_EVERY_SEC)
                said = await self.in_force()
                if said.model.version != UNKNOWN:  # else it is away, and will be what it was
                    in_force.model, in_force.model_warnings = said.model, said.model_warnings
        finally:
            for task in self._under_way:
                task.cancel()

    async def in_force(self) -> InForce:
        """What it says about itself; it may be away, or start later."""
        try:
            said = await self._client.capabilities()
        except AnalyzerError as error:
            log.warning("the other analyzer says nothing about itself", cause=error.message)
            return InForce(Model("remote", self._client.host, UNKNOWN))
        name, version = said.model.name or self._client.host, said.model.version or UNKNOWN
        events = ALL_EVENTS if said.supported_primary_events is None else tuple(said.supported_primary_events)
        return InForce(Model("remote", name, version, events), tuple(said.warnings or ()))

    async def answer(self, question: Question, vocabulary: Vocabulary, left_sec: float) -> AnalyzeAnswer:
        """Within that time."""
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        passed_on = _passed_on(question, self._via(question))
        try:
            analysis, diff = await self._analyze(passed_on, vocabulary, left_sec)
        except AnalyzerError as error:
            raise _ours(error, self._client.host) from error
        return make_answer(question.asked, analysis, diff)

    async def _analyze(
        self, question: clients.Question, vocabulary: Vocabulary, left_sec: float
    ) -> tuple[Analysis, DiffInfo]:
        loop = asyncio.get_running_loop()
        until_sec = loop.time() + left_sec
        try:
            return await self._client.whole_answer(question, vocabulary, left_sec)
        except AnalyzerError as error:
            if error.kind is not ErrorKind.VOCABULARY_MISMATCH:
                raise
        # Many requests find this out at once. One puts it; the others find it in force.
        async with self._putting:
            held = self._held()
            if held is None or held.schema_version != vocabulary.version:
                raise VocabularyMismatch("another vocabulary came into force meanwhile; ask again with it")
            await self._client.put_vocabulary(held.schema_version, held.schema)
        return await self._client.whole_answer(question, vocabulary, until_sec - loop.time())

    def _via(self, question: Question) -> str:
        names = [name.strip() for name in question.via.split(",") if name.strip()]
        if self._name in names:
            raise Unavailable(
                f"requests come back to this analyzer in a circle of {len(names)}; check analyzer.remote_url of each"
            )
        if len(names) >= HOPS_MAX:
            raise Unavailable(f"{len(names)} analyzers have passed this request on, which is too many")
        return ",".join([*names, self._name])


def time_for_the_other_sec(left_sec: float) -> float:
    """Half of it where there is hardly any."""
    return max(left_sec - OWN_SEC, left_sec / 2)


class RemoteDetector:
    """A place in the line for one request to the other analyzer at a time."""

    def __init__(self, remote: RemoteAnalyzer, model: Model, loop: asyncio.AbstractEventLoop) -> None:
        self._remote = remote
        self._model = model
        self._loop = loop

    @property
    def model(self) -> Model:
        return self._model

    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        raise Bug("another analyzer is asked with the request as it came, not with a picture")

    def forward(self, question: Question, vocabulary: Vocabulary, left_sec: float) -> AnalyzeAnswer:
        """Called in a thread of the line, while the loop runs."""
        within_sec = time_for_the_other_sec(left_sec)
        answering = asyncio.run_coroutine_threadsafe(
            self._remote.answer(question, vocabulary, within_sec), self._loop
        )
        try:
            return answering.result()
        except CancelledError:
            raise Unavailable("this analyzer is stopping; ask again later") from None


def _passed_on(question: Question, via: str) -> clients.Question:
    asked = question.asked
    captured = datetime.fromisoformat(asked.captured_at)
    captured = captured if captured.tzinfo is not None else captured.replace(tzinfo=UTC)
    return clients.Question(
        camera_id=asked.camera_id,
        captured_at=round(captured.timestamp() * 1000),
        request_id=asked.request_id or secrets.token_hex(16),
        picture=question.picture,
        previous=question.prev_picture,
        hints=_hints(question.hints_json),
        profile=asked.profile,
        via=via,
    )


def _hints(text: str) -> Mapping[str, object] | None:
    hints: dict[str, Any] | None = json.loads(text) if text else None  # it was read before, so it is an object
    return hints


def _ours(error: AnalyzerError, host: str) -> CamError:
    """What the other one's failure means to who asked us."""
    message = f"the analyzer at {host}: {error.message}"
    retry_after_sec = _seconds(error.retry_after_sec)
    match error.kind:
        case ErrorKind.OVERLOADED:
            return Overloaded(message, retry_after_sec)
        case ErrorKind.UNAVAILABLE | ErrorKind.CONNECTION:
            return Unavailable(message, retry_after_sec=retry_after_sec)
        case ErrorKind.BAD_REQUEST:
            return BadInput(message)
        case ErrorKind.VOCABULARY_MISMATCH:
            return VocabularyMismatch(message)
        case _:
            return RemoteFailed(message)


def _seconds(asked: float | None) -> int:
    if asked is None or not math.isfinite(asked):
        return 2
    return min(max(math.ceil(asked), 1), RETRY_AFTER_SEC_MAX)
