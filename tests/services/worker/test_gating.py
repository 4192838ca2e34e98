import base64
from dataclasses import replace

import numpy as np
import pytest

from camserver.domain.gate import GatePolicy, Measured, Reason, Verdict
from camserver.media.change import Reference, measure
from camserver.media.watched import Watch
from camserver.services.worker.gating import REMEMBERED_LOOKS, STATE_MAX_BYTES, Gate
from camserver.wire.worker import ZoneParams
from tests.services.worker.build import start_message

FIRST = Measured(1.0, 255.0)
QUIET = Measured(0.0, 0.0)
MOVED = Measured(0.1, 0.0)
S, A, F = Verdict.SKIP, Verdict.ANALYZE, Verdict.FORCED
THRESHOLD = GatePolicy(rule="threshold", force_infer_every_n=1000)


def verdicts(measured: list[Measured], force_every: int = 60, every_nth: int = 1) -> list[Verdict]:
    gate = Gate(THRESHOLD, start_message(force_every=force_every, every_nth=every_nth).params)
    return [gate.judge(one, Reference(), 1000 * number) for number, one in enumerate(measured)]


def test_first_look_is_analyzed_quiet_ones_are_not() -> None:
    assert verdicts([FIRST, QUIET, MOVED, QUIET]) == [A, S, A, S]


def test_the_camera_s_own_numbers_count() -> None:
    assert verdicts([FIRST] + [QUIET] * 7, force_every=3) == [A, S, S, F, S, S, F, S]
    assert verdicts([FIRST] + [MOVED] * 6, every_nth=3) == [A, S, S, A, S, S, A]


def test_the_reference_is_the_last_look_also_a_quiet_one() -> None:
    gate = Gate(THRESHOLD, start_message().params)
    for shade in (1, 2, 3):
        now = Reference(np.full((1, 1), shade, np.uint8))
        gate.judge(QUIET, now, 0)
        assert gate.reference is now


def looked(gate: Gate, count: int, seed: int = 0) -> list[Verdict]:
    """Looks at a scene with some noise."""
    random = np.random.default_rng(seed)
    given = []
    for number in range(count):
        gray = np.clip(120 + random.normal(0, 3, (180, 320)), 0, 255).astype(np.uint8)
        measured, reference = measure(gray, gate.reference, 20, gate.with_contrast)
        given.append(gate.judge(measured, reference, 1000 * number))
    return given


def test_a_gate_that_moved_need_not_learn_again() -> None:
    params = start_message(force_every=50).params
    first = Gate(GatePolicy(), params)
    learning = looked(first, 70)
    # The first look has nothing to be compared with, the next 45 are learned from.
    assert learning[:46] == [A] * 46
    assert S in learning[46:]
    state = first.state()
    assert state is not None
    assert len(state) < STATE_MAX_BYTES
    moved = Gate(GatePolicy(), params, base64.b64encode(state).decode())
    after = looked(moved, 40, seed=1)
    assert after[0] is A  # nothing to compare with
    assert after.count(A) < 5


def test_looks_since_the_last_analyzed_one_travel_too() -> None:
    params = start_message(force_every=10).params
    policy = replace(GatePolicy(), learn_looks=0, z_pass=100.0)
    first = Gate(policy, params)
    assert looked(first, 6) == [A, S, S, S, S, S]
    state = first.state()
    assert state is not None
    moved = Gate(policy, params, base64.b64encode(state).decode())
    moved.judge(QUIET_IN_CONTRAST, Reference(), 0)
    assert [moved.judge(QUIET_IN_CONTRAST, Reference(), 0) for _ in range(4)] == [S, S, S, F]


QUIET_IN_CONTRAST = Measured(0.0, 0.0, z_max=0.0, learned=100)
MOVED_IN_CONTRAST = Measured(0.1, 0.0, z_max=1000.0, learned=100)


