"""Figures by hour and day, and the daily summaries."""

from typing import Literal

from camserver.wire.api.shapes import Answer, Label


class StatisticsBucket(Answer):
    """An hour, or a day by the sites' own time (`day`); those in which nothing was counted are left out."""

    start_at: int  # of an hour; of a day, its first counted hour
    day: str | None  # YYYY-MM-DD
    looks: int
    looks_failed: int
    analyzed: int
    detected: int
    unknown: int
    events: int
    severity_max: int
    bytes: int  # of pictures that were kept
    by_event: dict[str, int]  # events by primary event


class Statistics(Answer):
    by: Literal["hour", "day"]
    from_at: int
    to_at: int  # not included
    buckets: list[StatisticsBucket]


class SummaryEvent(Answer):
    event_uuid: str
    camera: str
    primary_event: Label
    severity: int
    start_at: int
    last_seen_at: int


class SummaryCount(Answer):
    primary_event: Label
    count: int


class SummaryTrouble(Answer):
    """An issue of a camera within the time that is summed up."""

    camera: str
    issue: Label
    cause: Label | None
    times: int
    length_ms: int  # of all together
    since: int | None  # when one that had not ended began


class SummaryTotals(Answer):
    cameras: int
    looks: int
    looks_failed: int
    analyzed: int
    detected: int
    events: int
    incidents: int


class Summary(Answer):
    """A site's day as it was told. `title` and `lines` are in the reader's language."""

    site: str
    day: str  # YYYY-MM-DD, of its end
    from_at: int
    to_at: int  # not included
    created_at: int
    late: bool
    title: str
    lines: list[str]
    important: list[SummaryEvent]  # the gravest first; `important_count` may be more
    important_count: int
    ordinary: list[SummaryCount]
    troubles: list[SummaryTrouble]
    totals: SummaryTotals


class SummaryPage(Answer):
    summaries: list[Summary]
    next_before: str | None  # asked again as `before`; null on the last page
