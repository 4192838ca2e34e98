"""The analyzers a dispatcher asks: who gets the next question, who is well, and who has which vocabulary.

The rules are in domain/analyzers.py. Nothing here touches jobs: `ask` answers an analysis or raises what went wrong.
"""

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from camserver.base import figures
from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.clients.analyzer import AnalyzerClient, AnalyzerError, Question
from camserver.domain.analysis import Analysis
from camserver.domain.analyzers import (
    Lane,
    choose,
    claim_average_ms,
    earliest_resume_at,
    is_anyone_there,
    jobs_wanted,
)
from camserver.domain.jobs import BreakerState, ErrorKind, JobPolicy, sends_vocabulary
from camserver.domain.vocabulary import Vocabulary
from camserver.services.dispatcher.turns import patiently
from camserver.services.dispatcher.vocabulary import ActiveVocabulary, Supply
from camserver.store import Store, analyzers
from camserver.store.analyzers import Seen
from camserver.wire.analyzer import WARNINGS_MAX, CapabilitiesAnswer

if TYPE_CHECKING:
    from camserver.config.analyzer_section import AnalyzerSettings

log = get_logger(__name__)

STEP_SEC = 1.0
# An analyzer that had nothing to do, or that is away, is asked for its health this often.
HEALTH_EVERY_MS = 5_000
REPORT_EVERY_MS = 5_000
VOCABULARY_EVERY_SEC = 30.0
# Jobs whose last analyzer is remembered, so that their next attempt goes to another one.
REMEMBERED_MAX = 10_000
REFUSED_PREVIOUS = "the request with the previous picture was refused; it was asked without"


@dataclass(slots=True)
class Analyzer:
    """One of them, with what this dispatcher knows about it."""

    url: str
    client: AnalyzerClient
    supply: Supply
    lane: Lane
    heard_boot_ms: int = 0  # the last sign of life, or the last check for one
    last_error: str | None = None
    warning: str | None = None  # what it says is not as it should be with itself
    is_known: bool = False  # its capabilities were asked for
    checking: bool = False

    @property
    def is_away(self) -> bool:
        return self.lane.breaker.state is not BreakerState.CLOSED


