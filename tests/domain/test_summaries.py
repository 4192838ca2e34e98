"""The daily summary: its periods through clock changes, and that it says what was counted and no more."""

import json
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.messages import Language, ready_text
from camserver.domain.summaries import (
    LINES_MAX,
    Happening,
    Period,
    SiteDay,
    SummaryPolicy,
    Totals,
    Trouble,
    body,
    due_at,
    last_period,
    merged_troubles,
    text,
)

TOKYO, BERLIN = ZoneInfo("Asia/Tokyo"), ZoneInfo("Europe/Berlin")
HOUR_MS = 3_600_000
ZONES = [
    "Asia/Tokyo",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "UTC",
]
TIMES = st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.integers(0, 59))


def at(zone: ZoneInfo, *parts: int) -> int:
    return round(datetime(*parts, tzinfo=zone).timestamp() * 1000)  # type: ignore[arg-type, misc]  # year to second


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2026, 3, 28), 24), (date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 10, 26), 24)],
)
def test_a_day_with_a_clock_change_is_shorter_or_longer(day: date, hours: int) -> None:
    period = last_period(due_at(day, "19:00", BERLIN), "19:00", BERLIN)
    assert period.day == day.isoformat()
    assert period.to_ms - period.from_ms == hours * HOUR_MS


def test_a_time_that_clocks_leave_out_or_repeat_is_due_once() -> None:
    assert due_at(date(2026, 3, 29), "02:30", BERLIN) == at(BERLIN, 2026, 3, 29, 3, 30)
    first = due_at(date(2026, 10, 25), "02:30", BERLIN)
    for now_ms in (first, first + HOUR_MS, first + 23 * HOUR_MS):
        assert last_period(now_ms, "02:30", BERLIN).day == "2026-10-25"


def test_just_before_its_time_the_day_before_is_the_newest() -> None:
    due = at(TOKYO, 2026, 11, 16, 19, 0)
    assert last_period(due - 1, "19:00", TOKYO).day == "2026-11-15"
    assert last_period(due, "19:00", TOKYO).day == "2026-11-16"


@given(zone=st.sampled_from(ZONES), when=TIMES, now_ms=st.integers(1_600_000_000_000, 2_000_000_000_000))
def test_periods_follow_each_other_without_hole_or_overlap(zone: str, when: str, now_ms: int) -> None:
    place = ZoneInfo(zone)
    period = last_period(now_ms, when, place)
    assert period.from_ms < period.to_ms <= now_ms < period.to_ms + 26 * HOUR_MS
    before = last_period(period.to_ms - 1, when, place)
    assert before.to_ms == period.from_ms
    assert date.fromisoformat(period.day) - date.fromisoformat(before.day) == timedelta(days=1)


@pytest.mark.parametrize("wrong", ["7 pm", "24:00", "19:60", "9:00", ""])
def test_a_time_of_day_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="19:00"):
        SummaryPolicy(at=wrong)


PERIOD = Period("2026-11-16", at(TOKYO, 2026, 11, 15, 19, 0), at(TOKYO, 2026, 11, 16, 19, 0))
FACTS = SiteDay(
    site="本社",
    period=PERIOD,
    important=(
        Happening("e1", "玄関", "human", 2, at(TOKYO, 2026, 11, 16, 8, 5), at(TOKYO, 2026, 11, 16, 8, 10)),
        Happening("e2", "裏口", "hazard", 3, at(TOKYO, 2026, 11, 15, 23, 0), at(TOKYO, 2026, 11, 15, 23, 0)),
    ),
    important_count=25,
    ordinary=(("human", 12), ("animal", 1)),
    troubles=(
        Trouble("駐車場", "offline", "no_route", 2, 30 * 60_000, at(TOKYO, 2026, 11, 16, 18, 40)),
        Trouble("玄関", "covered", "", 1, 5 * 60_000, None),
    ),
    totals=Totals(5, 7200, 12, 830, 41, 38, 20),
    made_at=PERIOD.to_ms + 60_000,
)


