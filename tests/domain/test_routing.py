from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.routing import (
    COUNTED,
    HOUR_MS,
    Notice,
    Quiet,
    Recipient,
    Route,
    Rule,
    Snooze,
    Verdict,
    fits,
    hour_of,
    is_quiet,
    parse_quiet,
    plain_quiet,
    route,
    snoozed_until,
    widest,
)

from .build import T0

TOKYO = ZoneInfo("Asia/Tokyo")
BERLIN = ZoneInfo("Europe/Berlin")
NOTICE = Notice(site_id=1, camera_key=10, primary_event="human", severity=2)
ALL = frozenset(range(7))
NIGHT = Quiet(22 * 60, 7 * 60)


def rule(rule_id: int = 1, **changes: Any) -> Rule:
    return Rule(**{"rule_id": rule_id, "position": rule_id, "name": f"rule {rule_id}", **changes})


def verdicts(rules: list[Rule], *recipients: int, notice: Notice = NOTICE, at: int = T0) -> list[Verdict]:
    found = route(notice, rules, (), [Recipient(one) for one in recipients], TOKYO, at)
    return [one.verdict for one in found]


SEND, NO_RULE, MUTED = Verdict.SEND, Verdict.NO_RULE, Verdict.MUTED


def test_without_rules_everybody_is_told() -> None:
    assert verdicts([], 1, 2) == [SEND, SEND]
    assert verdicts([rule(enabled=False, receiver_ids=frozenset())], 1) == [SEND], "one that is off is none"


@pytest.mark.parametrize(
    ("changes", "does"),
    [
        ({}, True),
        ({"site_ids": frozenset({1, 2})}, True),
        ({"site_ids": frozenset({2})}, False),
        ({"site_ids": frozenset()}, False),
        ({"camera_keys": frozenset({10})}, True),
        ({"camera_keys": frozenset({11})}, False),
        ({"primary_events": frozenset({"human", "hazard"})}, True),
        ({"primary_events": frozenset({"vehicle"})}, False),
        ({"min_severity": 2}, True),
        ({"min_severity": 3}, False),
        ({"site_ids": frozenset({1}), "camera_keys": frozenset({10}), "min_severity": 3}, False),
    ],
)
def test_what_a_rule_is_about(changes: dict[str, Any], does: bool) -> None:
    assert fits(rule(**changes), NOTICE) is does


def test_with_rules_only_who_is_named_is_told() -> None:
    rules = [rule(receiver_ids=frozenset({1}))]
    assert verdicts(rules, 1, 2) == [SEND, NO_RULE]


def test_a_rule_that_names_nobody_mutes_what_comes_behind_it() -> None:
    mute = rule(2, camera_keys=frozenset({10}), receiver_ids=frozenset())
    rest = rule(3)
    assert verdicts([mute, rest], 1) == [MUTED]
    assert verdicts([mute, rest], 1, notice=replace(NOTICE, camera_key=11)) == [SEND]
    severe = rule(1, min_severity=3)
    assert verdicts([severe, mute, rest], 1, notice=replace(NOTICE, severity=3)) == [SEND], "an exception before it"


def test_the_first_rule_that_names_a_receiver_decides_for_it() -> None:
    quiet = rule(1, receiver_ids=frozenset({1}), quiet=Quiet(0, 0))
    loud = rule(2)
    assert verdicts([quiet, loud], 1, 2) == [Verdict.QUIET, SEND]
    assert verdicts([replace(loud, position=0), quiet], 1, 2) == [SEND, SEND], "by position, not by the list's order"


def test_a_receiver_that_is_off_is_not_told() -> None:
    (found,) = route(NOTICE, (), (), [Recipient(1, enabled=False)], TOKYO, T0)
    assert found == Route(1, Verdict.RECEIVER_OFF)
    assert not found.is_meant


def test_an_hourly_cap() -> None:
    for sent, verdict in ((0, SEND), (4, SEND), (5, Verdict.CAP), (6, Verdict.CAP)):
        (found,) = route(NOTICE, (), (), [Recipient(1, hourly_cap=5, sent_this_hour=sent)], TOKYO, T0)
        assert found.verdict is verdict
    (none,) = route(NOTICE, (), (), [Recipient(1, hourly_cap=0)], TOKYO, T0)
    assert none.verdict is Verdict.CAP
    assert hour_of(T0 + HOUR_MS - 1) == T0
    assert hour_of(T0 + HOUR_MS) == T0 + HOUR_MS


@pytest.mark.parametrize(
    ("snooze", "held"),
    [
        (Snooze(T0 + 1), True),
        (Snooze(T0), False),
        (Snooze(T0 + 1, site_id=1), True),
        (Snooze(T0 + 1, site_id=2), False),
        (Snooze(T0 + 1, camera_key=10), True),
        (Snooze(T0 + 1, camera_key=11), False),
        (Snooze(T0 + 1, receiver_id=1), True),
        (Snooze(T0 + 1, receiver_id=2), False),
        (Snooze(T0 + 1, site_id=1, camera_key=10, receiver_id=2), False),
    ],
)
def test_snoozes(snooze: Snooze, held: bool) -> None:
    (found,) = route(NOTICE, (), [snooze], [Recipient(1)], TOKYO, T0)
    assert (found.verdict is Verdict.SNOOZED) is held
    assert found.until == (T0 + 1 if held else None)
    assert found.is_meant