def test_what_a_gate_counts_and_whether_it_is_awake_travels_too() -> None:
    params = start_message(every_nth=3).params
    policy = replace(GatePolicy(), learn_looks=0, z_pass=100.0)
    first = Gate(policy, params)
    looked(first, 2)
    first.judge(MOVED_IN_CONTRAST, first.reference, 5_000)
    first.hear(5_000, detected=True)
    state = first.state()
    assert state is not None
    moved = Gate(policy, params, base64.b64encode(state).decode())
    assert moved._memory == first._memory
    assert (moved._memory.passing, moved._memory.sticky_left, moved._memory.heard_until) == (
        first._memory.passing, first._memory.sticky_left, 5_000,
    )  # fmt: skip
    assert first._memory.sticky_left > 0
    assert first._memory.passing > 0


def test_a_state_of_the_version_before_is_understood() -> None:
    first = Gate(GatePolicy(), start_message().params)
    looked(first, 3)
    scene = first.reference.scene
    assert scene is not None
    old = b"\x02" + (7).to_bytes(4, "little") + scene.to_bytes()
    moved = Gate(GatePolicy(), start_message().params, base64.b64encode(old).decode())
    assert moved._memory.since_analyzed == 7
    assert moved.reference.scene is not None


@pytest.mark.parametrize("state", ["", "!!", "AAAA", base64.b64encode(b"\x01" + bytes(100)).decode(), "A" * 22_000])
def test_a_state_that_makes_no_sense_is_left(state: str) -> None:
    gate = Gate(GatePolicy(), start_message().params, state)
    assert gate.state() is None
    assert looked(gate, 1) == [A]


def test_the_threshold_rule_has_no_state() -> None:
    gate = Gate(THRESHOLD, start_message().params)
    looked(gate, 3)
    assert gate.state() is None


def test_what_the_analyzer_said_keeps_the_gate_awake() -> None:
    gate = Gate(GatePolicy(), start_message().params)
    assert gate.judge(QUIET_IN_CONTRAST, Reference(), 1000) is S
    gate.hear(1000, True)
    assert gate.judge(QUIET_IN_CONTRAST, Reference(), 2000) is A
    gate.hear(2000, False)
    assert gate.judge(QUIET_IN_CONTRAST, Reference(), 3000) is S


def test_the_last_looks_are_remembered_with_their_reasons() -> None:
    gate = Gate(GatePolicy(), start_message().params)
    looked(gate, 60)
    assert len(gate.passages) == REMEMBERED_LOOKS
    assert gate.passages[-1].reason is Reason.QUIET
    assert gate.passages[-1].captured_at == 59_000
    assert gate.passages[-1].compared is not None
    assert gate.sight is not None
    assert gate.sight.passage is gate.passages[-1]


def test_the_look_to_explain_is_the_last_that_changed() -> None:
    gate = Gate(GatePolicy(), start_message().params)
    looked(gate, 60)
    visited = np.full((180, 320), 120, np.uint8)
    visited[80:110, 100:112] = 10
    measured, reference = measure(visited, gate.reference, 20, gate.with_contrast)
    assert gate.judge(measured, reference, 77_000) is A
    looked(gate, 5, seed=3)
    assert gate.sight is not None
    assert gate.sight.passage.captured_at == 77_000
    assert gate.sight.passage.reason is Reason.CHANGE
    assert gate.sight.gray is visited


def test_masks_zones_and_clocks_reach_the_measurements() -> None:
    triangle = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    params = start_message().params.model_copy(
        update={
            "ignore_masks": (triangle,),
            "zones": (ZoneParams(name="door", points=triangle),),
            "mask_clock": False,
        }
    )
    gate = Gate(GatePolicy(), params)
    looked(gate, 3)
    assert gate.reference.watch == Watch((triangle,), (triangle,), masks_clocks=False)
    state = gate.state()
    assert state is not None
    moved = Gate(GatePolicy(), params, base64.b64encode(state).decode())
    assert moved.reference.watch == gate.watch
