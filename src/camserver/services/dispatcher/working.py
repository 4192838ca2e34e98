"""One job after another: claim, ask, decide, apply. Errors are told apart in one place and never stop the loop.

A store that is away is waited for, with what was found out so far: analyses are paid for. The job's fence tells
whether the wait was too long.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import uuid_utils

from camserver.base import figures, traces
from camserver.base.batches import Batcher
from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger, keep_ids
from camserver.base.traces import Step
from camserver.clients.analyzer import AnalyzerError, Question
from camserver.domain.analysis import Analysis
from camserver.domain.hints import camera_hints
from camserver.domain.jobs import ErrorKind, after_error
from camserver.domain.outcomes import Policies, decide
from camserver.domain.vocabulary import Vocabulary
from camserver.services.dispatcher.analyzers import Pool
from camserver.services.dispatcher.pictures import Pictures
from camserver.services.dispatcher.turns import STORE_PAUSE_SEC, patiently, until_set
from camserver.store import Dialect, Store, jobs, outcomes
from camserver.store.jobs import ClaimedJob, ClaimTerms, Failure
from camserver.store.outcomes import Applied, Finished
from camserver.wire.analyzer import result_json

log = get_logger(__name__)

# How often an empty queue is looked at.
IDLE_SEC = 0.3
# Most outcomes written at once, and most that wait for it before nothing more is claimed, both in batches of jobs.
# More would make decisions stale: while a camera's outcome waits, its next job is decided on a state that moves.
OUTCOME_CLAIMS = 8
# How long outcomes wait for others to be written with them. Only their cameras' next jobs wait for that.
LINGER_SEC = 0.01
# How often a state that keeps moving is decided again before the job is given back.
DECISIONS_MAX = 20
# What is worth asking another analyzer about within the same attempt.
ASK_ANOTHER = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.BROKEN_ANSWER, ErrorKind.VOCABULARY_MISMATCH})


@dataclass(frozen=True, slots=True)
class AskingTerms:
    """What an analyzer is told besides the picture."""

    night_from_hour: int = 22
    night_until_hour: int = 5


@dataclass(slots=True)
class Counters:
    """What this dispatcher did since it started."""

    claimed: int = 0
    done: int = 0
    failed: int = 0
    decided_again: int = 0
    fences_lost: int = 0


@dataclass(slots=True)
class Desk:
    """Everything a job needs on its way through."""

    name: str
    store: Store
    clock: Clock
    pool: Pool
    terms: ClaimTerms
    policies: Policies
    asking: AskingTerms
    pictures: Pictures
    # By job and fence: a job whose claim was lost may be claimed again before its first task has noticed.
    in_flight: dict[tuple[int, str], asyncio.Task[None]] = field(default_factory=dict)
    # One outcome of a camera at a time: each moves the state that the others were decided on.
    turns: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    counters: Counters = field(default_factory=Counters)
    applier: Batcher[Finished, Applied] = field(init=False)
    failer: Batcher[Failure, None] = field(init=False)
    rereader: Batcher[tuple[int, str], ClaimedJob | None] = field(init=False)
    # Their analysis is there and the outcome is being written, which lets the claim go: that it is gone is no news.
    settling: set[tuple[int, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        size_max = self.settling_max
        self.applier = Batcher(
            self._apply,
            size_max=size_max,
            waiting_max=100 * size_max,
            linger_sec=self._linger_sec,
            # SQLite has one writer; a server lets a second batch go on while the first waits for the disk. No camera
            # is in both, thanks to its turn.
            at_once=1 if self.store.dialect is Dialect.SQLITE else 2,
            beside_min=2 * self.terms.policy.batch,
        )
        self.failer = Batcher(self._fail, size_max=size_max, waiting_max=100 * size_max)
        self.rereader = Batcher(self._reread, size_max=size_max, waiting_max=100 * size_max)

    @property
    def settling_max(self) -> int:
        return OUTCOME_CLAIMS * self.terms.policy.batch

    def _linger_sec(self) -> float:
        """Under load outcomes wait for each other: a commit for many costs little more than one for a single one."""
        return LINGER_SEC if len(self.in_flight) >= self.terms.policy.batch > 1 else 0.0

    async def _apply(self, finished: tuple[Finished, ...]) -> Sequence[Applied]:
        return await self.store.write(outcomes.apply, finished, self.clock.now_ms())

    async def _fail(self, failures: tuple[Failure, ...]) -> Sequence[None]:
        await self.store.write(jobs.fail, failures, self.clock.now_ms())
        return [None] * len(failures)

    async def _reread(self, fences: tuple[tuple[int, str], ...]) -> Sequence[ClaimedJob | None]:
        job_ids, tokens = {job_id for job_id, _ in fences}, {token for _, token in fences}
        held = await self.store.read(jobs.claimed, tuple(sorted(job_ids)), tuple(sorted(tokens)), self.terms)
        found = {(job.job_id, job.token): job for job in held}
        return [found.get(fence) for fence in fences]


async def claim_and_work(desk: Desk) -> None:
    """Claims while there is room and somebody to ask, and works on what it got, each job in a task of its own."""
    async with asyncio.TaskGroup() as group:
        while True:
            go_on_unless_cancelled()
            desk.pool.changed.clear()
            try:
                claimed = await _claim(desk)
            except Retry as error:
                log.warning("claim_failed", why=error.message)
                go_on_unless_cancelled()
                await desk.clock.sleep(STORE_PAUSE_SEC)
                continue
            if not claimed:
                await _wait_for_more(desk, is_full=claimed is None)
                continue
            is_read = asyncio.Event()
            group.create_task(_read_ahead(desk, claimed, is_read))
            for job in claimed:
                desk.in_flight[job.job_id, job.token] = group.create_task(_work(desk, job, is_read))


async def _claim(desk: Desk) -> tuple[ClaimedJob, ...] | None:
    """What was claimed; None when nothing was tried, for want of room or of somebody to ask."""
    if desk.pool.vocabulary.current is None or len(desk.settling) >= desk.settling_max:
        return None
    now_ms = desk.clock.now_ms()
    room = desk.pool.wanted()
    allowance = desk.pictures.allowance()
    if allowance < desk.terms.policy.batch:
        room = min(room, allowance)
    if room == 0:
        return None
    token, started_boot_ms = str(uuid_utils.uuid7()), desk.clock.boot_ms()
    claimed = await desk.store.write(jobs.claim, desk.name, token, room, now_ms, desk.terms)
    desk.pool.claimed(len(claimed), desk.clock.boot_ms() - started_boot_ms)
    desk.pictures.claimed(len(claimed))
    desk.counters.claimed += len(claimed)
    figures.jobs_claimed.inc(len(claimed))
    return claimed


async def _read_ahead(desk: Desk, claimed: Sequence[ClaimedJob], is_read: asyncio.Event) -> None:
    try:
        await desk.pictures.read_ahead(claimed)
    finally:
        is_read.set()


async def _wait_for_more(desk: Desk, is_full: bool) -> None:
    """A full house waits for whoever leaves; an empty queue is looked at again by the clock, as is a pause's end."""
    if not is_full:
        await desk.clock.sleep(IDLE_SEC)
        return
    await until_set(desk.pool.changed, desk.clock, IDLE_SEC)


