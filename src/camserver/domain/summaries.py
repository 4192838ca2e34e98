"""The daily summary of a site: when it is due, and what it says, in Japanese and English.

A day's summary covers the 24 hours (23 or 25 when clocks change) up to its time of day, so that summaries follow
each other without hole or overlap. It is made from counted rows only; nothing in it is guessed. Reading the rows and
telling people are not here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final

from camserver.domain.messages import Language, duration, local_time, one_line
from camserver.domain.phrases import (
    Phrase,
    camera_cause_phrase,
    camera_issue_phrase,
    primary_event_phrase,
    severity_phrase,
)
from camserver.domain.policy import setting

IMPORTANT_SEVERITY: Final = 2
# Lines of a section; what is beyond is counted.
LINES_MAX: Final = 20
# One that is made later than this after its time says so.
LATE_AFTER_MS: Final = 15 * 60_000

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """When the day of a site is summed up."""

    enabled: bool = setting(True, "Whether a summary of each site is made every day.")
    at: str = setting("19:00", "When, in the site's local time, HH:MM.")

    def __post_init__(self) -> None:
        if _TIME.fullmatch(self.at) is None:
            raise ValueError(f"at = {self.at!r} is no time of day; write it like 19:00")


@dataclass(frozen=True, slots=True)
class Period:
    """What the summary of a day covers; `to_ms`, when it is due, is not included."""

    day: str  # YYYY-MM-DD, of its end
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Happening:
    """One event."""

    event_uuid: str
    camera: str
    primary_event: str
    severity: int
    start_at: int
    last_seen_at: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of issue that one camera had within the period; times in it only."""

    camera: str
    issue: str
    cause: str
    times: int
    length_ms: int  # of all together
    since: int | None  # when the one that still goes on began


@dataclass(frozen=True, slots=True)
class Totals:
    cameras: int = 0
    looks: int = 0
    looks_failed: int = 0
    analyzed: int = 0
    detected: int = 0
    events: int = 0
    incidents: int = 0


@dataclass(frozen=True, slots=True)
class SiteDay:
    """Everything a summary is made of."""

    site: str
    period: Period
    important: tuple[Happening, ...]  # at most LINES_MAX, the gravest first
    important_count: int
    ordinary: tuple[tuple[str, int], ...]  # primary event and how many, the most frequent first
    troubles: tuple[Trouble, ...]
    totals: Totals
    made_at: int

    @property
    def is_late(self) -> bool:
        return self.made_at - self.period.to_ms > LATE_AFTER_MS


def due_at(day: date, at: str, zone: tzinfo) -> int:
    """When that day's summary is due, in ms. A time that the clocks leave out or repeat has one moment, too."""
    hour, minute = map(int, at.split(":"))
    return round(datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).timestamp() * 1000)


def last_period(now_ms: int, at: str, zone: tzinfo) -> Period:
    """The newest period that is over."""
    day = datetime.fromtimestamp(now_ms / 1000, zone).date()
    while due_at(day, at, zone) > now_ms:
        day -= timedelta(days=1)
    return Period(day.isoformat(), due_at(day - timedelta(days=1), at, zone), due_at(day, at, zone))


def body(facts: SiteDay, zone: tzinfo) -> dict[str, Any]:
    """As it is kept and told: the facts for programs, the texts as `messages.ready_text` takes them."""
    return {
        "facts": {**asdict(facts), "late": facts.is_late},
        "texts": {language.value: text(facts, zone, language) for language in Language},
    }


def text(facts: SiteDay, zone: tzinfo, language: Language) -> dict[str, Any]:
    """Title and lines."""
    day = date.fromisoformat(facts.period.day)
    site = one_line(facts.site)
    title = _in(
        Phrase(
            f"{site} 1日のまとめ {day.year}年{day.month}月{day.day}日",
            f"{site}: summary of {day.isoformat()}",
        ),
        language,
    )
    sections = [section for section in _sections(facts, zone, language) if section]
    return {"title": title, "lines": [line for section in sections for line in section]}


def _sections(facts: SiteDay, zone: tzinfo, language: Language) -> Iterable[list[str]]:
    yield _head(facts, zone, language)
    yield _important(facts, zone, language)
    yield _ordinary(facts, language)
    yield _cameras(facts, zone, language)
    yield _totals(facts.totals, language)


def _head(facts: SiteDay, zone: tzinfo, language: Language) -> list[str]:
    begin, end = (local_time(at, zone, language) for at in (facts.period.from_ms, facts.period.to_ms))
    lines = [_in(Phrase(f"期間：{begin} 〜 {end}", f"From {begin} to {end}"), language)]
    if facts.is_late:
        at = local_time(facts.made_at, zone, language)
        lines.append(_in(Phrase(f"遅れて作成しました（{at}）", f"Made late, at {at}"), language))
    return lines


