"""Admission's rules: the budget, the order of checks, ways to show a camera, the load guard's hysteresis."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.admission import (
    PLAYS,
    AdmissionPolicy,
    Asked,
    CameraStreams,
    Guard,
    Held,
    Kind,
    Load,
    Note,
    Offer,
    Quality,
    Refusal,
    Refused,
    bears_transcode,
    budget_of,
    costs,
    decide,
    is_available,
    judged,
    offers,
    refused,
    used,
    valid_until,
    viewer_of,
    warnings,
    why_over,
)
from camserver.domain.people import Principal, Role

POLICY = AdmissionPolicy()
NOW_MS = 1_767_225_600_000
BOTH = CameraStreams(has_main=True, has_sub=True)
SUB = (Offer(Quality.SUB, 1),)
MAIN = offers(BOTH, Quality.MAIN, PLAYS, POLICY)


def test_the_modal_budget_is_what_the_reserves_leave() -> None:
    assert AdmissionPolicy().modal_budget() == 35
    assert AdmissionPolicy(max_ui_users=0).modal_budget() == 45
    assert AdmissionPolicy(sub_stream_cost=2).modal_budget() == 25


def test_reserves_larger_than_the_machine_leave_nothing() -> None:
    assert AdmissionPolicy(total_stream_units=3).modal_budget() == 0


def held(units: int, kind: Kind = Kind.MODAL) -> list[Held]:
    return [Held(kind, 1, Quality.SUB, units)]


# Seed 001, section 11.1 ------------------------------------------------------------------------------------------


def test_a_viewing_within_the_budget_is_admitted() -> None:
    assert decide(Asked(9, Kind.MODAL, SUB), Guard(), held(34), POLICY) == SUB[0]


def test_a_viewing_beyond_the_budget_is_refused_with_over_capacity() -> None:
    assert decide(Asked(9, Kind.MODAL, SUB), Guard(), held(35), POLICY) == Refused(Refusal.OVER_CAPACITY, 35, 35)


def test_an_overloaded_system_refuses_with_system_overload() -> None:
    assert decide(Asked(9, Kind.MODAL, SUB), Guard(True, 1), [], POLICY) == Refused(Refusal.SYSTEM_OVERLOAD)


def test_a_second_viewing_of_a_user_is_refused_with_user_already_has_modal() -> None:
    asked = Asked(9, Kind.MODAL, SUB, has_one_already=True)
    assert decide(asked, Guard(), [], POLICY) == Refused(Refusal.USER_ALREADY_HAS_MODAL)


@pytest.mark.parametrize(
    ("overloaded", "has_one", "full", "refusal"),
    [
        (True, True, True, Refusal.SYSTEM_OVERLOAD),
        (True, False, False, Refusal.SYSTEM_OVERLOAD),
        (False, True, True, Refusal.USER_ALREADY_HAS_MODAL),
        (False, False, True, Refusal.OVER_CAPACITY),
    ],
)
def test_checks_are_made_in_the_seeds_order(overloaded: bool, has_one: bool, full: bool, refusal: Refusal) -> None:
    asked = Asked(9, Kind.MODAL, SUB, has_one_already=has_one)
    answer = decide(asked, Guard(overloaded, 1), held(35 if full else 0), POLICY)
    assert isinstance(answer, Refused)
    assert answer.refusal is refusal


# The budget ------------------------------------------------------------------------------------------------------


def test_a_main_stream_falls_back_to_the_sub_stream_when_there_is_room_for_no_more() -> None:
    answer = decide(Asked(9, Kind.MODAL, MAIN), Guard(), held(34), POLICY)
    assert answer == Offer(Quality.SUB, 1, note=Note.LOWERED_NO_BUDGET)
    assert decide(Asked(9, Kind.MODAL, MAIN), Guard(), held(33), POLICY) == Offer(Quality.MAIN, 2)


def test_a_full_budget_of_modals_leaves_the_suggested_camera_its_reserve() -> None:
    full = held(35)
    for users in range(10):
        answer = decide(Asked(9, Kind.SUGGEST, SUB), Guard(True, 1), [*full, *held(users, Kind.SUGGEST)], POLICY)
        assert answer == SUB[0], "an overload refuses none of these either"
    beyond = decide(Asked(9, Kind.SUGGEST, SUB), Guard(), held(10, Kind.SUGGEST), POLICY)
    assert beyond == Refused(Refusal.OVER_CAPACITY, 10, 10)
    assert decide(Asked(9, Kind.MODAL, SUB), Guard(), held(10, Kind.SUGGEST), POLICY) == SUB[0]


def test_a_transcode_is_paid_once_for_all_who_watch_the_same() -> None:
    masked = offers(CameraStreams(True, True, is_masked=True), Quality.SUB, PLAYS, POLICY)
    assert masked[0] == Offer(Quality.SUB, 1, 3, True, Note.TRANSCODED_MASK)
    first = Held(Kind.MODAL, 1, Quality.SUB, 1, 3)
    assert used([first], Kind.MODAL) == 4
    assert used([first, first], Kind.MODAL) == 5
    assert used([first, replace(first, camera_key=2)], Kind.MODAL) == 8
    assert used([first, replace(first, kind=Kind.SUGGEST)], Kind.MODAL) == 4
    room_for_one_more = [first, Held(Kind.MODAL, 9, Quality.SUB, 30)]
    assert decide(Asked(1, Kind.MODAL, masked), Guard(), room_for_one_more, POLICY) == masked[0]
    assert isinstance(decide(Asked(2, Kind.MODAL, masked), Guard(), room_for_one_more, POLICY), Refused)


def test_a_transcode_found_necessary_later_needs_room_too() -> None:
    watched = Held(Kind.MODAL, 1, Quality.MAIN, 2)
    assert bears_transcode([watched], 1, Quality.MAIN, POLICY) == 2
    assert bears_transcode([watched, Held(Kind.MODAL, 9, Quality.SUB, 31)], 1, Quality.MAIN, POLICY) == 2
    assert bears_transcode([watched, Held(Kind.MODAL, 9, Quality.SUB, 32)], 1, Quality.MAIN, POLICY) is None


HELD = st.builds(
    Held,
    kind=st.sampled_from(Kind),
    camera_key=st.integers(1, 3),
    quality=st.sampled_from(Quality),
    units=st.integers(1, 3),
    transcode_units=st.sampled_from([0, 3]),
)


@given(st.lists(HELD, max_size=12))
def test_what_each_takes_is_together_what_is_in_use(held: list[Held]) -> None:
    each = costs(held)
    assert len(each) == len(held)
    assert sum(each) == used(held, Kind.MODAL) + used(held, Kind.SUGGEST)


def test_who_watches_a_transcode_first_pays_for_it() -> None:
    first = Held(Kind.MODAL, 1, Quality.SUB, 1, 3)
    assert costs([first, first, replace(first, transcode_units=0)]) == [4, 1, 1]
    assert costs([replace(first, transcode_units=0), first]) == [1, 4], "who sees it as it is does not"


STREAMS = st.builds(
    CameraStreams,
    has_main=st.booleans(),
    has_sub=st.booleans(),
    main_codec=st.sampled_from([None, "h264", "h265"]),
    sub_codec=st.sampled_from([None, "h264", "h265"]),
    is_masked=st.booleans(),
)
POLICIES = st.builds(
    AdmissionPolicy,
    total_stream_units=st.integers(1, 60),
    max_ui_users=st.integers(0, 12),
    reserved_baseline_units=st.integers(0, 10),
    sub_stream_cost=st.integers(1, 3),
    main_stream_cost=st.integers(1, 5),
    transcode_cost=st.integers(1, 8),
)


@given(
    policy=POLICIES,
    requests=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(Kind), st.sampled_from(Quality), STREAMS, st.booleans()),
        max_size=60,
    ),
)
def test_whatever_is_asked_and_released_the_budget_is_kept(
    policy: AdmissionPolicy, requests: list[tuple[int, Kind, Quality, CameraStreams, bool]]
) -> None:
    now_held: list[Held] = []
    for camera_key, kind, quality, camera, leaves in requests:
        ways = offers(camera, quality, PLAYS, policy)
        answer = decide(Asked(camera_key, kind, ways), Guard(), now_held, policy)
        if isinstance(answer, Offer):
            assert answer in ways
            now_held.append(Held(kind, camera_key, answer.quality, answer.units, answer.transcode_units))
        if leaves and now_held:
            now_held.pop(0)
        for one in Kind:
            assert used(now_held, one) <= budget_of(one, policy)


# Ways to show a camera -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("camera", "asked", "plays", "expected"),
    [
        (BOTH, Quality.SUB, PLAYS, [("sub", 1, False, "")]),
        (BOTH, Quality.MAIN, PLAYS, [("main", 2, False, ""), ("sub", 1, False, "lowered_no_budget")]),
        (CameraStreams(True, False), Quality.SUB, PLAYS, [("main", 2, False, "no_sub_stream")]),
        (CameraStreams(False, True), Quality.MAIN, PLAYS, [("sub", 1, False, "no_main_stream")]),
        (CameraStreams(False, False), Quality.MAIN, PLAYS, []),
        (CameraStreams(True, True, "h265", "h264"), Quality.MAIN, PLAYS, [("sub", 1, False, "other_codec")]),
        (
            CameraStreams(True, True, "h265", "h264"),
            Quality.MAIN,
            {"h264", "h265"},
            [("main", 2, False, ""), ("sub", 1, False, "lowered_no_budget")],
        ),
        (CameraStreams(True, True, "h264", "h265"), Quality.SUB, PLAYS, [("main", 2, False, "other_codec")]),
        (
            CameraStreams(True, True, "h265", "h265"),
            Quality.MAIN,
            PLAYS,
            [("main", 2, True, "transcoded_codec"), ("sub", 1, True, "transcoded_codec")],
        ),
        (CameraStreams(True, False, "h265"), Quality.SUB, PLAYS, [("main", 2, True, "transcoded_codec")]),
        (
            CameraStreams(True, True, "h264", "h264", is_masked=True),
            Quality.MAIN,
            PLAYS,
            [("main", 2, True, "transcoded_mask"), ("sub", 1, True, "transcoded_mask")],
        ),
    ],
)
def test_a_camera_is_shown_as_it_is_where_that_can_be(
    camera: CameraStreams, asked: Quality, plays: frozenset[str], expected: list[tuple[str, int, bool, str]]
) -> None:
    found = offers(camera, asked, plays, POLICY)
    assert [(one.quality, one.units, one.transcode, one.note) for one in found] == expected
    for one in found:
        assert one.units + one.transcode_units == (POLICY.transcode_cost if one.transcode else one.units)


@given(STREAMS, st.sampled_from(Quality), st.frozensets(st.sampled_from(["h264", "h265"])))
def test_what_is_offered_exists_and_a_mask_is_never_left_out(
    camera: CameraStreams, asked: Quality, plays: frozenset[str]
) -> None:
    found = offers(camera, asked, plays, POLICY)
    assert bool(found) == (camera.has_main or camera.has_sub)
    for one in found:
        assert camera.has(one.quality)
        assert one.transcode or not camera.is_masked
        assert one.transcode or camera.plays_as_it_is(one.quality, plays)


# The load guard --------------------------------------------------------------------------------------------------

CALM = Load(10, 20, 0)
HOLD_MS = POLICY.overload_hold_sec * 1000


@pytest.mark.parametrize(
    ("load", "overloaded"),
    [
        (Load(85, 90, 100), False),
        (Load(85.1, 0, 0), True),
        (Load(0, 90.1, 0), True),
        (Load(0, 0, 100.1), True),
        (CALM, False),
    ],
)
def test_each_measure_trips_the_guard_above_its_bound(load: Load, overloaded: bool) -> None:
    assert judged(Guard(), load, NOW_MS, POLICY).overloaded is overloaded


@pytest.mark.parametrize(
    ("load", "after_ms", "overloaded"),
    [
        (CALM, HOLD_MS, True),
        (CALM, HOLD_MS + 1, False),
        (Load(60, 20, 0), HOLD_MS + 1, True),
        (Load(10, 70, 0), HOLD_MS + 1, True),
        (Load(10, 20, 50), HOLD_MS + 1, True),
        (Load(59.9, 69.9, 49.9), HOLD_MS + 1, False),
    ],
)
def test_the_guard_comes_back_later_than_it_tripped(load: Load, after_ms: int, overloaded: bool) -> None:
    assert judged(Guard(True, NOW_MS), load, NOW_MS + after_ms, POLICY).overloaded is overloaded


def test_every_report_above_a_bound_begins_the_wait_anew() -> None:
    guard = judged(Guard(True, NOW_MS), Load(99, 0, 0), NOW_MS + HOLD_MS, POLICY)
    assert guard == Guard(True, NOW_MS + HOLD_MS)
    assert judged(guard, CALM, NOW_MS + HOLD_MS + 1, POLICY).overloaded


LOADS = st.builds(Load, st.floats(0, 100), st.floats(0, 100), st.floats(0, 300))


@given(st.lists(st.tuples(st.integers(1, 90_000), LOADS), max_size=40))
def test_between_two_admissions_after_an_overload_lies_the_whole_hold(reports: list[tuple[int, Load]]) -> None:
    guard, now_ms = Guard(), NOW_MS
    last_bad: int | None = None
    for passed_ms, load in reports:
        now_ms += passed_ms
        guard = judged(guard, load, now_ms, POLICY)
        if load.cpu_percent > 85 or load.memory_percent > 90 or load.swap_mb > 100:
            last_bad = now_ms
            assert guard.overloaded
        if not guard.overloaded and last_bad is not None:
            assert now_ms - last_bad > HOLD_MS


def test_warnings_show_and_refuse_nothing() -> None:
    high = Load(70.1, 75.1, 50.1)
    assert warnings(high, POLICY) == ("cpu", "memory", "swap")
    assert not judged(Guard(), high, NOW_MS, POLICY).overloaded
    assert warnings(Load(70, 75, 50), POLICY) == ()


def test_a_streamer_is_away_after_fifteen_silent_seconds() -> None:
    assert is_available(NOW_MS, NOW_MS + 15_000)
    assert not is_available(NOW_MS, NOW_MS + 15_001)
    assert not is_available(None, NOW_MS)


# The life of a viewing -------------------------------------------------------------------------------------------


@given(st.integers(0, 400_000), st.integers(0, 400_000))
def test_a_viewing_is_valid_exactly_as_long_as_the_seed_says(beat_ms: int, passed_ms: int) -> None:
    expires = NOW_MS + 300_000
    now_ms = NOW_MS + passed_ms
    is_over = now_ms - (NOW_MS + beat_ms) > 45_000 or now_ms > expires
    assert (now_ms > valid_until(expires, NOW_MS + beat_ms, POLICY)) is is_over


def test_why_a_viewing_is_over() -> None:
    assert why_over(NOW_MS, NOW_MS + 1) == "ttl"
    assert why_over(NOW_MS, NOW_MS) == "heartbeat"


def test_a_viewing_is_the_logins_not_the_persons() -> None:
    assert viewer_of(Principal(1, 5, Role.VIEWER, session_id=7)) == "session:7"
    assert viewer_of(Principal(1, 5, Role.VIEWER, token_id=3)) == "token:3"
    assert viewer_of(Principal(1, None, Role.SYSTEM_ADMIN)) == "local"


def test_every_refusal_has_its_code() -> None:
    for refusal, details in product(Refusal, ({}, {"units_used": 1})):
        error = refused(refusal, **details)
        assert (error.code, error.details["reason"]) == (refusal.value, refusal.value)
        assert error.http_status in (409, 503)