async def _work(desk: Desk, job: ClaimedJob, is_read: asyncio.Event) -> None:
    keep_ids(
        job_id=job.job_id,
        camera_id=job.camera_id,
        tenant_id=job.frame.tenant_id,
        trace_id=traces.trace_id_of(job.frame_uuid),
    )
    try:
        error = await _attempt(desk, job, is_read)
        go_on_unless_cancelled()
        if error is not None:
            await _give_back(desk, job, error)
    except Exception:
        # Not even giving it back worked. Its lock runs out, and the sweep brings it back.
        log.exception("job_left")
    finally:
        del desk.in_flight[job.job_id, job.token]


async def _attempt(desk: Desk, job: ClaimedJob, is_read: asyncio.Event) -> AnalyzerError | None:
    """Does the job. Answers what it failed with; a lost fence is no failure, the job is somebody else's then."""
    started_ns = traces.now_ns()
    try:
        try:
            analysis, vocabulary = await _analyzed(desk, job, is_read)
        except AnalyzerError as error:
            _trace(desk, Step.ANALYZE, job, started_ns, error.kind.value)
            raise
        _trace(desk, Step.ANALYZE, job, started_ns)
        await _settle(desk, job, analysis, vocabulary)
    except AnalyzerError as error:
        return error
    except Exception as error:
        # A fault of our own with this one job. The attempt counts, so that it can't go round for ever.
        log.exception("job_failed")
        return AnalyzerError(ErrorKind.LOCK_LOST, f"given up: {type(error).__name__}: {error}")
    return None


def _trace(desk: Desk, step: Step, job: ClaimedJob, started_ns: int, failed: str | None = None) -> None:
    """A step of this job that is over. How long the job had waited before is told with it."""
    if traces.is_traced(job.frame_uuid):
        age_ms = desk.clock.now_ms() - job.created_at
        traces.add(step, job.frame_uuid, started_ns, failed=failed, ids={**_ids(job), "age_ms": age_ms})


def _ids(job: ClaimedJob) -> dict[str, int | str]:
    frame = job.frame
    return {
        "tenant_id": frame.tenant_id,
        "site_id": frame.site_id,
        "camera_id": job.camera_id,
        "job_id": job.job_id,
        "attempt": job.attempt,
    }