@dataclass(slots=True)
class Pool:
    """Gives each question to the least loaded analyzer; those that find all of them full wait in line."""

    name: str  # of the dispatcher
    store: Store
    clock: Clock
    vocabulary: ActiveVocabulary
    analyzers: Sequence[Analyzer]
    at_hand: int = 0  # jobs that were claimed and have no place yet
    claim_ms: float = 0.0  # moving average of what a claim takes
    # Set when there is room for more jobs.
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: deque[tuple[asyncio.Future[int], frozenset[int]]] = field(default_factory=deque)
    # By request id: the indexes of the analyzers at which it failed.
    _failed_at: OrderedDict[str, frozenset[int]] = field(default_factory=OrderedDict)
    _report_due_boot_ms: int = 0

    def wanted(self) -> int:
        """How many more jobs are worth claiming now."""
        self._hand_out()
        return jobs_wanted(self._lanes(), self.clock.now_ms(), self.at_hand, self.claim_ms)

    def claimed(self, count: int, took_ms: int) -> None:
        """After a claim."""
        self.at_hand += count
        self.claim_ms = claim_average_ms(self.claim_ms, took_ms)

    def let_go(self) -> None:
        """One job less at hand: it has its place, or came to nothing."""
        self.at_hand -= 1
        self._tell()

    def _tell(self) -> None:
        """Not for every place that is free: whoever claims waits until a claim is worth it."""
        if not self.changed.is_set() and jobs_wanted(self._lanes(), self.clock.now_ms(), self.at_hand, self.claim_ms):
            self.changed.set()

    async def place(self, request_id: str) -> int:
        """A place at the analyzer of that index, to be given back by `ask`; waits in line while all are full.

        AnalyzerError when nobody can be asked.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, self._failed_at.get(request_id, frozenset())))
        self._hand_out()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._leave(future.result())
            raise

    def another(self, request_id: str) -> int | None:
        """A place at an analyzer at which the job did not fail yet, at once or not at all."""
        now_ms = self.clock.now_ms()
        failed_at = self._failed_at.get(request_id, frozenset())
        index = choose(self._lanes(), now_ms, failed_at)
        if index is None or index in failed_at or not failed_at:
            return None
        self.analyzers[index].lane = self.analyzers[index].lane.asked(now_ms)
        return index

    async def ask(self, place: int, question: Question) -> tuple[Analysis, Vocabulary]:
        """The answer, and the vocabulary it is in; AnalyzerError says what went wrong."""
        analyzer = self.analyzers[place]
        try:
            answer, latency_ms = await self._asked(analyzer, question)
        except AnalyzerError as error:
            now_ms = self.clock.now_ms()
            analyzer.lane = analyzer.lane.failed(error.kind, now_ms, random.random(), error.retry_after_sec)
            analyzer.last_error = f"{error.kind.value}: {error.message}"
            self._remember(question.request_id, place)
            raise
        except BaseException:
            # Cancelled, or a fault of our own: nothing is known about the analyzer.
            analyzer.lane = analyzer.lane.left()
            raise
        else:
            analyzer.lane = analyzer.lane.answered(latency_ms)
            figures.analysis_seconds.observe(latency_ms / 1000)
            self._failed_at.pop(question.request_id, None)
            return answer
        finally:
            analyzer.heard_boot_ms = self.clock.boot_ms()
            self._hand_out()
            self._tell()

    def _leave(self, place: int) -> None:
        self.analyzers[place].lane = self.analyzers[place].lane.left()
        self._hand_out()
        self._tell()

    async def _asked(self, analyzer: Analyzer, question: Question) -> tuple[tuple[Analysis, Vocabulary], int]:
        """One question, and how long its last try took, in ms.

        Asked again after a 409, with the vocabulary sent; and after a 400, without the previous picture: where only
        that one is damaged, the new one is to be looked at all the same.
        """
        sent_already = False
        asked = question
        while True:
            vocabulary, sent = self.vocabulary.current, analyzer.supply.sent
            assert vocabulary is not None
            started_boot_ms = self.clock.boot_ms()
            try:
                analysis = await analyzer.client.analyze(asked, vocabulary)
                if asked is not question:
                    analysis = replace(analysis, warnings=(REFUSED_PREVIOUS, *analysis.warnings)[:WARNINGS_MAX])
                return (analysis, vocabulary), self.clock.boot_ms() - started_boot_ms
            except AnalyzerError as error:
                if error.kind is ErrorKind.BAD_REQUEST and asked.previous is not None:
                    asked = question.without_previous()
                    continue
                if not sends_vocabulary(error.kind, sent_already):
                    raise
            sent_already = True
            # Patiently: the vocabulary is read from the store.
            await patiently(self.clock, analyzer.supply.push, sent)

    def _remember(self, request_id: str, index: int) -> None:
        if len(self.analyzers) > 1:
            self._failed_at[request_id] = self._failed_at.get(request_id, frozenset()) | {index}
            self._failed_at.move_to_end(request_id)
            while len(self._failed_at) > REMEMBERED_MAX:
                self._failed_at.popitem(last=False)

    def _hand_out(self) -> None:
        """Gives free places to those who wait; where nobody can be asked any more, turns them all away."""
        now_ms = self.clock.now_ms()
        choosy: list[tuple[asyncio.Future[int], frozenset[int]]] = []
        while self._waiting:
            future, avoid = self._waiting.popleft()
            if future.done():  # whoever waited was cancelled
                continue
            index = choose(self._lanes(), now_ms, avoid)
            if index is None:
                # One that failed elsewhere may wait for a place that others behind it do not need.
                choosy.append((future, avoid))
                if not avoid:
                    break
                continue
            self.analyzers[index].lane = self.analyzers[index].lane.asked(now_ms)
            future.set_result(index)
        self._waiting.extendleft(reversed(choosy))
        if self._waiting and not is_anyone_there(self._lanes(), now_ms):
            self._turn_away(now_ms)

    def _turn_away(self, now_ms: int) -> None:
        pause_sec = max(0, earliest_resume_at(self._lanes()) - now_ms) / 1000
        why = next((one.last_error for one in self.analyzers if one.last_error is not None), "none answers")
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(
                    AnalyzerError(
                        ErrorKind.UNAVAILABLE,
                        f"no analyzer can be asked now; the last error: {why}",
                        pause_sec or None,
                    )
                )

    def _lanes(self) -> list[Lane]:
        return [analyzer.lane for analyzer in self.analyzers]

    # Health, vocabulary, report.

    async def watch(self) -> None:
        """Checks the analyzers' health and reports how they stand, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for analyzer in self.analyzers:
                    if self._is_check_due(analyzer):
                        analyzer.checking = True
                        group.create_task(self._check(analyzer))
                # Time alone frees places too: a pause that an analyzer asked for is over.
                self._hand_out()
                if self.clock.boot_ms() >= self._report_due_boot_ms:
                    self._report_due_boot_ms = self.clock.boot_ms() + REPORT_EVERY_MS
                    await self.report()
                await self.clock.sleep(STEP_SEC)

    def _is_check_due(self, analyzer: Analyzer) -> bool:
        if analyzer.checking or (analyzer.lane.in_flight and not analyzer.is_away):
            return False
        if analyzer.is_away and analyzer.lane.is_healthy is None:
            return True
        return self.clock.boot_ms() - analyzer.heard_boot_ms >= HEALTH_EVERY_MS

    async def _check(self, analyzer: Analyzer) -> None:
        try:
            await analyzer.client.check_health()
            if analyzer.is_away and analyzer.lane.is_healthy is not True:
                log.info("analyzer_healthy_again", analyzer=analyzer.client.host)
            analyzer.lane = analyzer.lane.found_healthy(self.clock.now_ms())
            await analyzer.supply.offer()
            await self._get_to_know(analyzer)
        except AnalyzerError as error:
            if analyzer.lane.is_healthy is not False:
                log.warning("analyzer_not_healthy", analyzer=analyzer.client.host, why=error.message)
            analyzer.lane = analyzer.lane.found_away(self.clock.now_ms(), random.random())
            analyzer.last_error = f"{error.kind.value}: {error.message}"
        except Exception:
            # What is broken here must not keep the analysis from going on.
            log.exception("analyzer_check_broke", analyzer=analyzer.client.host)
        finally:
            analyzer.checking = False
            analyzer.heard_boot_ms = self.clock.boot_ms()
            self._hand_out()
            self._tell()

    async def _get_to_know(self, analyzer: Analyzer) -> None:
        """Once: what it says about itself goes to the log. One that does not say it is used all the same."""
        if analyzer.is_known:
            return
        analyzer.is_known = True
        try:
            able = await analyzer.client.capabilities()
        except AnalyzerError as error:
            log.warning("analyzer_capabilities_unknown", analyzer=analyzer.client.host, why=error.message)
            return
        log.info(
            "analyzer_found",
            analyzer=analyzer.client.host,
            runtime=able.runtime,
            model=able.model.name,
            model_version=able.model.version,
        )
        analyzer.warning = _warning(able)

    async def _hear_warnings(self, analyzer: Analyzer) -> None:
        """They are for people to read; who does not tell any has none."""
        try:
            analyzer.warning = _warning(await analyzer.client.capabilities())
        except AnalyzerError:
            analyzer.warning = None

    async def offer_vocabulary(self) -> None:
        await asyncio.gather(*(analyzer.supply.offer() for analyzer in self.analyzers))

    async def follow_vocabulary(self) -> None:
        """Offers every change."""
        while True:
            await self.clock.sleep(VOCABULARY_EVERY_SEC)
            await self.offer_vocabulary()
            await asyncio.gather(*(self._hear_warnings(one) for one in self.analyzers if not one.is_away))

    async def report(self) -> None:
        now_ms = self.clock.now_ms()
        rows = tuple(_seen(analyzer, now_ms) for analyzer in self.analyzers)
        try:
            await self.store.write(analyzers.report, self.name, rows, now_ms)
        except Retry as error:
            log.warning("analyzers_not_reported", why=error.message)
            go_on_unless_cancelled()

    async def close(self) -> None:
        try:
            await self.store.write(analyzers.forget, self.name)
        except Retry as error:
            log.warning("analyzers_not_forgotten", why=error.message)
        for analyzer in self.analyzers:
            await analyzer.client.close()


