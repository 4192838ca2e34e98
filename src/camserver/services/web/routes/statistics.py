"""Figures by hour or day."""

from dataclasses import asdict
from typing import Literal

from camserver.base.errors import BadInput
from camserver.domain.people import Permission
from camserver.domain.statistics import HOUR_MS, Bucket, hour_of
from camserver.services.web.calls import TheCall
from camserver.services.web.routes.filters import CameraIds, From, SiteName, To, check_times
from camserver.services.web.routing import Routes
from camserver.store import camera_filters, statistics
from camserver.store.statistics import StatisticsFilter
from camserver.wire import api

routes = Routes()

DAY_MS = 24 * HOUR_MS
# What is shown when no time is named, and the most that one answer holds.
USUAL_MS = {"hour": DAY_MS, "day": 30 * DAY_MS}
LONGEST_MS = {"hour": 32 * DAY_MS, "day": 367 * DAY_MS}


@routes.get("/api/statistics", Permission.READ)
async def get_statistics(
    call: TheCall,
    by: Literal["hour", "day"] = "hour",
    from_ms: From = None,
    to_ms: To = None,
    site: SiteName = None,
    camera_ids: CameraIds = [],  # noqa: B006 - read by FastAPI, which gives each call its own
) -> api.Statistics:
    """Looks, detections and events of the cameras that are asked for, all together, by hour (at most 32 days) or day
    (at most 367). Without times: the last 24 hours, or 30 days."""
    check_times(from_ms, to_ms)
    end_ms = call.now_ms + 1 if to_ms is None else to_ms
    begin_ms = hour_of(max(0, end_ms - USUAL_MS[by])) if from_ms is None else from_ms
    if end_ms - begin_ms > LONGEST_MS[by]:
        raise BadInput(
            f"at most {LONGEST_MS[by] // DAY_MS} days by {by} are answered at once; ask for less",
            reason="span_too_long",
            days=LONGEST_MS[by] // DAY_MS,
        )
    if site is not None:
        await call.store.read(camera_filters.keys_of_sites, [site])
    wanted = StatisticsFilter(begin_ms, end_ms, site, tuple(camera_ids))
    buckets = await call.store.read(statistics.read, wanted, by)
    return api.Statistics(by=by, from_at=begin_ms, to_at=end_ms, buckets=[_shown(bucket) for bucket in buckets])


def _shown(bucket: Bucket) -> api.StatisticsBucket:
    return api.StatisticsBucket(start_at=bucket.start_at, day=bucket.day, **asdict(bucket.counts))