async def _analyzed(desk: Desk, job: ClaimedJob, is_read: asyncio.Event) -> tuple[Analysis, Vocabulary]:
    try:
        await is_read.wait()
        question = await _question(desk, job)
        place = await desk.pool.place(job.frame_uuid)
    finally:
        desk.pool.let_go()
    try:
        return await desk.pool.ask(place, question)
    except AnalyzerError as error:
        # A picture that is refused is given up at once, and nonsense costs an attempt. Where there are others, one
        # that refuses every picture or understands none must not be the only one who was asked.
        another = desk.pool.another(job.frame_uuid) if error.kind in ASK_ANOTHER else None
        if another is None:
            raise
    return await desk.pool.ask(another, question)


async def _question(desk: Desk, job: ClaimedJob) -> Question:
    picture, previous = await desk.pictures.get(job), None
    known = job.background
    hints: dict[str, object] = {}
    if known is not None:
        if known.previous is not None:
            previous = await desk.pictures.get_previous(job, known.previous)
        night = desk.asking.night_from_hour, desk.asking.night_until_hour
        hints = camera_hints(
            job.frame.captured_at,
            known.timezone,
            known.network_zone,
            *night,
            told=known.told,
            previous_at_ms=None if previous is None or known.previous is None else known.previous.captured_at,
        )
    return Question(job.camera_id, job.frame.captured_at, job.frame_uuid, picture, previous, hints)


async def _settle(desk: Desk, job: ClaimedJob, analysis: Analysis, vocabulary: Vocabulary) -> None:
    """Decides and applies, again with the camera's new state when that moved in between."""
    desk.settling.add((job.job_id, job.token))
    try:
        turn = desk.turns.setdefault(job.frame.camera_key, asyncio.Lock())
        async with turn:
            await _settle_in_turn(desk, job, analysis, vocabulary)
    finally:
        if len(desk.settling) == desk.settling_max:
            desk.pool.changed.set()
        desk.settling.discard((job.job_id, job.token))


async def _settle_in_turn(desk: Desk, job: ClaimedJob, analysis: Analysis, vocabulary: Vocabulary) -> None:
    tag_groups = tuple((tag, vocabulary.group_of(tag)) for tag in analysis.tags)
    kept = result_json(analysis)
    for _ in range(DECISIONS_MAX):
        started_ns = traces.now_ns()
        outcome = decide(job.frame, analysis, job.view, vocabulary, desk.policies, desk.clock.now_ms())
        finished = Finished(job.job_id, job.token, outcome, tag_groups, kept)
        decided_ns = traces.now_ns()
        applied = await patiently(desk.clock, desk.applier.submit, finished)
        if applied is Applied.DONE:
            traces.add(Step.DECIDE, job.frame_uuid, started_ns, decided_ns, ids=_ids(job))
            _trace(desk, Step.APPLY, job, decided_ns)
            desk.counters.done += 1
            figures.jobs_done.inc()
            return
        if applied is Applied.STATE_MOVED:
            desk.counters.decided_again += 1
            fresh = await patiently(desk.clock, desk.rereader.submit, (job.job_id, job.token))
            if fresh is not None:
                job = fresh
                continue
        desk.counters.fences_lost += 1
        figures.fences_lost.labels("job").inc()
        log.warning("fence_lost", attempt=job.attempt)
        return
    raise AnalyzerError(ErrorKind.LOCK_LOST, f"the camera's state moved {DECISIONS_MAX} times while deciding")


async def _give_back(desk: Desk, job: ClaimedJob, error: AnalyzerError) -> None:
    follows = after_error(
        error.kind,
        attempt=job.attempt,
        created_at=job.created_at,
        now_ms=desk.clock.now_ms(),
        policy=desk.terms.policy,
        jitter=random.random(),
        retry_after_sec=error.retry_after_sec,
    )
    desk.counters.failed += 1
    figures.job_failures.labels(error.kind.value).inc()
    log.info("attempt_failed", kind=error.kind.value, attempt=job.attempt, follows=str(follows), why=error.message)
    failure = Failure(job.job_id, job.token, follows, f"{error.kind.value}: {error.message}")
    await patiently(desk.clock, desk.failer.submit, failure)


async def renew_locks(desk: Desk) -> None:
    """Keeps the claims of jobs in flight; a job whose claim is gone is dropped at once."""
    pause_sec: float = desk.terms.policy.renew_every_sec
    while True:
        await desk.clock.sleep(pause_sec)
        try:
            await _renew(desk)
            pause_sec = desk.terms.policy.renew_every_sec
        except Retry as error:
            log.warning("renew_failed", why=error.message)
            go_on_unless_cancelled()
            pause_sec = STORE_PAUSE_SEC


async def _renew(desk: Desk) -> None:
    mine = dict(desk.in_flight)
    if not mine:
        return
    job_ids = tuple(sorted({job_id for job_id, _ in mine}))
    until = desk.clock.now_ms() + desk.terms.policy.lock_sec * 1000
    held = await desk.store.write(jobs.renew, desk.name, job_ids, until)
    for (job_id, token), task in mine.items():
        if job_id not in held and (job_id, token) not in desk.settling:
            task.cancel()
