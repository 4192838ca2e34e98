"""The queue against a simple model: any mix of claims, ends, failures and sweeps, also by stale dispatchers."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from camserver.domain.events import EventPolicy
from camserver.domain.jobs import Dead, Delay, ErrorKind, JobPolicy, after_error
from camserver.domain.outcomes import Policies, decide
from camserver.store import Dialect, Tx
from camserver.store.jobs import (
    WINDOW_FACTOR,
    ClaimedJob,
    ClaimTerms,
    Failure,
    claim,
    fail,
    promote_delayed,
    release,
    renew,
    return_expired,
    skip_beyond_bound,
    skip_old,
)
from camserver.store.outcomes import Applied, Finished, apply
from tests.domain.build import nothing, shipped_vocabulary
from tests.rig.effort import times
from tests.store.conftest import Driven
from tests.store.scenery import INTERVAL_MS, NOW_MS, furnish, look, recorded

POLICY = JobPolicy(
    max_attempt=3, max_age_sec=600, lock_sec=60, backlog_jobs=2, backlog_age_sec=120, camera_bound=4, batch=4
)
TERMS = ClaimTerms(POLICY, EventPolicy(), INTERVAL_MS)
VOCABULARY = shipped_vocabulary()
JITTER = 0.5
CAMERAS = 3
UNFINISHED = ("queued", "delayed", "running")
dispatchers = st.sampled_from(["one", "two"])


@dataclass(frozen=True, slots=True)
class Job:
    camera: int
    priority: int
    lap: int
    created_at: int
    status: str = "queued"
    attempt: int = 0
    available_at: int = 0
    by: str | None = None
    token: str | None = None
    until: int | None = None


async def table(tx: Tx) -> dict[int, Job]:
    rows = await tx.all("SELECT * FROM inference_jobs")
    return {
        row["job_id"]: Job(
            row["camera_key"],
            row["priority"],
            row["lap"],
            row["created_at"],
            row["status"],
            row["attempt"],
            row["available_at"],
            row["locked_by"],
            row["locked_token"],
            row["locked_until"],
        )
        for row in rows
    }


class Queue(RuleBasedStateMachine):
    def __init__(self, driven: Driven) -> None:
        super().__init__()
        self.driven = driven
        driven.wipe()
        self.scene = driven.do(furnish(driven.store, cameras=CAMERAS))
        self.now_ms = NOW_MS
        self.jobs: dict[int, Job] = {}
        self.seqs = [0] * CAMERAS
        self.versions = dict.fromkeys(self.scene.camera_keys, 0)
        self.claims: list[ClaimedJob] = []  # all that were ever handed out, stale ones too
        self.tokens = 0

    def write(self, *call: object) -> object:
        operation, *args = call
        return self.driven.do(self.driven.store.write(operation, *args))  # type: ignore[arg-type]

    def of(self, *statuses: str) -> dict[int, Job]:
        return {key: job for key, job in sorted(self.jobs.items()) if job.status in statuses}

    # What happens

    @rule(cameras=st.lists(st.integers(0, CAMERAS - 1), min_size=1, max_size=4), priority=st.sampled_from([100, 200]))
    def looks_arrive(self, cameras: list[int], priority: int) -> None:
        looks = []
        for camera in cameras:
            self.seqs[camera] += 1
            looks.append(look(self.scene, camera, self.seqs[camera], self.now_ms, priority=priority))
        self.driven.do(recorded(self.driven.store, *looks))
        laps = {key: sum(job.camera == key for job in self.of(*UNFINISHED).values()) for key in self.versions}
        added = self.driven.do(self.driven.store.read(table)).keys() - self.jobs.keys()
        assert len(added) == len(cameras)
        for job_id, camera in zip(sorted(added), cameras, strict=True):
            key = self.scene.camera_keys[camera]
            self.jobs[job_id] = Job(key, priority, laps[key], self.now_ms, available_at=self.now_ms)
            laps[key] += 1

    @rule(ms=st.sampled_from([1, 1000, 30_000, 61_000, 130_000, 400_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(dispatcher=dispatchers, count=st.integers(1, 3))
    def jobs_are_claimed(self, dispatcher: str, count: int) -> None:
        self.tokens += 1
        token = f"token {self.tokens}"
        found = self.driven.do(self.driven.store.write(claim, dispatcher, token, count, self.now_ms, TERMS))
        instead_of = self.chosen(count)
        assert {job.job_id for job in found} == instead_of.keys()
        assert len({job.frame.camera_key for job in found}) == len(found), "two jobs of one camera"
        until = self.now_ms + POLICY.lock_sec * 1000
        for job in found:
            before = self.jobs[job.job_id]
            assert (job.token, job.attempt) == (token, before.attempt + 1)
            assert job.view.version == self.versions[before.camera]
            self.jobs[job.job_id] = replace(
                before, status="running", attempt=job.attempt, by=dispatcher, token=token, until=until
            )
        for key, first in instead_of.items():
            # It had its camera's turn; the next turn is not its own again.
            if self.jobs[key].lap > self.jobs[first].lap:
                self.jobs[first] = replace(self.jobs[first], lap=self.jobs[key].lap)
        self.claims += found

    def chosen(self, count: int) -> dict[int, int]:
        """The jobs that are taken, and for each the one whose turn it was."""
        queued = self.of("queued")
        heads = sorted(queued, key=lambda key: (-queued[key].priority, queued[key].lap, key))[: count * WINDOW_FACTOR]
        first_of: dict[int, int] = {}
        for key in heads:
            if len(first_of) < count:
                first_of.setdefault(queued[key].camera, key)
        chosen = {}
        for camera, first in first_of.items():
            newest = max(key for key, job in queued.items() if job.camera == camera)
            is_old = queued[first].created_at < self.now_ms - POLICY.backlog_age_sec * 1000
            is_behind = queued[newest].lap >= POLICY.backlog_jobs or is_old
            chosen[newest if is_behind else first] = first
        return chosen

    @rule(data=st.data())
    def jobs_are_finished(self, data: st.DataObject) -> None:
        if not self.claims:
            return
        batch = data.draw(st.lists(st.sampled_from(self.claims), min_size=1, max_size=3, unique_by=_identity))
        finished = []
        for job in batch:
            outcome = decide(job.frame, nothing(), job.view, VOCABULARY, Policies(), self.now_ms)
            finished.append(Finished(job.job_id, job.token, outcome, (), "{}"))
        answers = self.driven.do(self.driven.store.write(apply, tuple(finished), self.now_ms))
        for job, answer in zip(batch, answers, strict=True):
            now = self.jobs[job.job_id]
            if now.token != job.token:
                assert answer is Applied.FENCE_LOST
            elif self.versions[now.camera] != job.view.version:
                assert answer is Applied.STATE_MOVED
            else:
                assert answer is Applied.DONE
                self.versions[now.camera] += 1
                self.jobs[job.job_id] = replace(now, status="done", by=None, token=None, until=None)

    @rule(data=st.data(), kind=st.sampled_from(ErrorKind))
    def an_attempt_fails(self, data: st.DataObject, kind: ErrorKind) -> None:
        if not self.claims:
            return
        job = data.draw(st.sampled_from(self.claims))
        follows = after_error(
            kind, attempt=job.attempt, created_at=job.created_at, now_ms=self.now_ms, policy=POLICY, jitter=JITTER
        )
        self.write(fail, (Failure(job.job_id, job.token, follows, "x" * 300),), self.now_ms)
        if self.jobs[job.job_id].token == job.token:
            self.jobs[job.job_id] = self.failed(self.jobs[job.job_id], follows)

    def failed(self, job: Job, follows: object) -> Job:
        free = replace(job, by=None, token=None, until=None)
        if isinstance(follows, Delay):
            attempt = job.attempt - int(follows.refund)
            return replace(free, status="delayed", attempt=attempt, available_at=follows.available_at)
        return replace(free, status="dead" if isinstance(follows, Dead) else "skipped")

    @rule(dispatcher=dispatchers)
    def claims_are_renewed(self, dispatcher: str) -> None:
        job_ids = tuple(sorted({job.job_id for job in self.claims}))
        until = self.now_ms + POLICY.lock_sec * 1000
        kept = self.write(renew, dispatcher, job_ids, until)
        mine = {key for key, job in self.of("running").items() if job.by == dispatcher}
        assert kept == mine
        for key in mine:
            self.jobs[key] = replace(self.jobs[key], until=until)

    @rule(dispatcher=dispatchers)
    def a_dispatcher_stops(self, dispatcher: str) -> None:
        mine = {key: job for key, job in self.of("running").items() if job.by == dispatcher}
        assert self.write(release, dispatcher) == len(mine)
        for key, job in mine.items():
            self.jobs[key] = replace(job, status="queued", attempt=job.attempt - 1, by=None, token=None, until=None)

    @rule()
    def expired_locks_return(self) -> None:
        expired = {key: job for key, job in self.of("running").items() if (job.until or 0) < self.now_ms}
        assert self.write(return_expired, self.now_ms, POLICY, JITTER) == len(expired)
        for key, job in expired.items():
            follows = after_error(
                ErrorKind.LOCK_LOST,
                attempt=job.attempt,
                created_at=job.created_at,
                now_ms=self.now_ms,
                policy=POLICY,
                jitter=JITTER,
            )
            self.jobs[key] = self.failed(job, follows)

    @rule()
    def dispatchers_die_and_their_jobs_come_back(self) -> None:
        """Leaves stale claims behind, whose holders do not know it yet."""
        self.now_ms += POLICY.lock_sec * 1000 + 1
        self.expired_locks_return()
        self.now_ms += 10_000
        self.delayed_jobs_are_promoted()

    @rule()
    def delayed_jobs_are_promoted(self) -> None:
        due = {key: job for key, job in self.of("delayed").items() if job.available_at <= self.now_ms}
        assert self.write(promote_delayed, self.now_ms) == len(due)
        for key, job in due.items():
            self.jobs[key] = replace(job, status="queued")

    @rule()
    def old_jobs_are_skipped(self) -> None:
        waiting = self.of("queued", "delayed").items()
        old = {key: job for key, job in waiting if self.now_ms - job.created_at > POLICY.max_age_sec * 1000}
        assert self.write(skip_old, self.now_ms, POLICY) == len(old)
        for key, job in old.items():
            self.jobs[key] = replace(job, status="skipped")

    @rule()
    def full_cameras_are_skipped_down_to_their_bound(self) -> None:
        surplus: dict[int, Job] = {}
        for camera in self.scene.camera_keys:
            unfinished = [key for key, job in self.of(*UNFINISHED).items() if job.camera == camera]
            waiting = [key for key in unfinished if self.jobs[key].status != "running"]
            for key in waiting[: max(0, len(unfinished) - POLICY.camera_bound)]:
                surplus[key] = self.jobs[key]
        assert self.write(skip_beyond_bound, self.now_ms, POLICY) == len(surplus)
        for key, job in surplus.items():
            self.jobs[key] = replace(job, status="skipped")

    # What holds

    @invariant()
    def the_table_is_the_model(self) -> None:
        assert self.driven.do(self.driven.store.read(table)) == self.jobs

    @invariant()
    def attempts_are_counted_right(self) -> None:
        assert all(0 <= job.attempt <= POLICY.max_attempt for job in self.jobs.values())


def _identity(job: ClaimedJob) -> int:
    return job.job_id


def test_the_queue_does_what_the_model_does(driven: Driven) -> None:
    examples = times(30, 200) if driven.store.dialect is Dialect.SQLITE else times(8, 50)
    run_state_machine_as_test(lambda: Queue(driven), settings=settings(max_examples=examples, stateful_step_count=30))
