"""The daily summaries, as they were told."""

from typing import Annotated, Any

from fastapi import Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import shown_cause, shown_issue, shown_primary_event
from camserver.services.web.messages import Language
from camserver.services.web.routes.filters import Cursor, SiteName
from camserver.services.web.routing import Routes
from camserver.store import camera_filters, summaries
from camserver.store.summaries import Kept
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 14
Day = Annotated[str | None, Query(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="YYYY-MM-DD")]


@routes.get("/api/summaries", Permission.READ)
async def list_summaries(
    call: TheCall,
    site: SiteName = None,
    day: Day = None,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=summaries.PAGE_MAX)] = PAGE_USUAL,
) -> api.SummaryPage:
    """Summaries of sites, newest day first."""
    if site is not None:
        await call.store.read(camera_filters.keys_of_sites, [site])
    found = await call.store.read(summaries.page, site, day, before, limit)
    return api.SummaryPage(
        summaries=[shown_summary(kept, call.language) for kept in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )


def shown_summary(kept: Kept, language: Language) -> api.Summary:
    facts, text = kept.body["facts"], kept.body["texts"][language]
    return api.Summary.model_validate(
        {
            "site": kept.site,
            "day": kept.day,
            "from_at": facts["period"]["from_ms"],
            "to_at": facts["period"]["to_ms"],
            "created_at": kept.created_at,
            "late": facts["late"],
            "title": text["title"],
            "lines": text["lines"],
            "important": [_labelled(one) for one in facts["important"]],
            "important_count": facts["important_count"],
            "ordinary": [
                {"primary_event": shown_primary_event(name), "count": count} for name, count in facts["ordinary"]
            ],
            "troubles": [_trouble(one) for one in facts["troubles"]],
            "totals": facts["totals"],
        }
    )


def _labelled(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "primary_event": shown_primary_event(event["primary_event"])}


def _trouble(trouble: dict[str, Any]) -> dict[str, Any]:
    return {**trouble, "issue": shown_issue(trouble["issue"]), "cause": shown_cause(trouble["cause"])}
