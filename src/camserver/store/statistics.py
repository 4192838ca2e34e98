"""Hourly figures as people read them: by hour or day, within the principal's tenant and sites."""

import json
from dataclasses import dataclass

from camserver.base.zones import zone_of
from camserver.domain.statistics import Bucket, Counts, by_day, by_hour
from camserver.store import camera_filters
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class StatisticsFilter:
    """Hours that began within; what is left out does not narrow."""

    from_ms: int
    to_ms: int  # not included
    site: str | None = None  # its name
    camera_ids: tuple[str, ...] = ()


async def read(tx: Scoped, wanted: StatisticsFilter, by: str) -> tuple[Bucket, ...]:
    """`by` is hour or day. Only hours in which something was counted are there."""
    await camera_filters.check_known(tx, wanted.camera_ids)
    clauses, params = _narrowed(wanted)
    params |= {"from_ms": wanted.from_ms, "to_ms": wanted.to_ms}
    hours = [
        (
            row["hour_at"],
            zone_of(row["timezone"]),
            Counts(
                looks=int(row["looks"]),
                looks_failed=int(row["looks_failed"]),
                analyzed=int(row["analyzed"]),
                detected=int(row["detected"]),
                unknown=int(row["unknown_ones"]),
                events=int(row["events"]),
                severity_max=int(row["severity_max"]),
                bytes=int(row["picture_bytes"]),
            ),
        )
        for row in await tx.all(_SUMS.format(clauses=clauses), **params)
    ]
    for row in await tx.all(_BY_EVENT.format(clauses=clauses), **params):
        times = row["times"]
        by_event = {name: count * times for name, count in json.loads(row["by_event"] or "{}").items()}
        hours.append((row["hour_at"], zone_of(row["timezone"]), Counts(by_event=by_event)))
    return by_day(hours) if by == "day" else by_hour(hours)


def _narrowed(wanted: StatisticsFilter) -> tuple[str, dict[str, object]]:
    clauses, params = "", dict[str, object]()
    if wanted.site is not None:
        clauses += " AND s.name = :site"
        params["site"] = wanted.site
    if wanted.camera_ids:
        clauses += " AND c.camera_id IN (:camera_ids...)"
        params["camera_ids"] = list(wanted.camera_ids)
    return clauses, params


_FROM = """
FROM hourly_stats h JOIN cameras c ON c.camera_key = h.camera_key JOIN sites s ON s.site_id = c.site_id
WHERE h.tenant_id = :tenant_id AND IN_REACH(c)
  AND h.hour_at >= :from_ms AND h.hour_at < :to_ms{clauses}"""
_SUMS = f"""
SELECT h.hour_at, s.timezone, SUM(h.looks) AS looks, SUM(h.looks_failed) AS looks_failed, SUM(h.analyzed) AS analyzed,
  SUM(h.detected) AS detected, SUM(h.unknown) AS unknown_ones, SUM(h.events) AS events,
  MAX(h.severity_max) AS severity_max, SUM(h.bytes) AS picture_bytes{_FROM}
GROUP BY h.hour_at, s.timezone"""
# Few hours have events, and most of those the same ones.
_BY_EVENT = f"""
SELECT h.hour_at, s.timezone, h.by_event, COUNT(*) AS times{_FROM} AND h.events > 0
GROUP BY h.hour_at, s.timezone, h.by_event"""
