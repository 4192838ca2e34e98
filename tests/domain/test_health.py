"""Whether a camera works: the numbers of decision 4 as tables, and properties of the rule as a whole."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.health import (
    STALLED,
    CameraFacts,
    Issue,
    Look,
    Memory,
    Policies,
    Standing,
    State,
    due_at,
    follow_change,
    from_plain,
    pass_time,
    seems_covered,
    status,
    take_in,
    to_plain,
    told,
)
from camserver.domain.sight import HealthPolicy, Sight
from camserver.domain.suspicions import Suspicion
from tests.domain.build import MIN, SEC, T0

POLICIES = Policies()
CAMERA = CameraFacts(Standing.ATTENDED, interval_ms=5 * SEC, is_live=True)


def looks_of(*causes: str, begin: int = T0, every_ms: int = 5 * SEC) -> list[Look]:
    return [
        Look(number + 1, begin + number * every_ms, cause, has_picture=not cause)
        for number, cause in enumerate(causes)
    ]


def after(looks: Iterable[Look], memory: Memory | None = None, camera: CameraFacts = CAMERA) -> Memory:
    memory = memory or Memory()
    for look in looks:
        memory = take_in(memory, look, camera, POLICIES)
        memory = pass_time(memory, camera, POLICIES, look.captured_at)
    return memory


def state_of(memory: Memory, camera: CameraFacts = CAMERA, now_ms: int = T0) -> tuple[State, str]:
    found = status(memory, camera.standing, now_ms)
    return found.state, found.cause


@pytest.mark.parametrize(
    ("causes", "wanted"),
    [
        ((), (State.UNKNOWN, "")),
        (("",), (State.UP, "")),
        (("timeout",), (State.UP, "timeout")),
        (("timeout", "timeout"), (State.UP, "timeout")),
        (("timeout", "timeout", "timeout"), (State.DOWN, "timeout")),
        (("timeout", "refused", "unauthorized"), (State.DOWN, "unauthorized")),
        (("timeout", "timeout", "", "timeout", "timeout"), (State.UP, "timeout")),
        (("timeout", "timeout", "timeout", ""), (State.DOWN, "timeout")),
        (("timeout", "timeout", "timeout", "", ""), (State.UP, "")),
        (("timeout", "timeout", "timeout", "", "timeout", ""), (State.DOWN, "timeout")),
        (("timeout", "timeout", "timeout", "", "timeout", "", ""), (State.UP, "")),
        ((STALLED,), (State.DOWN, STALLED)),
        (("", STALLED, "", ""), (State.UP, "")),
    ],
)
def test_down_after_three_failed_looks_or_silence_and_back_after_two_good_ones(
    causes: tuple[str, ...], wanted: tuple[State, str]
) -> None:
    assert state_of(after(looks_of(*causes))) == wanted


def test_a_camera_that_is_down_is_told_only_after_a_minute() -> None:
    down_at = T0 + 10 * SEC
    memory = after(looks_of("refused", "refused", "refused"))
    assert due_at(memory, CAMERA, POLICIES) == down_at + 60 * SEC
    assert not told(pass_time(memory, CAMERA, POLICIES, down_at + 60 * SEC - 1))
    memory = pass_time(memory, CAMERA, POLICIES, down_at + 60 * SEC)
    issue = told(memory)[Issue.OFFLINE]
    assert (issue.since, issue.frame_id) == (T0, 1)
    assert due_at(memory, CAMERA, POLICIES) is None
    # It goes on as one issue, and ends with the second good look.
    memory = after(looks_of(*["refused"] * 20, begin=T0 + 3 * MIN), memory)
    assert told(memory)[Issue.OFFLINE].since == T0
    memory = after(looks_of("", begin=T0 + 10 * MIN), memory)
    assert Issue.OFFLINE in told(memory)
    memory = after(looks_of("", begin=T0 + 11 * MIN), memory)
    assert told(memory) == {}


def test_a_short_outage_is_never_told() -> None:
    memory = after(looks_of("timeout", "timeout", "timeout", "", ""))
    assert told(pass_time(memory, CAMERA, POLICIES, T0 + 60 * MIN)) == {}


def test_a_refused_password_is_tried_too_rarely_for_three_looks_and_still_told() -> None:
    memory = after(looks_of("unauthorized"))
    assert state_of(memory) == (State.UP, "unauthorized")
    assert due_at(memory, CAMERA, POLICIES) == T0 + 180 * SEC
    memory = pass_time(memory, CAMERA, POLICIES, T0 + 180 * SEC)
    assert state_of(memory) == (State.DOWN, "unauthorized")
    assert due_at(memory, CAMERA, POLICIES) == T0 + 240 * SEC
    assert told(pass_time(memory, CAMERA, POLICIES, T0 + 240 * SEC)).keys() == {Issue.OFFLINE}


def test_with_rare_looks_failing_takes_as_many_intervals() -> None:
    slow = replace(CAMERA, interval_ms=10 * MIN)
    assert due_at(after(looks_of("timeout"), camera=slow), slow, POLICIES) == T0 + 30 * MIN


def test_a_camera_without_a_worker_is_unattended_and_not_offline() -> None:
    nobody = replace(CAMERA, standing=Standing.UNATTENDED)
    down = after(looks_of("refused", "refused", "refused"))
    assert state_of(down, nobody) == (State.UNKNOWN, "unattended")
    # Nothing is known of what it shows, so nothing of that begins …
    later = pass_time(down, nobody, POLICIES, T0 + 60 * MIN)
    assert (later.offline, later.sight, told(later)) == (down.offline, down.sight, {})
    # … and nothing ends.
    told_before = pass_time(down, CAMERA, POLICIES, T0 + 5 * MIN)
    assert told(pass_time(told_before, nobody, POLICIES, T0 + 60 * MIN)) == told(told_before)


def test_that_nobody_looks_is_told_when_it_lasts_and_over_as_soon_as_a_worker_has_the_camera() -> None:
    nobody = replace(CAMERA, standing=Standing.UNATTENDED)
    memory = pass_time(after(looks_of("", "")), nobody, POLICIES, T0 + MIN)
    assert told(memory) == {}
    assert due_at(memory, nobody, POLICIES) == T0 + 6 * MIN
    assert told(pass_time(memory, nobody, POLICIES, T0 + 6 * MIN - 1)) == {}
    memory = pass_time(memory, nobody, POLICIES, T0 + 6 * MIN)
    issue = told(memory)[Issue.UNATTENDED]
    assert (issue.since, issue.frame_id) == (T0 + MIN, 2)
    assert due_at(memory, nobody, POLICIES) is None
    assert from_plain(json.loads(json.dumps(to_plain(memory)))) == memory
    memory = pass_time(memory, CAMERA, POLICIES, T0 + 90 * MIN)
    assert told(memory) == {}
    assert state_of(memory) == (State.UP, "")
    # The next time counts from anew.
    memory = pass_time(memory, nobody, POLICIES, T0 + 91 * MIN)
    assert due_at(memory, nobody, POLICIES) == T0 + 96 * MIN


def test_a_camera_that_people_know_to_be_offline_is_not_told_as_unattended_too() -> None:
    nobody = replace(CAMERA, standing=Standing.UNATTENDED)
    memory = pass_time(after(looks_of("refused", "refused", "refused")), CAMERA, POLICIES, T0 + 5 * MIN)
    memory = pass_time(memory, nobody, POLICIES, T0 + 6 * MIN)
    assert told(pass_time(memory, nobody, POLICIES, T0 + 60 * MIN)).keys() == {Issue.OFFLINE}


@pytest.mark.parametrize(("interval_ms", "limit_ms"), [(5 * SEC, 180 * SEC), (10 * MIN, 30 * MIN)])
def test_a_camera_whose_looks_stop_coming_is_down_although_a_worker_has_it(interval_ms: int, limit_ms: int) -> None:
    camera = replace(CAMERA, interval_ms=interval_ms)
    memory = after(looks_of("", ""), camera=camera)
    last_at = T0 + 5 * SEC
    silent_at = last_at + limit_ms
    assert due_at(memory, camera, POLICIES) == silent_at
    assert state_of(pass_time(memory, camera, POLICIES, silent_at - 1)) == (State.UP, "")
    memory = pass_time(memory, camera, POLICIES, silent_at)
    assert state_of(memory) == (State.DOWN, "no_looks")
    assert due_at(memory, camera, POLICIES) == silent_at + MIN
    memory = pass_time(memory, camera, POLICIES, silent_at + MIN)
    assert told(memory)[Issue.OFFLINE].since == last_at
    memory = after(looks_of("", "", begin=silent_at + 2 * MIN), memory, camera)
    assert (told(memory), state_of(memory)) == ({}, (State.UP, ""))


def test_a_camera_that_never_sent_a_look_is_missed_from_when_a_worker_had_it() -> None:
    memory = pass_time(Memory(), CAMERA, POLICIES, T0)
    assert (state_of(memory), due_at(memory, CAMERA, POLICIES)) == ((State.UNKNOWN, ""), T0 + 3 * MIN)
    assert state_of(pass_time(memory, CAMERA, POLICIES, T0 + 3 * MIN)) == (State.DOWN, "no_looks")


def test_looks_that_came_while_the_server_was_away_are_not_missed() -> None:
    memory = pass_time(after(looks_of("", "")), CAMERA, POLICIES, T0 + 60 * MIN)
    assert (told(memory), state_of(memory)) == ({}, (State.UP, ""))
    assert due_at(memory, CAMERA, POLICIES) == T0 + 63 * MIN
    assert state_of(pass_time(memory, CAMERA, POLICIES, T0 + 63 * MIN)) == (State.DOWN, "no_looks")


def test_a_memory_of_the_version_before_is_read() -> None:
    memory = after(looks_of("refused", "refused"))
    plain = to_plain(memory) | {"configured_at": T0}
    assert from_plain(plain) == memory


def test_a_camera_that_people_switch_off_has_no_issues() -> None:
    off = replace(CAMERA, standing=Standing.OFF)
    memory = pass_time(after(looks_of("refused", "refused", "refused")), CAMERA, POLICIES, T0 + 5 * MIN)
    memory = pass_time(memory, off, POLICIES, T0 + 6 * MIN)
    assert told(memory) == {}
    assert state_of(memory, off) == (State.UNKNOWN, "off")


def test_a_look_from_behind_changes_nothing() -> None:
    memory = after(looks_of("", "", ""))
    assert take_in(memory, Look(9, T0, "refused"), CAMERA, POLICIES) == memory


def test_the_newest_picture_is_remembered_through_failures() -> None:
    assert after(looks_of("", "", "refused", "refused")).picture_frame_id == 2


def test_a_camera_that_people_changed_learns_its_view_anew() -> None:
    def seen(number: int, at: int, view: str) -> Look:
        return Look(number, at, has_picture=True, hash_hex=f"{number:016x}", structure=0.5, view_hex=view)

    memory = follow_change(Memory(), "here", T0)
    memory = after([seen(number, T0 + number * MIN, "00ff" * 9) for number in range(20)], memory)
    moved = after([seen(20 + number, T0 + (20 + number) * MIN, "3c3c" * 9) for number in range(10)], memory)
    assert told(moved).keys() == {Issue.MOVED}
    assert follow_change(moved, "here", T0 + 30 * MIN) == moved
    # The address is another one: that is no move, also when a look of the old one still comes.
    changed = follow_change(moved, "there", T0 + 30 * MIN)
    assert told(changed) == {}
    late = [seen(40, T0 + 30 * MIN + SEC, "00ff" * 9)]
    later = [seen(41 + number, T0 + (31 + number) * MIN, "0ff0" * 9) for number in range(20)]
    assert told(after([*late, *later], changed)) == {}


CAUSES = st.sampled_from(["", "", "timeout", "refused", "unauthorized", STALLED])
STEPS = st.lists(
    st.tuples(
        st.integers(0, 10 * MIN),  # pause before
        CAUSES,
        st.sampled_from(["a", "b"]),  # picture
        st.sampled_from([0.0, 0.3, 0.6]),  # structure
        st.sampled_from(["0" * 36, "f" * 36, "0f" * 18]),  # view
        st.sampled_from([Standing.ATTENDED, Standing.ATTENDED, Standing.UNATTENDED, Standing.OFF]),
    ),
    max_size=60,
)
Step = tuple[int, str, str, float, str, Standing]


def history(steps: list[Step]) -> list[tuple[int, Look, CameraFacts, Memory]]:
    now_ms, memory, found = T0, Memory(), []
    for number, (pause_ms, cause, picture, structure, view, standing) in enumerate(steps):
        now_ms += pause_ms
        camera = replace(CAMERA, standing=standing)
        look = Look(number, now_ms, cause)
        if not cause:
            look = replace(look, has_picture=True, hash_hex=picture, structure=structure, view_hex=view)
        memory = pass_time(take_in(memory, look, camera, POLICIES), camera, POLICIES, now_ms)
        found.append((now_ms, look, camera, memory))
    return found


@given(STEPS)
def test_whatever_comes_an_issue_is_told_only_when_it_lasted(steps: list[Step]) -> None:
    minimum = {Issue.OFFLINE: 60 * SEC, Issue.COVERED: 60 * SEC, Issue.MOVED: 300 * SEC, Issue.FROZEN: 600 * SEC}
    minimum[Issue.UNATTENDED] = HealthPolicy().unattended_told_after_sec * SEC
    for now_ms, _, camera, memory in history(steps):
        for issue, suspicion in told(memory).items():
            assert camera.standing is not Standing.OFF
            assert suspicion.since <= suspicion.last_at <= now_ms
            assert now_ms - suspicion.since >= minimum[issue]


@given(STEPS)
def test_two_good_looks_in_a_row_always_bring_a_camera_back(steps: list[Step]) -> None:
    found = history(steps)
    for (_, earlier, _, _), (_, later, camera, memory) in itertools.pairwise(found):
        if not earlier.cause and not later.cause and camera.standing is Standing.ATTENDED:
            assert state_of(memory, camera)[0] is State.UP
            assert memory.cause == ""


@given(STEPS)
def test_a_restart_between_any_two_looks_changes_nothing(steps: list[Step]) -> None:
    for _, _, _, memory in history(steps):
        assert from_plain(json.loads(json.dumps(to_plain(memory)))) == memory


@given(STEPS)
def test_what_is_due_is_what_time_alone_changes_next(steps: list[Step]) -> None:
    for now_ms, _, camera, memory in history(steps):
        due = due_at(memory, camera, POLICIES)
        if due is None:
            assert pass_time(memory, camera, POLICIES, now_ms + 10**9) == memory
        else:
            assert due > now_ms
            assert pass_time(memory, camera, POLICIES, due - 1) == memory
            assert pass_time(memory, camera, POLICIES, due) != memory


@pytest.mark.parametrize("plain", [None, {}, {"unheard": 1}, {"sight": 3}, {"offline": {"since": 1}}])
def test_a_memory_that_does_not_fit_is_begun_anew(plain: dict[str, object] | None) -> None:
    assert from_plain(plain) == Memory()


def test_a_claim_sees_in_the_plain_memory_whether_a_camera_seems_covered() -> None:
    suspected = Memory(sight=Sight(covered=Suspicion(T0, T0, 7)))
    assert seems_covered(json.loads(json.dumps(to_plain(suspected))))
    assert not seems_covered(to_plain(Memory()))
    for odd in (None, {}, {"sight": None}, {"sight": 3}, {"sight": {}}):
        assert not seems_covered(odd)