def _important(facts: SiteDay, zone: tzinfo, language: Language) -> list[str]:
    lines = [_heading(Phrase("重要", "Important"), facts.important_count, language)]
    for one in facts.important[:LINES_MAX]:
        at = _clock(one.start_at, facts.period, zone)
        what = one_line(_in(primary_event_phrase(one.primary_event), language))
        grave = severity_phrase(one.severity)
        line = _in(
            Phrase(
                f"・{at} {one_line(one.camera)}：{what}（{grave.ja}",
                f"- {at} {one_line(one.camera)}: {what} ({grave.en.lower()}",
            ),
            language,
        )
        if one.last_seen_at - one.start_at >= 1000:
            length = duration(one.last_seen_at - one.start_at, language)
            line += _in(Phrase(f"、{length}", f", {length}"), language)
        lines.append(line + _in(Phrase("）", ")"), language))
    return lines + _more(facts.important_count - min(len(facts.important), LINES_MAX), language)


def _ordinary(facts: SiteDay, language: Language) -> list[str]:
    lines = [_heading(Phrase("そのほか", "Ordinary"), sum(count for _, count in facts.ordinary), language)]
    shown = [
        f"{one_line(_in(primary_event_phrase(name), language))} {count}" + ("件" if language is Language.JA else "")
        for name, count in facts.ordinary[:LINES_MAX]
    ]
    if shown:
        lines.append(_bullet(("、" if language is Language.JA else ", ").join(shown), language))
    return lines


def _cameras(facts: SiteDay, zone: tzinfo, language: Language) -> list[str]:
    lines = [_in(Phrase("■ カメラの状態", "Cameras"), language)]
    count = facts.totals.cameras
    if not facts.troubles:
        fine = Phrase(f"{count} 台、期間中の異常なし", f"{count} in all, no issue in this time")
        return [*lines, _bullet(_in(fine, language), language)]
    # What still goes on comes first.
    ordered = sorted(facts.troubles, key=lambda one: (one.since is None, -one.length_ms, one.camera))
    lines += [_bullet(_trouble(one, facts.period, zone, language), language) for one in ordered[:LINES_MAX]]
    return lines + _more(len(ordered) - LINES_MAX, language)


def _trouble(one: Trouble, period: Period, zone: tzinfo, language: Language) -> str:
    issue = one_line(_in(camera_issue_phrase(one.issue), language))
    length = duration(one.length_ms, language)
    said = _in(
        Phrase(
            f"{one_line(one.camera)}：{issue}、{one.times} 回、合計 {length}",
            f"{one_line(one.camera)}: {issue}, {one.times} x, {length} in all",
        ),
        language,
    )
    if one.since is not None:
        at = _clock(one.since, period, zone)
        said += _in(Phrase(f"、{at} から続いています", f", still since {at}"), language)
        if one.cause:
            said += _in(Phrase("（", " ("), language)
            said += one_line(_in(camera_cause_phrase(one.cause), language)) + _in(Phrase("）", ")"), language)
    return said


def _totals(totals: Totals, language: Language) -> list[str]:
    return [
        _in(Phrase("■ 合計", "Totals"), language),
        _bullet(
            _in(
                Phrase(
                    f"確認 {totals.looks:,} 回（失敗 {totals.looks_failed:,}）、解析 {totals.analyzed:,}、"
                    f"検知 {totals.detected:,}、イベント {totals.events:,}、インシデント {totals.incidents:,}",
                    f"{totals.looks:,} looks ({totals.looks_failed:,} failed), {totals.analyzed:,} analyzed, "
                    f"{totals.detected:,} detections, {totals.events:,} events, {totals.incidents:,} incidents",
                ),
                language,
            ),
            language,
        ),
    ]


def merged_troubles(rows: Sequence[Mapping[str, Any]], period: Period) -> tuple[Trouble, ...]:
    """One `Trouble` a camera and issue from the events of issues (camera, issue, cause, start_at, end_at)."""
    found: dict[tuple[str, str], Trouble] = {}
    for row in rows:
        begin = max(row["start_at"], period.from_ms)
        end = min(period.to_ms if row["end_at"] is None else row["end_at"], period.to_ms)
        if begin > end or row["start_at"] >= period.to_ms:
            continue
        known = found.get((row["camera"], row["issue"]))
        found[row["camera"], row["issue"]] = Trouble(
            camera=row["camera"],
            issue=row["issue"],
            cause=row["cause"] or (known.cause if known else ""),
            times=(known.times if known else 0) + 1,
            length_ms=(known.length_ms if known else 0) + end - begin,
            since=row["start_at"] if row["end_at"] is None else (known.since if known else None),
        )
    return tuple(found.values())


def _clock(at_ms: int, period: Period, zone: tzinfo) -> str:
    """The time of day, with the date unless it is that of the summary."""
    local = datetime.fromtimestamp(at_ms / 1000, zone)
    return f"{local:%H:%M}" if local.date().isoformat() == period.day else f"{local:%m/%d %H:%M}"


def _heading(name: Phrase, count: int, language: Language) -> str:
    if not count:
        return _in(Phrase(f"■ {name.ja}：なし", f"{name.en}: none"), language)
    return _in(Phrase(f"■ {name.ja}（{count} 件）", f"{name.en} ({count})"), language)


def _more(count: int, language: Language) -> list[str]:
    return [_bullet(_in(Phrase(f"ほか {count} 件", f"{count} more"), language), language)] if count > 0 else []


def _bullet(line: str, language: Language) -> str:
    return f"・{line}" if language is Language.JA else f"- {line}"


def _in(phrase: Phrase, language: Language) -> str:
    return phrase.ja if language is Language.JA else phrase.en
