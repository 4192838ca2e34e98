"""Searching events: by time, place, what was seen, case and text, with counts for each facet.

Within the principal's tenant and sites. Tags for investigation only neither show nor narrow for those who may not
investigate, and only those who may search by case and by text (notes of cases, memos of the language model).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from camserver.base.errors import Forbidden
from camserver.base.records import record
from camserver.base.zones import zone_of
from camserver.domain.people import Permission
from camserver.domain.scoring_sheets import ScoreCondition
from camserver.domain.texts import Query, excerpt, matches, parse_query
from camserver.store import camera_filters, cases, event_pages, search_texts
from camserver.store.event_pages import EventRow, EventSummary, summary_of
from camserver.store.event_paths import Wanted
from camserver.store.event_walks import END, KEYS, LISTED_MAX, Place, Shown, Walk, joined, only, walk
from camserver.store.hidden_tags import hidden_group
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.sql import Dialect
from camserver.store.tx import F, Scoped

PAGE_MAX = 200
# Facets are counted over the newest events that are asked for, up to this many.
FACETS_MAX = 1_000
FACET_VALUES_MAX = 200
PASSAGES_MAX = 3
# Wherever a day begins, it begins with a quarter of an hour: in India at 18:30 UTC, in Nepal at 18:15.
QUARTER_MS = 900_000
# From this score on an event counts for a category.
RATHER = 0.5


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What is asked for, in public names; what is left out does not narrow. Times are of an event's beginning.

    Several values of one are alternatives, except tags: an event must have all of them.
    """

    from_ms: int | None = None
    to_ms: int | None = None  # not included
    sites: tuple[str, ...] = ()  # names
    camera_ids: tuple[str, ...] = ()
    primary_events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    severity_min: int = 0
    unknown: bool | None = None
    case_uuid: str | None = None
    text: str | None = None
    scores: tuple[ScoreCondition, ...] = ()  # all of them


@dataclass(frozen=True, slots=True)
class Passage:
    """Where a text was found."""

    kind: str  # memo, note
    case_uuid: str | None  # of a note
    excerpt: str


@record
class FoundEvent:
    row: EventRow
    passages: tuple[Passage, ...]  # of a search by text

    @property
    def event(self) -> EventSummary:
        return summary_of(self.row)

    @property
    def unknown(self) -> bool:
        return self.row.unknown_flag == 1

    @property
    def reviewed_at(self) -> int | None:
        """When the reader reviewed its incident, if that holds."""
        return self.row.reviewed_at


@dataclass(frozen=True, slots=True)
class SearchPage:
    rows: Sequence[EventRow]
    passages: Mapping[int, tuple[Passage, ...]]  # by event_id, of a search by text
    # Where the next page begins; None: there is nothing more. There may be more though this page is short.
    next_before: str | None
    is_cut: bool  # more cases have the text than were followed

    @property
    def found(self) -> tuple[FoundEvent, ...]:
        return tuple([FoundEvent(row, self.passages.get(row.event_id, ())) for row in self.rows])


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str
    label: str  # a camera's name; else the value
    count: int


@dataclass(frozen=True, slots=True)
class Facets:
    """Counts over the newest `counted` events that are asked for. `is_complete`: there are no others."""

    counted: int
    is_complete: bool
    oldest_at: int | None  # when the oldest counted began
    facets: Mapping[str, tuple[FacetValue, ...]]


@dataclass(slots=True)
class _Asked:
    """A search with what its names stand for."""

    wanted: Wanted
    query: Query | None = None
    noted: dict[int, str] = field(default_factory=dict)  # note by case
    noted_events: dict[int, list[int]] = field(default_factory=dict)  # cases by event
    is_cut: bool = False


async def search(tx: Scoped, asked: SearchFilter, before: str | None, limit: int) -> SearchPage:
    """The newest events that are asked for, from behind a place."""
    place = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.EVENTS, before)
    most = min(limit, PAGE_MAX)
    known = await _known(tx, asked)
    found = await _walked(tx, known, place, event_pages.found(tx), most)
    passages = await _passages(tx, known, found.rows)
    return SearchPage(
        found.rows,
        passages,
        None if found.reached == END else make_cursor(Listed.EVENTS, *found.reached),
        known.is_cut,
    )


@dataclass(frozen=True, slots=True)
class KeyPage:
    event_ids: tuple[int, ...]
    next_before: str | None


async def keys(tx: Scoped, asked: SearchFilter, before: str | None, limit: int) -> KeyPage:
    """The same as `search`, by inside keys."""
    place = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.EVENTS, before)
    known = await _known(tx, asked)
    found = await _walked(tx, known, place, KEYS, min(limit, FACETS_MAX))
    return KeyPage(
        tuple(row.event_id for row in found.rows),
        None if found.reached == END else make_cursor(Listed.EVENTS, *found.reached),
    )


