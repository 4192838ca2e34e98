"""Traces: an id that every service knows, one decision that all come to, and steps that hang together."""

from collections.abc import Iterator

import pytest
import uuid_utils

from camserver.base import traces
from camserver.base.traces import SERVICE_OF, Step
from tests.rig.spans import KeptSpans, tracing

FRAME = "0192f3a1-7b2c-7def-8123-456789abcdef"


@pytest.fixture
def kept() -> Iterator[KeptSpans]:
    with tracing(offset_ms=1_000) as spans:
        yield spans


def test_off_nothing_is_traced() -> None:
    assert not traces.is_on()
    assert not traces.is_traced(FRAME)
    traces.add(Step.LOOK, FRAME, 1)


def test_the_id_of_a_trace_is_the_frames(kept: KeptSpans) -> None:
    traces.add(Step.RECORD, FRAME, traces.now_ns(), ids={"camera_id": "entrance", "site_id": None})
    (span,) = kept.spans
    assert f"{span.trace_id:032x}" == traces.trace_id_of(FRAME) == FRAME.replace("-", "")
    assert span.ids == {"camera_id": "entrance"}
    assert 0 <= span.ended_ns - span.started_ns < 60e9
    assert 0 <= traces.now_ns() + 1_000_000_000 - span.ended_ns < 60e9


def test_every_step_hangs_below_another_and_all_below_the_look(kept: KeptSpans) -> None:
    for step in Step:
        traces.add(step, FRAME, traces.now_ns())
    by_id = {span.span_id: span for span in kept.spans}
    assert len(by_id) == len(Step) == len(SERVICE_OF)
    for span in kept.spans:
        at = span
        while at.parent_id is not None:
            at = by_id[at.parent_id]
        assert at.step is Step.LOOK, span.step


def test_attempts_are_spans_of_their_own(kept: KeptSpans) -> None:
    for _ in range(2):
        traces.add(Step.DELIVER, FRAME, traces.now_ns())
    assert len({span.span_id for span in kept.spans}) == 2


def test_a_share_is_traced_and_everybody_decides_alike(kept: KeptSpans) -> None:
    uuids = [str(uuid_utils.uuid7()) for _ in range(20_000)]
    traces.switch_on(kept, 0.1, lambda: 0)
    chosen = {one for one in uuids if traces.is_traced(one)}
    # Ten standard deviations around a tenth.
    assert 1_575 < len(chosen) < 2_425
    for one in uuids:
        traces.add(Step.APPLY, one, traces.now_ns())
    assert {span.trace_id for span in kept.spans} == {int(traces.trace_id_of(one), 16) for one in chosen}
    traces.switch_on(kept, 0.2, lambda: 0)
    assert chosen < {one for one in uuids if traces.is_traced(one)}, "a larger share holds the smaller one"


def test_a_look_without_a_frame_has_no_trace(kept: KeptSpans) -> None:
    traces.add(Step.DELIVER, None, traces.now_ns())
    assert kept.spans == []
