"""The worker's steps of a look are told once the server has named it, and only of looks that are traced."""

import uuid_utils

from camserver.base import traces
from camserver.base.traces import Step
from camserver.services.worker.look_traces import KEPT_MAX, LookTraces
from camserver.services.worker.spool_files import LookName
from camserver.wire.looks import LookHeader, LookUpload, Recorded
from tests.rig.spans import tracing


def header(seq: int = 1, **changes: object) -> LookHeader:
    values: dict[str, object] = {
        "camera_id": "cam_1",
        "generation": 2,
        "seq": seq,
        "boot_id": "boot",
        "boot_ms": 1,
        "captured_at": 1,
        "sent_boot_ms": 1,
        "status": "ok",
    }
    return LookHeader(**{**values, **changes})  # type: ignore[arg-type]  # the names are its own


def name_of(one: LookHeader) -> LookName:
    return LookName.of(LookUpload(one, b"", b""))


def answer() -> Recorded:
    return Recorded(standing="live", frame_uuid=str(uuid_utils.uuid7()), repeat=False, server_time=1)


def test_look_gate_and_send_are_one_trace() -> None:
    with tracing() as kept:
        looks = LookTraces("w1", "site-1")
        moments = looks.begin()
        moments.caught()
        moments.judged()
        looks.keep(header(), "intent-1", moments)
        said = answer()
        looks.recorded(name_of(header()), said, traces.now_ns(), attempts=2)
    assert kept.steps == [Step.LOOK, Step.GATE, Step.SEND]
    assert {f"{span.trace_id:032x}" for span in kept.spans} == {traces.trace_id_of(said.frame_uuid)}
    look, gate, send = kept.spans
    assert look.started_ns <= gate.started_ns <= gate.ended_ns <= look.ended_ns <= send.ended_ns
    for span in kept.spans:
        assert (span.ids["worker_id"], span.ids["site_id"], span.ids["intent_id"]) == ("w1", "site-1", "intent-1")
    assert send.ids["attempts"] == 3


def test_a_failed_look_has_no_gate() -> None:
    with tracing() as kept:
        looks = LookTraces("w1")
        failed = header(status="timeout", error_code="timeout")
        looks.keep(failed, "intent-1", looks.begin())
        looks.recorded(name_of(failed), answer(), traces.now_ns(), attempts=0)
    assert kept.steps == [Step.LOOK, Step.SEND]
    assert kept.spans[0].failed == "timeout"


def test_a_worker_that_started_again_tells_what_it_knows() -> None:
    with tracing() as kept:
        LookTraces("w1").recorded(name_of(header()), answer(), traces.now_ns(), attempts=0)
    assert kept.steps == [Step.SEND]


def test_what_is_kept_has_a_bound_and_nothing_is_while_it_is_off() -> None:
    looks = LookTraces("w1")
    looks.keep(header(), "i", looks.begin())
    assert len(looks._kept) == 0
    with tracing(ratio=0.0) as kept:
        for seq in range(KEPT_MAX + 10):
            looks.keep(header(seq + 1), "i", looks.begin())
        assert len(looks._kept) == KEPT_MAX
        looks.recorded(name_of(header(KEPT_MAX)), answer(), traces.now_ns(), attempts=0)
    assert len(looks._kept) == KEPT_MAX - 1
    assert kept.spans == [], "not one that is traced"
