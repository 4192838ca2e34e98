"""The queue of analysis jobs: claiming under a fence, failing, sweeping (decisions 14 to 16).

Finishing a job is `outcomes.apply`. A claim's token is its fence: whoever lost it writes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.jobs import Dead, Delay, ErrorKind, JobPolicy, Skip, after_error, given_up_words, jobs_to_skip
from camserver.store import questions
from camserver.store.job_facts import JOB_FACTS as JOB_FACTS
from camserver.store.job_facts import ClaimedJob as ClaimedJob
from camserver.store.job_facts import ClaimTerms as ClaimTerms
from camserver.store.job_facts import claimed as claimed
from camserver.store.job_facts import event_facts as event_facts
from camserver.store.job_facts import jobs_with_facts as jobs_with_facts
from camserver.store.tx import Row, Tx

# Candidates looked at per job wanted: a window this wide holds enough different cameras, thanks to `lap`.
WINDOW_FACTOR = 4
SWEEP_BATCH = 500


async def claim(
    tx: Tx, dispatcher: str, token: str, count: int, now_ms: int, terms: ClaimTerms
) -> tuple[ClaimedJob, ...]:
    """Takes up to `count` jobs of as many cameras, by priority, lap and age; a camera with a backlog newest first."""
    heads = await tx.all(_heads(count * WINDOW_FACTOR))
    first_of: dict[int, Row] = {}
    for head in heads:
        if len(first_of) == count:
            break
        first_of.setdefault(head["camera_key"], head)
    if not first_of:
        return ()
    chosen = {camera_key: head["job_id"] for camera_key, head in first_of.items()}
    # When no camera in an incomplete window has a second job waiting, none is behind.
    if len(heads) == count * WINDOW_FACTOR or any(head["lap"] > 0 for head in heads):
        newest = await _newest_of_backlogs(tx, first_of, now_ms, terms.policy)
        await tx.by_key(_PUT_OFF, _put_off(first_of, newest))
        chosen.update({camera_key: row["job_id"] for camera_key, row in newest.items()})
    job_ids = sorted(chosen.values())
    await tx.run(
        _LOCK_JOBS,
        dispatcher=dispatcher,
        token=token,
        locked_until=now_ms + terms.policy.lock_sec * 1000,
        job_ids=job_ids,
    )
    rows = await tx.all(
        f"{JOB_FACTS} WHERE j.job_id IN (:job_ids...) AND j.locked_token = :token AND j.status = 'running'",
        job_ids=job_ids,
        token=token,
    )
    frame_ids = tuple([row["frame_id"] for row in rows])
    known = await questions.backgrounds(tx, frame_ids, terms.previous_max_age_ms)
    return await jobs_with_facts(tx, rows, terms, known)


def _heads(limit: int) -> str:
    # A literal LIMIT: as a parameter it doubles PostgreSQL's planning cost.
    return f"""
    SELECT job_id, camera_key, lap, created_at FROM inference_jobs WHERE status = 'queued'
    ORDER BY priority DESC, lap, job_id LIMIT {int(limit)} FOR UPDATE SKIP LOCKED"""


async def _newest_of_backlogs(tx: Tx, first_of: dict[int, Row], now_ms: int, policy: JobPolicy) -> dict[int, Row]:
    rows = await tx.all(_NEWEST_JOBS, camera_keys=sorted(first_of))
    old = now_ms - policy.backlog_age_sec * 1000
    return {
        row["camera_key"]: row
        for row in rows
        if row["lap"] >= policy.backlog_jobs or first_of[row["camera_key"]]["created_at"] < old
    }


def _put_off(first_of: dict[int, Row], newest: dict[int, Row]) -> list[dict[str, object]]:
    """The job that had its camera's turn takes the lap of the one that went instead: else it would have the next
    turn too, and cameras behind it would wait until this one has caught up."""
    return [
        {"job_id": first_of[camera_key]["job_id"], "lap": row["lap"]}
        for camera_key, row in sorted(newest.items())
        if row["lap"] > first_of[camera_key]["lap"]
    ]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt and what it leads to."""

    job_id: int
    token: str
    follows: Delay | Dead | Skip
    error: str


