"""Searching events, the time of cameras at a glance, and whether cameras were looked at."""

from typing import Literal

from camserver.wire.api.events import Event, Frame
from camserver.wire.api.shapes import Answer, Label

TimelineBucket = Literal["5m", "15m", "1h"]
FramesOnly = Literal["all", "pictures", "quiet", "failed"]


class SearchPassage(Answer):
    """Where a text was found: in the memo of a language model, or in a note of a case that the event is in."""

    kind: Literal["memo", "note"]
    case_uuid: str | None  # of a note
    excerpt: str


class FoundEvent(Event):
    unknown: bool  # something was seen that nobody could name
    reviewed_at: int | None  # when the reader reviewed its incident; null when they did not, or it grew since
    passages: list[SearchPassage]  # of a search by text


class SearchPage(Answer):
    """`next_before` may be there though the page is short or empty: a search looks at a bounded number of events at a
    time, and goes on from there."""

    events: list[FoundEvent]
    next_before: str | None  # asked again as `before`; null when there is nothing more
    is_cut: bool  # more cases have the text than were followed


class FacetValue(Answer):
    """`value` is what the filter of that name takes. Of a severity only events of exactly that one are counted, where
    `severity_min` takes those above it, too."""

    value: str
    label_ja: str
    label_en: str
    count: int


class SearchFacets(Answer):
    """Counts over the newest `counted` events that fit the filters; `counted_max` is the most that are counted."""

    counted: int
    counted_max: int
    is_complete: bool  # no others fit
    oldest_at: int | None  # when the oldest counted began
    sites: list[FacetValue]
    cameras: list[FacetValue]
    primary_events: list[FacetValue]
    tags: list[FacetValue]
    severities: list[FacetValue]
    unknown: list[FacetValue]
    scores: list[FacetValue]  # categories that events rather fit (0.5 and more), for people who may investigate
    days: list[FacetValue]  # YYYY-MM-DD by the sites' own time, newest first


class TimelineCamera(Answer):
    """A camera's time, a letter for each bucket.

    `looked`: o looks worked, x all failed, m some failed, . nobody looked, w nobody looked because its device bears
    one stream and was watched live, ? not counted yet, or before the camera was there. `severity`: 0 to 3, the
    gravest of what was seen. `events`: pairs of a bucket and how many events began in it.
    """

    camera_id: str
    camera_name: str
    site: str
    looked: str
    severity: str
    events: list[tuple[int, int]]


class Timeline(Answer):
    from_at: int
    to_at: int  # not included
    timezone: str | None  # that `day` was meant in; null when times were asked for
    bucket_ms: int
    counted_until: int  # what happened later may be missing
    cameras: list[TimelineCamera]
    next_after: str | None  # asked again as `after`; null on the last page


class LookHour(Answer):
    """An hour of a camera. `pictures` are those still kept, `quiet` those of them on which nothing happened."""

    hour_at: int
    looks: int
    looks_failed: int
    lost: int  # looks that were made and never arrived
    analyzed: int
    detected: int
    events: int
    severity_max: int
    pictures: int
    quiet: int


class LookGap(Answer):
    """Time in which nobody looked, to five minutes."""

    start_at: int
    end_at: int  # not included
    cause: Label | None = None  # why, where looks were put off for most of it


class LookPause(Answer):
    """Time in which looks were put off through no fault of the camera, exactly."""

    start_at: int
    end_at: int  # not included
    cause: Label


class CameraLooks(Answer):
    camera_id: str
    from_at: int
    to_at: int  # not included
    timezone: str | None  # the site's, in which `day` was meant; null when times were asked for
    interval_ms: int  # between two looks, as it is set now
    counted_until: int
    hours: list[LookHour]
    gaps: list[LookGap]
    pauses: list[LookPause]


class CameraFramePage(Answer):
    frames: list[Frame]
    next_before: str | None  # asked again as `before`; null when there is nothing more