def test_the_longest_snooze_holds() -> None:
    assert snoozed_until(NOTICE, [Snooze(T0 + 5), Snooze(T0 + 9), Snooze(T0 + 7)], 1, T0) == T0 + 9


def test_what_is_severe_enough_gets_through_quiet_hours() -> None:
    always = Quiet(0, 0, through_severity=3)
    for severity, verdict in ((2, Verdict.QUIET), (3, SEND)):
        notice = replace(NOTICE, severity=severity)
        assert verdicts([rule(quiet=always)], 1, notice=notice) == [verdict]
        nothing = replace(always, through_severity=None)
        assert verdicts([rule(quiet=nothing)], 1, notice=notice) == [Verdict.QUIET]


def at(zone: ZoneInfo, *parts: int, fold: int = 0) -> int:
    return round(datetime(*parts, tzinfo=zone, fold=fold).timestamp() * 1000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("quiet", "moment", "is_it"),
    [
        (NIGHT, (2026, 1, 1, 21, 59), False),
        (NIGHT, (2026, 1, 1, 22, 0), True),
        (NIGHT, (2026, 1, 2, 0, 0), True),
        (NIGHT, (2026, 1, 2, 6, 59), True),
        (NIGHT, (2026, 1, 2, 7, 0), False),
        (Quiet(9 * 60, 17 * 60), (2026, 1, 1, 8, 59), False),
        (Quiet(9 * 60, 17 * 60), (2026, 1, 1, 9, 0), True),
        (Quiet(9 * 60, 17 * 60), (2026, 1, 1, 17, 0), False),
        # 2026-01-02 is a Friday. The night that begins on it ends on Saturday.
        (replace(NIGHT, days=frozenset({4})), (2026, 1, 2, 6, 0), False),
        (replace(NIGHT, days=frozenset({4})), (2026, 1, 2, 23, 0), True),
        (replace(NIGHT, days=frozenset({4})), (2026, 1, 3, 6, 0), True),
        (replace(NIGHT, days=frozenset({4})), (2026, 1, 3, 23, 0), False),
        # Sunday night ends on Monday.
        (replace(NIGHT, days=frozenset({6})), (2026, 1, 5, 6, 0), True),
        # Equal times: a whole day, from then on.
        (Quiet(480, 480, frozenset({5, 6})), (2026, 1, 3, 7, 59), False),
        (Quiet(480, 480, frozenset({5, 6})), (2026, 1, 3, 8, 0), True),
        (Quiet(480, 480, frozenset({5, 6})), (2026, 1, 5, 7, 59), True),
        (Quiet(480, 480, frozenset({5, 6})), (2026, 1, 5, 8, 0), False),
    ],
)
def test_quiet_hours(quiet: Quiet, moment: tuple[int, ...], is_it: bool) -> None:
    assert is_quiet(quiet, TOKYO, at(TOKYO, *moment)) is is_it


def test_quiet_hours_are_the_sites() -> None:
    moment = at(TOKYO, 2026, 1, 1, 23, 0)
    assert is_quiet(NIGHT, TOKYO, moment)
    assert not is_quiet(NIGHT, BERLIN, moment), "15:00 there"


def test_in_spring_the_night_is_an_hour_shorter() -> None:
    """2026-03-29 in Berlin: 02:00 becomes 03:00."""
    start, end = at(BERLIN, 2026, 3, 28, 22, 0), at(BERLIN, 2026, 3, 29, 7, 0)
    assert (end - start) == 8 * HOUR_MS
    assert not is_quiet(NIGHT, BERLIN, start - 1)
    assert is_quiet(NIGHT, BERLIN, start)
    assert is_quiet(NIGHT, BERLIN, end - 1)
    assert not is_quiet(NIGHT, BERLIN, end)
    gap = Quiet(2 * 60, 3 * 60)
    whole_night = range(start, end, 60_000)
    assert not any(is_quiet(gap, BERLIN, moment) for moment in whole_night), "that hour is left out"


def test_in_autumn_the_hour_that_comes_twice_is_quiet_twice() -> None:
    """2026-10-25 in Berlin: 03:00 becomes 02:00."""
    start, end = at(BERLIN, 2026, 10, 24, 22, 0), at(BERLIN, 2026, 10, 25, 7, 0)
    assert (end - start) == 10 * HOUR_MS
    assert all(is_quiet(NIGHT, BERLIN, moment) for moment in range(start, end, 600_000))
    doubled = Quiet(2 * 60, 3 * 60)
    quiet = [moment for moment in range(start, end, 60_000) if is_quiet(doubled, BERLIN, moment)]
    assert len(quiet) == 120