def test_the_text_in_japanese() -> None:
    assert text(FACTS, TOKYO, Language.JA) == {
        "title": "本社 1日のまとめ 2026年11月16日",
        "lines": [
            "期間：2026年11月15日(日) 19:00:00 JST 〜 2026年11月16日(月) 19:00:00 JST",
            "■ 重要（25 件）",
            "・08:05 玄関：人を検知（注意、5分）",
            "・11/15 23:00 裏口：危険を検知（警報）",
            "・ほか 23 件",
            "■ そのほか（13 件）",
            "・人を検知 12件、動物を検知 1件",
            "■ カメラの状態",
            "・駐車場：カメラの通信断、2 回、合計 30分、18:40 から続いています（ネットワークから到達できません）",
            "・玄関：カメラが覆われているか、真っ暗です、1 回、合計 5分",
            "■ 合計",
            "・確認 7,200 回（失敗 12）、解析 830、検知 41、イベント 38、インシデント 20",
        ],
    }


def test_the_text_in_english_of_a_quiet_day_made_late() -> None:
    quiet = replace(
        FACTS,
        site="Main",
        important=(),
        important_count=0,
        ordinary=(),
        troubles=(),
        totals=Totals(cameras=2, looks=10),
        made_at=PERIOD.to_ms + 3 * HOUR_MS,
    )
    assert text(quiet, TOKYO, Language.EN) == {
        "title": "Main: summary of 2026-11-16",
        "lines": [
            "From Sun 2026-11-15 19:00:00 JST to Mon 2026-11-16 19:00:00 JST",
            "Made late, at Mon 2026-11-16 22:00:00 JST",
            "Important: none",
            "Ordinary: none",
            "Cameras",
            "- 2 in all, no issue in this time",
            "Totals",
            "- 10 looks (0 failed), 0 analyzed, 0 detections, 0 events, 0 incidents",
        ],
    }


def test_it_is_kept_as_data_and_as_texts_that_can_be_sent() -> None:
    kept = json.loads(json.dumps(body(FACTS, TOKYO)))
    assert kept["facts"]["totals"]["looks"] == 7200
    assert kept["facts"]["late"] is False
    for language in Language:
        sent = ready_text(kept["texts"], language)
        assert sent.title == kept["texts"][language.value]["title"]
        assert list(sent.lines) == kept["texts"][language.value]["lines"]


HAPPENINGS = st.builds(
    Happening,
    event_uuid=st.just("e"),
    camera=st.text(max_size=10),
    primary_event=st.sampled_from(["human", "hazard", "other_thing"]),
    severity=st.integers(2, 3),
    start_at=st.integers(PERIOD.from_ms, PERIOD.to_ms - 1),
    last_seen_at=st.just(PERIOD.to_ms),
)


@given(events=st.lists(HAPPENINGS, max_size=40), totals=st.builds(Totals, *[st.integers(0, 10**6)] * 7))
def test_numbers_in_the_totals_are_those_that_were_counted_and_lists_are_bounded(
    events: list[Happening], totals: Totals
) -> None:
    facts = replace(
        FACTS,
        important=tuple(events[:LINES_MAX]),
        important_count=len(events),
        totals=totals,
        ordinary=(),
        troubles=(),
    )
    for language in Language:
        lines = text(facts, TOKYO, language)["lines"]
        numbers = [int(found.replace(",", "")) for found in re.findall(r"[\d,]*\d", lines[-1])]
        assert numbers == [
            totals.looks, totals.looks_failed, totals.analyzed, totals.detected, totals.events, totals.incidents,
        ]  # fmt: skip
        assert len(lines) <= LINES_MAX + 12


def issue(
    camera: str, start_at: int, end_at: int | None, kind: str = "offline", cause: str = ""
) -> dict[str, object]:
    return {"camera": camera, "issue": kind, "cause": cause, "start_at": start_at, "end_at": end_at}


def test_down_times_are_cut_to_the_period_and_added_up() -> None:
    begin, end = PERIOD.from_ms, PERIOD.to_ms
    rows = [
        issue("a", begin - HOUR_MS, begin + HOUR_MS),  # began before
        issue("a", end - 2 * HOUR_MS, None, cause="timeout"),  # goes on
        issue("a", begin, begin + 60_000, "covered"),
        issue("b", end, None),  # begins after
        issue("c", begin - 2 * HOUR_MS, begin - HOUR_MS),  # was over before
    ]
    assert set(merged_troubles(rows, PERIOD)) == {
        Trouble("a", "offline", "timeout", 2, 3 * HOUR_MS, end - 2 * HOUR_MS),
        Trouble("a", "covered", "", 1, 60_000, None),
    }