async def _walked(tx: Scoped, known: _Asked, before: Place, shown: Shown[F], most: int) -> Walk[F]:
    """Events with the text in their memo, or in a note of a case that they are in."""
    if known.query is None:
        return await walk(tx, known.wanted, before, shown, most)
    by_note = only(known.wanted, tuple(known.noted_events))
    if known.wanted.event_ids is not None:
        by_note = only(known.wanted, tuple(set(known.noted_events) & set(known.wanted.event_ids)))
    walks = [await walk(tx, each, before, shown, most) for each in (known.wanted, by_note)]
    return joined(walks, shown.place, most)


async def _known(tx: Scoped, asked: SearchFilter) -> _Asked:
    investigating = {"case": asked.case_uuid is not None, "text": asked.text is not None, "score": bool(asked.scores)}
    for name, is_asked in investigating.items():
        if is_asked:
            _require_investigator(tx, name)
    query = None if asked.text is None else parse_query(asked.text)
    event_ids: tuple[int, ...] | None = None
    if asked.case_uuid is not None:
        case_id = await cases.key_of(tx, asked.case_uuid)
        event_ids = tuple((await _events_of_cases(tx, [case_id]))[0])
    wanted = Wanted(
        from_ms=asked.from_ms,
        to_ms=asked.to_ms,
        site_ids=tuple(await camera_filters.keys_of_sites(tx, asked.sites)),
        camera_keys=tuple(await camera_filters.keys_of(tx, asked.camera_ids)),
        primary_events=tuple(dict.fromkeys(asked.primary_events)),
        tags=tuple(dict.fromkeys(asked.tags)),
        severity_min=asked.severity_min,
        unknown=asked.unknown,
        event_ids=event_ids,
        memo=query,
        hidden_group=hidden_group(tx),
        scores=asked.scores,
    )
    known = _Asked(wanted, query)
    if query is not None:
        known.noted, known.is_cut = await search_texts.cases_noted(tx, query)
        known.noted_events, are_cut = await _events_of_cases(tx, sorted(known.noted))
        known.is_cut |= are_cut
    return known


def _require_investigator(tx: Scoped, field_name: str) -> None:
    if not tx.principal.may(Permission.INVESTIGATE):
        raise Forbidden(
            f"searching by {field_name} is for people who may investigate; leave `{field_name}` out",
            reason="search_investigates",
            field=field_name,
            permission=Permission.INVESTIGATE.value,
        )


async def _events_of_cases(tx: Scoped, case_ids: Sequence[int]) -> tuple[dict[int, list[int]], bool]:
    """The events that cases hold, themselves or by their clip or a frame, each with its cases; the newest ones, and
    whether the cases may hold more. One case never holds more than are followed."""
    if not case_ids:
        return {}, False
    rows = await tx.all(
        "SELECT i.case_id, COALESCE(f.event_id, k.event_id, e.event_id) AS event_id FROM case_items i "
        "LEFT JOIN frames f ON i.kind = 'frame' AND f.frame_id = i.object_id "
        "LEFT JOIN clips k ON i.kind = 'clip' AND k.clip_id = i.object_id "
        "LEFT JOIN events e ON i.kind = 'event' AND e.event_id = i.object_id "
        "WHERE i.tenant_id = :tenant_id AND i.case_id IN (:case_ids...) "
        f"ORDER BY i.happened_at DESC, i.item_id DESC LIMIT {LISTED_MAX}",
        case_ids=list(case_ids),
    )
    found: dict[int, list[int]] = {}
    for row in rows:
        if row["event_id"] is not None:
            found.setdefault(row["event_id"], []).append(row["case_id"])
    return found, len(rows) >= LISTED_MAX


# `+tenant_id` in what is asked for by key: without it SQLite would rather walk through all of the tenant's rows.


async def _passages(tx: Scoped, known: _Asked, rows: Sequence[EventRow]) -> dict[int, tuple[Passage, ...]]:
    """Where the text was found. Only asked for those who may see it: `_known` refuses the others."""
    if known.query is None or not rows:
        return {}
    event_ids = [row.event_id for row in rows]
    found: dict[int, list[Passage]] = {event_id: [] for event_id in event_ids}
    for row in await tx.all(
        "SELECT event_id, memo FROM llm_reviews WHERE +tenant_id = :tenant_id AND event_id IN (:event_ids...)",
        event_ids=event_ids,
    ):
        if matches(known.query, row["memo"]):
            found[row["event_id"]].append(Passage(search_texts.MEMO, None, excerpt(known.query, row["memo"])))
    cases_of = {one: list(dict.fromkeys(known.noted_events.get(one, ())))[:PASSAGES_MAX] for one in event_ids}
    uuids = await _case_uuids(tx, {case_id for case_ids in cases_of.values() for case_id in case_ids})
    # Once for each case: of a long note it takes milliseconds, and a whole page may be of one case.
    notes = {
        case_id: Passage(search_texts.NOTE, case_uuid, excerpt(known.query, known.noted[case_id]))
        for case_id, case_uuid in uuids.items()
    }
    for event_id, case_ids in cases_of.items():
        found[event_id] += [notes[case_id] for case_id in case_ids]
    return {event_id: tuple(passages[:PASSAGES_MAX]) for event_id, passages in found.items()}


