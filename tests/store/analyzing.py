"""From a look to an applied outcome, step by step, as a dispatcher goes."""

from dataclasses import dataclass
from typing import Any

from camserver.domain.analysis import Analysis
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.domain.notices import DeliveryPolicy, LlmReviewPolicy
from camserver.domain.outcomes import Outcome, Policies, decide
from camserver.store import Store, Tx
from camserver.store.jobs import ClaimedJob, ClaimTerms, claim
from camserver.store.outcomes import Applied, Finished, apply
from tests.domain.build import shipped_vocabulary
from tests.store.scenery import INTERVAL_MS, Scene, look, recorded

POLICIES = Policies(
    deliveries=DeliveryPolicy(archive=True, notify=True, llm_review=True), llm_review=LlmReviewPolicy()
)
TERMS = ClaimTerms(JobPolicy(), EventPolicy(), INTERVAL_MS)
VOCABULARY = shipped_vocabulary()


@dataclass(frozen=True, slots=True)
class Held:
    """A claimed job and what the analyzer said of its picture."""

    job: ClaimedJob
    analysis: Analysis

    def decided(self, now_ms: int) -> Outcome:
        return decide(self.job.frame, self.analysis, self.job.view, VOCABULARY, POLICIES, now_ms)

    def finished(self, now_ms: int) -> Finished:
        groups = tuple((tag, VOCABULARY.group_of(tag)) for tag in self.analysis.tags)
        return Finished(self.job.job_id, self.job.token, self.decided(now_ms), groups, '{"ok": true}')


async def hold(
    store: Store, scene: Scene, camera: int, seq: int, at_ms: int, analysis: Analysis, now_ms: int, **changes: Any
) -> Held:
    """Records a look and claims its job; no other job may be waiting."""
    await recorded(store, look(scene, camera, seq, at_ms, **{"received_at": now_ms, **changes}))
    (job,) = await store.write(claim, "d", f"{camera}.{seq}", 1, now_ms, TERMS)
    assert job.frame.captured_at == at_ms
    return Held(job, analysis)


async def settle(store: Store, *helds: Held, now_ms: int) -> tuple[Applied, ...]:
    return await store.write(apply, tuple(held.finished(now_ms) for held in helds), now_ms)


async def rows(tx: Tx, table: str, order: str) -> list[dict[str, Any]]:
    """A whole table, for tests: small, and with every column."""
    found = await tx.all(f"SELECT * FROM {table} ORDER BY {order}")
    return [dict(row) for row in found]  # type: ignore[call-overload]  # rows of all drivers are mappings


TABLES = {
    "frames": "frame_id",
    "inference_jobs": "job_id",
    "events": "event_id",
    "incidents": "incident_id",
    "frame_tags": "frame_id, tag_id",
    "event_tags": "event_id, tag_id",
    "deliveries": "delivery_id",
    "camera_state": "camera_key",
    "changes": "tenant_id, seq",
}


async def everything(tx: Tx) -> dict[str, list[dict[str, Any]]]:
    return {table: await rows(tx, table, order) for table, order in TABLES.items()}