def open_pool(name: str, store: Store, clock: Clock, settings: "AnalyzerSettings", policy: JobPolicy) -> Pool:
    """The analyzers of the settings, none asked yet."""
    vocabulary = ActiveVocabulary(store)
    found = []
    for url in settings.addresses:
        client = AnalyzerClient(
            url,
            analyze_timeout_sec=settings.analyze_timeout_sec,
            schema_timeout_sec=settings.schema_timeout_sec,
            health_timeout_sec=settings.health_timeout_sec,
        )
        supply = Supply(vocabulary, client)
        found.append(Analyzer(url, client, supply, Lane.new(policy), heard_boot_ms=clock.boot_ms()))
    return Pool(name, store, clock, vocabulary, tuple(found))


def _seen(analyzer: Analyzer, now_ms: int) -> Seen:
    lane = analyzer.lane
    return Seen(
        url=analyzer.url,
        state=lane.state(now_ms).value,
        in_flight=lane.in_flight,
        concurrency=lane.breaker.limit,
        latency_ms=None if lane.latency_ms is None else round(lane.latency_ms),
        last_error="; ".join(filter(None, (analyzer.warning, analyzer.last_error))) or None,
    )


def _warning(able: CapabilitiesAnswer) -> str | None:
    return f"warning: {'; '.join(able.warnings)}" if able.warnings else None