async def _case_uuids(tx: Scoped, case_ids: Collection[int]) -> dict[int, str]:
    if not case_ids:
        return {}
    rows = await tx.all(
        "SELECT case_id, case_uuid FROM cases WHERE tenant_id = :tenant_id AND case_id IN (:case_ids...)",
        case_ids=sorted(case_ids),
    )
    return {row["case_id"]: row["case_uuid"] for row in rows}


# ---------------------------------------------------------------------------------------------------------------
# Facets
# ---------------------------------------------------------------------------------------------------------------


class _Counted(NamedTuple):
    event_id: int
    start_at: int
    camera_key: int
    site_id: int
    primary_event: str
    severity_max: int
    unknown_flag: int
    tags: str | None  # parted by commas


_COUNTED = {
    dialect: ", ".join(f"e.{name}" for name in _Counted._fields[:-1]) + f", {event_pages.TAGS.on(dialect)} AS tags"
    for dialect in Dialect
}


def _counted(tx: Scoped) -> Shown[_Counted]:
    return Shown(
        _Counted,
        _COUNTED[tx.dialect],
        lambda row: (row.start_at, row.event_id),
        params={"hidden": hidden_group(tx)},
    )


async def facets(tx: Scoped, asked: SearchFilter, timezone: str | None = None) -> Facets:
    """How the newest events that are asked for fall upon sites, cameras, primary events, tags, severities, unknown
    or not, and days: by that time zone, or by their sites' own."""
    known = await _known(tx, asked)
    found = await _walked(tx, known, (BEYOND, BEYOND), _counted(tx), FACETS_MAX)
    rows = found.rows
    cameras = Counter([row.camera_key for row in rows])
    sites = Counter([row.site_id for row in rows])
    camera_names = await _camera_names(tx, cameras)
    site_names = await _site_names(tx, sites)
    quarters = Counter([(row.site_id, row.start_at // QUARTER_MS) for row in rows])
    days: Counter[str] = Counter()
    for (site_id, quarter), count in quarters.items():
        zone = zone_of(timezone or site_names[site_id][1])
        days[datetime.fromtimestamp(quarter * QUARTER_MS / 1000, zone).date().isoformat()] += count
    tags: Counter[str] = Counter()
    for together, count in Counter([row.tags for row in rows if row.tags]).items():
        tags.update(dict.fromkeys(together.split(","), count))
    scores = await _scores(tx, [row.event_id for row in rows])
    return Facets(
        counted=len(rows),
        is_complete=found.reached == END and not known.is_cut,
        oldest_at=rows[-1].start_at if rows else None,
        facets={
            "site": _most({site_names[key][0]: count for key, count in sites.items()}),
            "camera": _most(
                {camera_names[key][0]: count for key, count in cameras.items() if key in camera_names},
                dict(camera_names.values()),
            ),
            "primary_event": _most(Counter([row.primary_event for row in rows])),
            "tag": _most(tags),
            "severity": _most(Counter([str(row.severity_max) for row in rows])),
            "unknown": _most(Counter(["true" if row.unknown_flag else "false" for row in rows])),
            "score": _most(scores),
            "day": tuple(FacetValue(day, day, days[day]) for day in sorted(days, reverse=True)[:FACET_VALUES_MAX]),
        },
    )


async def _scores(tx: Scoped, event_ids: Sequence[int]) -> dict[str, int]:
    """How many events rather fit each category that a model scored them against, for those who may investigate."""
    if not event_ids or not tx.principal.may(Permission.INVESTIGATE):
        return {}
    # Most houses score no events, and telling a database which events takes longer than asking it that.
    if await tx.one("SELECT 1 AS found FROM event_scores WHERE tenant_id = :tenant_id LIMIT 1") is None:
        return {}
    rows = await tx.all(
        "SELECT category, COUNT(*) AS events FROM event_scores WHERE event_id IN (:event_ids...) "
        "AND +tenant_id = :tenant_id AND score >= :least GROUP BY category",
        event_ids=list(event_ids),
        least=RATHER,
    )
    return {row["category"]: row["events"] for row in rows}


def _most(counts: Mapping[str, int], labels: Mapping[str, str] | None = None) -> tuple[FacetValue, ...]:
    """The most frequent first; of the same count in the order of the values."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(
        FacetValue(value, value if labels is None else labels[value], count)
        for value, count in ordered[:FACET_VALUES_MAX]
    )


async def _camera_names(tx: Scoped, camera_keys: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Of those that may be asked for: a removed one is found by no id, and may have left its own to another."""
    rows = await tx.all(
        "SELECT camera_key, camera_id, name FROM cameras WHERE tenant_id = :tenant_id AND deleted_at IS NULL "
        "AND IN_REACH() AND camera_key IN (:counted...)",
        counted=sorted(camera_keys),
    )
    return {row["camera_key"]: (row["camera_id"], row["name"]) for row in rows}


async def _site_names(tx: Scoped, site_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    rows = await tx.all(
        "SELECT site_id, name, timezone FROM sites WHERE tenant_id = :tenant_id AND site_id IN (:site_ids...)",
        site_ids=sorted(site_ids),
    )
    return {row["site_id"]: (row["name"], row["timezone"]) for row in rows}
