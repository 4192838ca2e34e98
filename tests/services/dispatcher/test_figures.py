"""Figures and traces of the dispatcher: each moves when what it counts happens, and a job's steps are one trace."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from camserver.base import traces
from camserver.base.traces import Step
from tests.fakes.analyzer import Fault, Rule
from tests.fakes.webhook import Act, FakeWebhook
from tests.rig.figures import Moved
from tests.rig.polling import poll_async, until
from tests.rig.spans import KeptSpans, tracing
from tests.services.dispatcher.stage import Stage
from tests.services.dispatcher.test_outbox import DANGER, add_webhook


@pytest.fixture
def kept() -> Iterator[KeptSpans]:
    with tracing() as spans:
        yield spans


async def test_jobs_and_deliveries_are_counted_and_traced(stage: Stage, kept: KeptSpans) -> None:
    moved = Moved()
    policy = replace(stage.settings.deliveries, allow_loopback=True)
    stage.settings = replace(stage.settings, deliveries=policy)
    stage.analyzer.add_fault(Rule(Fault.answer_status(500), times=1))
    async with FakeWebhook(key="0123456789abcdef") as hook:
        hook.acts.append(Act(500))
        await add_webhook(stage, hook)
        async with stage.dispatcher():
            frame_uuid = await stage.look(0, DANGER)

            async def arrived() -> bool:
                # Time passes quickly only where something waits for it: a claim must not run out meanwhile, nor
                # before its dispatcher has heard that the job is done.
                done = await stage.rows("SELECT job_id FROM inference_jobs WHERE status = 'done'")
                is_heard = moved.by("jobs_done_total") == len(done)
                await stage.clock.advance(60_000 if is_heard and await _waits_for_time(stage) else 100)
                return bool(hook.received)

            await poll_async(arrived, "the message")
            await poll_async(lambda: _is_done(stage), "its end")
            # Both are counted when their dispatcher hears that they are done; others may read that before.
            await until(lambda: moved.by("jobs_done_total") == 1, "the job is counted")
            delivered = {"kind": "message", "outcome": "done"}
            await until(lambda: moved.by("deliveries_total", **delivered) == 1, "the message is counted")
    assert moved.by("jobs_claimed_total") == 2
    assert moved.by("jobs_done_total") == 1
    assert moved.by("job_failures_total", kind="server_error") == 1
    assert moved.by("analysis_seconds_count") >= 1
    assert moved.by("deliveries_total", kind="message", outcome="failed") == 1
    assert moved.by("deliveries_total", kind="message", outcome="done") == 1
    assert moved.by("deliveries_total", kind="notify", outcome="done") == 1
    assert {f"{span.trace_id:032x}" for span in kept.spans} == {traces.trace_id_of(frame_uuid)}
    steps = kept.steps
    assert steps.count(Step.ANALYZE) == 2
    assert [span.failed is None for span in kept.spans if span.step is Step.ANALYZE] == [False, True]
    assert (steps.count(Step.DECIDE), steps.count(Step.APPLY)) == (1, 1)
    tries = [span for span in kept.spans if span.ids.get("kind") == "message"]
    assert [span.failed is None for span in tries] == [False, True]


async def _waits_for_time(stage: Stage) -> bool:
    found = await stage.rows("SELECT status FROM inference_jobs UNION SELECT status FROM deliveries")
    statuses = {row["status"] for row in found}
    return "delayed" in statuses and not statuses & {"queued", "running"}


async def _is_done(stage: Stage) -> bool:
    found = await stage.rows("SELECT status FROM deliveries")
    return all(row["status"] == "done" for row in found)
