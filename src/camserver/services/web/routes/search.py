"""Searching events, and how those found fall upon sites, cameras and the like."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Response

from camserver.domain.people import Permission
from camserver.domain.scoring_sheets import CONDITIONS_MAX, parse_condition
from camserver.domain.texts import QUERY_MAX_CHARS
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import (
    PlainTags,
    active_vocabulary,
    plain_cause,
    plain_issue,
    plain_tags_of,
    shown_primary_event,
    shown_tags,
)
from camserver.services.web.looks import note_listed
from camserver.services.web.plain_answers import plain_answer
from camserver.services.web.routes.filters import (
    CameraIds,
    Cursor,
    From,
    PrimaryEvents,
    SeverityMin,
    SiteNames,
    TagIds,
    To,
    check_times,
    check_zone,
)
from camserver.services.web.routing import Routes
from camserver.store import event_search
from camserver.store.cameras import public_camera_id
from camserver.store.event_pages import EventRow
from camserver.store.event_search import FoundEvent, Passage, SearchFilter
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
TAGS_MAX = 10


async def _asked(
    from_ms: From = None,
    to_ms: To = None,
    sites: SiteNames = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    camera_ids: CameraIds = [],  # noqa: B006 - as above
    primary_events: PrimaryEvents = [],  # noqa: B006 - as above
    tags: Annotated[TagIds, Query(alias="tag", max_length=TAGS_MAX, description="All of them.")] = [],  # noqa: B006
    severity_min: SeverityMin = 0,
    unknown: Annotated[bool | None, Query(description="Only events with, or without, something unknown.")] = None,
    case: Annotated[
        str | None, Query(pattern=api.UUID_PATTERN, description="For people who may investigate.")
    ] = None,
    text: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=QUERY_MAX_CHARS,
            description="Words in memos and in notes of cases, all of them. For people who may investigate.",
        ),
    ] = None,
    scores: Annotated[
        list[Annotated[str, Query(max_length=220)]],
        Query(
            alias="score",
            max_length=CONDITIONS_MAX,
            description="What a language model scored events at, as category>=0.8; all of them. For people who may "
            "investigate.",
        ),
    ] = [],  # noqa: B006 - as above
) -> SearchFilter:
    check_times(from_ms, to_ms)
    return SearchFilter(
        from_ms=from_ms,
        to_ms=to_ms,
        sites=tuple(sites),
        camera_ids=tuple(camera_ids),
        primary_events=tuple(primary_events),
        tags=tuple(tags),
        severity_min=severity_min,
        unknown=unknown,
        case_uuid=case,
        text=text,
        scores=tuple(parse_condition(one) for one in scores),
    )


Asked = Annotated[SearchFilter, Depends(_asked)]


@routes.get("/api/search", Permission.READ, response_model=api.SearchPage)
async def search_events(
    call: TheCall,
    asked: Asked,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=event_search.PAGE_MAX)] = PAGE_USUAL,
) -> Response:
    """Events that fit all filters, by the time they began, newest first. Several values of a filter are alternatives,
    except tags: an event has all of them."""
    page = await call.store.read(event_search.search, asked, before, limit)
    vocabulary = await active_vocabulary(call)
    tags = (tag for row in page.rows for tag in row.tag_ids)
    await note_listed(call, "event", vocabulary, tags, any(page.passages.values()))
    known = plain_tags_of(vocabulary)
    return plain_answer(
        api.SearchPage,
        {
            "events": [_with_passages(known, found) for found in page.found]
            if page.passages
            else known.written(_plain).of(page.rows),
            "next_before": page.next_before,
            "is_cut": page.is_cut,
        },
    )


@routes.get("/api/search/facets", Permission.READ)
async def count_facets(
    call: TheCall,
    asked: Asked,
    timezone: Annotated[
        str | None,
        Query(min_length=1, max_length=64, description="Counts days by this zone instead of each site's own."),
    ] = None,
) -> api.SearchFacets:
    """How many of the newest events that fit all filters are of each site, camera, primary event, tag, severity and
    day."""
    check_zone(timezone)
    found = await call.store.read(event_search.facets, asked, timezone)
    vocabulary = await active_vocabulary(call)
    by_name = found.facets
    is_by_memo = asked.text is not None or asked.case_uuid is not None or bool(asked.scores)
    await note_listed(call, "event", vocabulary, [one.value for one in by_name["tag"]], is_by_memo)
    return api.SearchFacets(
        counted=found.counted,
        counted_max=event_search.FACETS_MAX,
        is_complete=found.is_complete,
        oldest_at=found.oldest_at,
        sites=_values(by_name["site"]),
        cameras=_values(by_name["camera"]),
        primary_events=[_labelled(one, shown_primary_event(one.value)) for one in by_name["primary_event"]],
        tags=[_labelled(one, shown_tags(vocabulary, [one.value])[0]) for one in by_name["tag"]],
        severities=_values(by_name["severity"]),
        unknown=_values(by_name["unknown"]),
        scores=_values(by_name["score"]),
        days=_values(by_name["day"]),
    )


def _with_passages(known: PlainTags, found: FoundEvent) -> dict[str, Any]:
    return {**_plain(known, found.row), "passages": [_plain_passage(one) for one in found.passages]}


def _plain(known: PlainTags, row: EventRow) -> dict[str, Any]:
    """What `api.FoundEvent` would be, of a search without a text. The row is taken apart at once: by name, each field
    would be looked for."""
    (
        _,
        event_uuid,
        state,
        primary_event,
        start_at,
        last_seen_at,
        end_at,
        severity_max,
        confidence_max,
        frame_count,
        retention_class,
        subject,
        cause,
        camera_id,
        camera_name,
        site,
        incident_uuid,
        best_frame_uuid,
        unknown_flag,
        reviewed_at,
        tags,
    ) = row
    return {
        "event_uuid": event_uuid,
        "state": state,
        "primary_event": primary_event,
        "start_at": start_at,
        "last_seen_at": last_seen_at,
        "end_at": end_at,
        "severity_max": severity_max,
        "confidence_max": confidence_max,
        "frame_count": frame_count,
        "retention_class": retention_class,
        "cause": plain_cause(cause),
        "camera_id": public_camera_id(camera_id),
        "camera_name": camera_name,
        "site": site,
        "incident_uuid": incident_uuid,
        "best_frame_uuid": best_frame_uuid,
        "reviewed_at": reviewed_at,
        "tags": known.of_text(tags) if tags else [],
        "issue": plain_issue(subject) if subject else None,
        "unknown": unknown_flag == 1,
        "passages": [],
    }


def _plain_passage(one: Passage) -> dict[str, Any]:
    return {"kind": one.kind, "case_uuid": one.case_uuid, "excerpt": one.excerpt}


def _values(found: Sequence[event_search.FacetValue]) -> list[api.FacetValue]:
    return [api.FacetValue(value=one.value, label_ja=one.label, label_en=one.label, count=one.count) for one in found]


def _labelled(one: event_search.FacetValue, label: api.Label) -> api.FacetValue:
    return api.FacetValue(value=one.value, label_ja=label.label_ja, label_en=label.label_en, count=one.count)
