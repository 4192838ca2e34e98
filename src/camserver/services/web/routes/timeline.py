"""The time of many cameras at a glance, and of one camera: when it was looked at, and what it saw."""

from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Annotated

from fastapi import Path, Query

from camserver.base.errors import BadInput
from camserver.base.zones import zone_of
from camserver.domain.people import Permission
from camserver.domain.phrases import pause_phrase
from camserver.domain.statistics import HOUR_MS, hour_of
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import active_vocabulary
from camserver.services.web.looks import note_listed
from camserver.services.web.routes.filters import CameraIds, Cursor, From, SiteNames, To, check_times
from camserver.services.web.routes.frames import shown_frame
from camserver.services.web.routing import Routes
from camserver.store import frame_pages, hourly_stats, timelines
from camserver.store.frame_pages import CameraFrames
from camserver.store.timelines import Span, TimelineFilter
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
BUCKETS_MS = {"5m": 300_000, "15m": 900_000, "1h": HOUR_MS}
# A day has up to 25 hours, and may begin within one.
LONGEST_HOURS = {"5m": 12, "15m": 26, "1h": 96}
LOOKS_LONGEST_HOURS = 50

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
Day = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="YYYY-MM-DD by the cameras' own time; or `from`, `to`."
    ),
]


@routes.get("/api/timeline", Permission.READ)
async def get_timeline(
    call: TheCall,
    day: Day = None,
    from_ms: From = None,
    to_ms: To = None,
    bucket: api.TimelineBucket = "15m",
    sites: SiteNames = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    camera_ids: CameraIds = [],  # noqa: B006 - as above
    after: Annotated[str, Query(max_length=64)] = "",
) -> api.Timeline:
    """Up to 200 cameras in the order of their ids, each with whether it looked, the gravest it saw and how many
    events began, by buckets of 5 minutes (at most 12 hours), 15 minutes (26 hours) or an hour (96 hours). Times are
    widened to whole hours. Without times: the last 24 hours. A day is that of the time zone of most of the cameras
    asked for, and `timezone` says which."""
    zone = None if day is None else await call.store.read(timelines.zone, sites, camera_ids)
    begin_ms, end_ms = _span(call, day, zone, from_ms, to_ms)
    _check_length(begin_ms, end_ms, LONGEST_HOURS[bucket])
    wanted = TimelineFilter(tuple(sites), tuple(camera_ids), after)
    span = Span(begin_ms, end_ms, BUCKETS_MS[bucket])
    counted_to_ms = await call.web.store.read(hourly_stats.counted_to, call.now_ms)
    found = await call.store.read(timelines.read, wanted, span, counted_to_ms, call.now_ms)
    return api.Timeline(
        from_at=begin_ms,
        to_at=end_ms,
        timezone=zone,
        bucket_ms=span.bucket_ms,
        counted_until=found.counted_until,
        cameras=[
            api.TimelineCamera(
                camera_id=one.camera_id,
                camera_name=one.name,
                site=one.site,
                looked=one.strip.looked,
                severity=one.strip.severity,
                events=list(one.strip.events),
            )
            for one in found.cameras
        ],
        next_after=found.next_after,
    )


@routes.get("/api/cameras/{camera_id}/looks", Permission.READ)
async def get_camera_looks(
    call: TheCall, camera_id: CameraId, day: Day = None, from_ms: From = None, to_ms: To = None
) -> api.CameraLooks:
    """Whether a camera was looked at: its hours (at most 50) with looks, failures and kept pictures, and the time in
    which nobody looked. Times are widened to whole hours. Without times: the last 24 hours. A day is that of the
    camera's own site."""
    zone = None if day is None else await call.store.read(timelines.zone, [], [camera_id])
    begin_ms, end_ms = _span(call, day, zone, from_ms, to_ms)
    _check_length(begin_ms, end_ms, LOOKS_LONGEST_HOURS)
    default_sec = call.web.settings.looks.polling_interval_sec
    counted_to_ms = await call.web.store.read(hourly_stats.counted_to, call.now_ms)
    found = await call.store.read(
        timelines.looks, camera_id, begin_ms, end_ms, default_sec, counted_to_ms, call.now_ms
    )
    return api.CameraLooks(
        camera_id=camera_id,
        from_at=begin_ms,
        to_at=end_ms,
        timezone=zone,
        interval_ms=found.interval_ms,
        counted_until=found.counted_until,
        hours=[api.LookHour.model_validate(asdict(hour)) for hour in found.hours],
        gaps=[
            api.LookGap(start_at=gap.start_at, end_at=gap.end_at, cause=_cause(gap.cause) if gap.cause else None)
            for gap in found.gaps
        ],
        pauses=[
            api.LookPause(start_at=one.start_at, end_at=one.end_at, cause=_cause(one.cause)) for one in found.pauses
        ],
    )


@routes.get("/api/cameras/{camera_id}/frames", Permission.READ)
async def list_camera_frames(
    call: TheCall,
    camera_id: CameraId,
    from_ms: From = None,
    to_ms: To = None,
    only: api.FramesOnly = "all",
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=frame_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.CameraFramePage:
    """A camera's frames, newest first, whatever came of them: `only` those with pictures, quiet ones (kept though
    nothing happened) or failed looks. A page may be short and still name where to go on."""
    check_times(from_ms, to_ms)
    wanted = CameraFrames(camera_id, from_ms, to_ms, only)
    found, next_before = await call.store.read(frame_pages.of_camera, wanted, before, limit)
    vocabulary = await active_vocabulary(call)
    await note_listed(call, "frame", vocabulary, [tag for frame in found for tag in frame.tags])
    return api.CameraFramePage(frames=[shown_frame(vocabulary, frame) for frame in found], next_before=next_before)


def _cause(cause: str) -> api.Label:
    phrase = pause_phrase(cause)
    return api.Label(id=cause, label_ja=phrase.ja, label_en=phrase.en)


def _span(
    call: TheCall, day: str | None, zone: str | None, from_ms: int | None, to_ms: int | None
) -> tuple[int, int]:
    """From and to, as bounds of hours. A day is meant in `zone`."""
    if day is not None and zone is not None:
        if from_ms is not None or to_ms is not None:
            raise BadInput("give `day`, or `from` and `to`", reason="day_or_times", fields=["day", "from", "to"])
        from_ms, to_ms = _of_day(day, zone)
    if to_ms is None:
        to_ms = call.now_ms + 1 if from_ms is None else from_ms + 24 * HOUR_MS
    if from_ms is None:
        from_ms = max(0, to_ms - 24 * HOUR_MS)
    check_times(from_ms, to_ms)
    return hour_of(from_ms), hour_of(to_ms - 1) + HOUR_MS


def _of_day(day: str, zone: str) -> tuple[int, int]:
    try:
        first = date.fromisoformat(day)
        bounds = [datetime(one.year, one.month, one.day, tzinfo=zone_of(zone)) for one in (first, first + _DAY)]
        begin_ms, end_ms = (int(bound.timestamp() * 1000) for bound in bounds)
    except (ValueError, OverflowError):
        raise BadInput(f"there is no day {day}", reason="no_day", field="day") from None
    if begin_ms < 0:
        raise BadInput(f"there is no day {day}", reason="no_day", field="day")
    return begin_ms, end_ms


_DAY = timedelta(days=1)


def _check_length(begin_ms: int, end_ms: int, hours_max: int) -> None:
    if end_ms - begin_ms > hours_max * HOUR_MS:
        raise BadInput(
            f"at most {hours_max} hours are answered at once; ask for less, or for larger buckets",
            reason="hours_too_long",
            hours=hours_max,
            fields=["from", "to"],
        )