async def fail(tx: Tx, failures: tuple[Failure, ...], now_ms: int) -> None:
    """Writes failures under their fences; one whose fence is lost is dropped, since somebody else has the job."""
    for failure in sorted(failures, key=lambda failure: failure.job_id):
        await _write_failure(tx, failure, now_ms)


async def _write_failure(tx: Tx, failure: Failure, now_ms: int) -> None:
    follows = failure.follows
    if isinstance(follows, Delay):
        await tx.run(
            """
            UPDATE inference_jobs SET status = 'delayed', available_at = :available_at, attempt = attempt - :refund,
              last_error = :error, locked_by = NULL, locked_token = NULL, locked_until = NULL
            WHERE job_id = :job_id AND locked_token = :token AND status = 'running'""",
            available_at=follows.available_at,
            refund=int(follows.refund),
            error=failure.error[:255],
            job_id=failure.job_id,
            token=failure.token,
        )
        return
    await tx.run(
        """
        UPDATE inference_jobs SET status = :status, finished_at = :now_ms, last_error = :error,
          locked_by = NULL, locked_token = NULL, locked_until = NULL
        WHERE job_id = :job_id AND locked_token = :token AND status = 'running'""",
        status="dead" if isinstance(follows, Dead) else "skipped",
        now_ms=now_ms,
        error=given_up_words(follows.reason, failure.error)[:255],
        job_id=failure.job_id,
        token=failure.token,
    )


async def renew(tx: Tx, dispatcher: str, job_ids: tuple[int, ...], locked_until: int) -> frozenset[int]:
    """Keeps a live dispatcher's claims; answers those that are still its own."""
    await tx.run(
        """
        UPDATE inference_jobs SET locked_until = :locked_until
        WHERE job_id IN (:job_ids...) AND locked_by = :dispatcher AND status = 'running'""",
        locked_until=locked_until,
        job_ids=list(job_ids),
        dispatcher=dispatcher,
    )
    rows = await tx.all(
        """
        SELECT job_id FROM inference_jobs
        WHERE job_id IN (:job_ids...) AND locked_by = :dispatcher AND status = 'running'""",
        job_ids=list(job_ids),
        dispatcher=dispatcher,
    )
    return frozenset(row["job_id"] for row in rows)


async def release(tx: Tx, dispatcher: str) -> int:
    """Gives back what a dispatcher holds when it stops; the attempts don't count."""
    return await tx.run(
        """
        UPDATE inference_jobs SET status = 'queued', attempt = attempt - 1,
          locked_by = NULL, locked_token = NULL, locked_until = NULL
        WHERE status = 'running' AND locked_by = :dispatcher""",
        dispatcher=dispatcher,
    )


async def return_expired(tx: Tx, now_ms: int, policy: JobPolicy, jitter: float) -> int:
    """Takes jobs back from dispatchers that died. The attempt counts: the job may be what killed them."""
    rows = await tx.all(_EXPIRED, now_ms=now_ms)
    for row in rows:
        follows = after_error(
            ErrorKind.LOCK_LOST,
            attempt=row["attempt"],
            created_at=row["created_at"],
            now_ms=now_ms,
            policy=policy,
            jitter=jitter,
        )
        error = f"{ErrorKind.LOCK_LOST.value}: the lock ran out"
        await _write_failure(tx, Failure(row["job_id"], row["locked_token"], follows, error), now_ms)
    return len(rows)


async def promote_delayed(tx: Tx, now_ms: int) -> int:
    """Queues the delayed jobs whose time has come."""
    rows = await tx.all(_DUE, now_ms=now_ms)
    return await _set_status(tx, rows, "status = 'queued'", "delayed")