zones = st.sampled_from(["Asia/Tokyo", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])
quiets = st.builds(
    Quiet, st.integers(0, 1439), st.integers(0, 1439), st.frozensets(st.integers(0, 6), min_size=1), st.integers(0, 3)
)
moments = st.integers(T0, T0 + 366 * 24 * HOUR_MS)


@given(zones, quiets, moments)
def test_quiet_hours_and_their_complement_share_no_moment(zone_name: str, quiet: Quiet, moment: int) -> None:
    """On every day, the hours from `to` to `from` are those that are not quiet."""
    zone = ZoneInfo(zone_name)
    always = replace(quiet, days=ALL)
    if quiet.from_min == quiet.to_min:
        assert is_quiet(always, zone, moment)
    else:
        other = replace(always, from_min=quiet.to_min, to_min=quiet.from_min)
        assert is_quiet(always, zone, moment) != is_quiet(other, zone, moment)
    if is_quiet(quiet, zone, moment):
        assert is_quiet(always, zone, moment), "fewer days are never more quiet"


@given(zones, quiets, moments)
def test_quiet_hours_begin_on_one_of_their_days(zone_name: str, quiet: Quiet, moment: int) -> None:
    zone = ZoneInfo(zone_name)
    if is_quiet(quiet, zone, moment):
        local = datetime.fromtimestamp(moment / 1000, zone)
        assert {local.weekday(), (local - timedelta(days=1)).weekday()} & quiet.days


rules_strategy = st.lists(
    st.builds(
        Rule,
        rule_id=st.integers(1, 9),
        position=st.integers(0, 3),
        name=st.just("r"),
        enabled=st.booleans(),
        site_ids=st.none() | st.frozensets(st.integers(1, 2)),
        camera_keys=st.none() | st.frozensets(st.integers(10, 11)),
        primary_events=st.none() | st.frozensets(st.sampled_from(["human", "vehicle"])),
        min_severity=st.integers(0, 3),
        receiver_ids=st.none() | st.frozensets(st.integers(1, 3)),
        quiet=st.none() | quiets,
    ),
    max_size=6,
    unique_by=lambda one: one.rule_id,
)
notices_strategy = st.builds(
    Notice, st.integers(1, 2), st.integers(10, 11), st.sampled_from(["human", "vehicle"]), st.integers(0, 3)
)


@given(notices_strategy, rules_strategy, moments)
def test_nobody_is_told_against_the_rules(notice: Notice, rules: list[Rule], moment: int) -> None:
    recipients = [Recipient(one) for one in (1, 2, 3)]
    found = route(notice, rules, (), recipients, TOKYO, moment)
    active = [rule for rule in rules if rule.enabled]
    assert [one.receiver_id for one in found] == [1, 2, 3]
    for one in found:
        if active and one.verdict is SEND:
            assert any(
                fits(rule, notice) and (rule.receiver_ids is None or one.receiver_id in rule.receiver_ids)
                for rule in active
            )
        if not active:
            assert one.verdict is SEND
        assert one.is_meant == (one.verdict is SEND or one.verdict in COUNTED)


@given(notices_strategy, rules_strategy, moments, st.randoms())
def test_the_order_of_rows_does_not_matter(notice: Notice, rules: list[Rule], moment: int, shuffle: Any) -> None:
    shuffled = list(rules)
    shuffle.shuffle(shuffled)
    recipients = [Recipient(one) for one in (1, 2, 3)]
    assert route(notice, rules, (), recipients, TOKYO, moment) == route(
        notice, shuffled, (), recipients, TOKYO, moment
    )


@given(quiets)
def test_quiet_hours_survive_their_json(quiet: Quiet) -> None:
    assert parse_quiet(plain_quiet(quiet)) == quiet


def test_what_quiet_hours_leave_out() -> None:
    assert parse_quiet(None) is None
    assert parse_quiet({"from": "22:00", "to": "07:00"}) == NIGHT
    nothing = parse_quiet({"from": "22:00", "to": "07:00", "through_severity": None})
    assert nothing is not None
    assert nothing.through_severity is None


@pytest.mark.parametrize(
    "plain",
    [
        {"from": "24:00", "to": "07:00"},
        {"from": "7:00", "to": "07:00"},
        {"from": 420, "to": "07:00"},
        {"to": "07:00"},
        {"from": "22:00", "to": "07:00", "days": []},
        {"from": "22:00", "to": "07:00", "days": [7]},
        {"from": "22:00", "to": "07:00", "days": "all"},
        {"from": "22:00", "to": "07:00", "days": [True]},
        {"from": "22:00", "to": "07:00", "through_severity": 4},
    ],
)
def test_quiet_hours_that_make_no_sense(plain: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        parse_quiet(plain)


def test_of_several_answers_the_one_that_tells_most_counts() -> None:
    sent, counted, none = Route(1, Verdict.SEND), Route(1, Verdict.QUIET), Route(1, Verdict.NO_RULE)
    assert widest([none, counted, sent]) is sent
    assert widest([none, counted]) is counted
    assert widest([none]) is none