async def skip_old(tx: Tx, now_ms: int, policy: JobPolicy) -> int:
    rows = await tx.all(_OLD, created_before=now_ms - policy.max_age_sec * 1000)
    reason = f"older than {policy.max_age_sec} s"
    return await _set_status(
        tx,
        rows,
        "status = 'skipped', finished_at = :now_ms, last_error = :reason",
        None,
        now_ms=now_ms,
        reason=reason,
    )


async def skip_beyond_bound(tx: Tx, now_ms: int, policy: JobPolicy) -> int:
    """Skips the oldest waiting jobs of cameras that have more than the bound."""
    full = await tx.all(_FULL_CAMERAS, bound=policy.camera_bound)
    skipped = 0
    for row in full:
        surplus = min(jobs_to_skip(row["waiting"], policy), SWEEP_BATCH)
        oldest = await tx.all(
            f"""
            SELECT job_id FROM inference_jobs
            WHERE camera_key = :camera_key AND status IN ('queued','delayed','running') AND status <> 'running'
            ORDER BY job_id LIMIT {surplus} FOR UPDATE SKIP LOCKED""",
            camera_key=row["camera_key"],
        )
        skipped += await _set_status(
            tx,
            oldest,
            "status = 'skipped', finished_at = :now_ms, last_error = :reason",
            None,
            now_ms=now_ms,
            reason=f"more than {policy.camera_bound} waiting jobs of this camera",
        )
    return skipped


async def _set_status(tx: Tx, rows: Sequence[Row], assignment: str, only: str | None, **params: object) -> int:
    if not rows:
        return 0
    condition = "status <> 'running'" if only is None else f"status = '{only}'"
    return await tx.run(
        f"UPDATE inference_jobs SET {assignment} WHERE job_id IN (:job_ids...) AND {condition}",
        job_ids=[row["job_id"] for row in rows],
        **params,
    )


async def count_by_status(tx: Tx) -> dict[str, int]:
    rows = await tx.all("SELECT status, count(*) AS jobs FROM inference_jobs GROUP BY status")
    return {row["status"]: row["jobs"] for row in rows}


_NEWEST_JOBS = """
SELECT j.camera_key, j.job_id, j.lap FROM cameras c JOIN inference_jobs j ON j.job_id = (
  SELECT max(q.job_id) FROM inference_jobs q WHERE q.camera_key = c.camera_key AND q.status = 'queued'
    AND q.status IN ('queued','delayed','running'))
WHERE c.camera_key IN (:camera_keys...)"""
_PUT_OFF = "UPDATE inference_jobs SET lap = :lap WHERE job_id = :job_id AND status = 'queued'"
_LOCK_JOBS = """
UPDATE inference_jobs SET status = 'running', locked_by = :dispatcher, locked_token = :token,
  locked_until = :locked_until, attempt = attempt + 1
WHERE job_id IN (:job_ids...) AND status = 'queued'"""
# Each in the order of an index that holds only such jobs; ordered by key, all that were ever done would be gone over.
_EXPIRED = f"""
SELECT job_id, locked_token, attempt, created_at FROM inference_jobs
WHERE status = 'running' AND locked_until < :now_ms
ORDER BY locked_until, job_id LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED"""
_DUE = f"""
SELECT job_id FROM inference_jobs WHERE status = 'delayed' AND available_at <= :now_ms
ORDER BY available_at, job_id LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED"""
_OLD = f"""
SELECT job_id FROM inference_jobs WHERE status IN ('queued','delayed','running') AND status <> 'running'
AND created_at < :created_before ORDER BY camera_key, job_id LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED"""
_FULL_CAMERAS = """
SELECT camera_key, count(*) AS waiting FROM inference_jobs WHERE status IN ('queued','delayed','running')
GROUP BY camera_key HAVING count(*) > :bound"""
