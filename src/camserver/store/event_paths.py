"""What events are searched for by, and the indexes that lead to them: paths to walk along, and what is left to check.

Walking is `event_walks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.scoring_sheets import ScoreCondition
from camserver.domain.texts import Query
from camserver.store import search_texts
from camserver.store.hidden_tags import is_shown
from camserver.store.search_texts import ONE_BY_ONE
from camserver.store.tx import Scoped

SEVERITIES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What events must be, by inside keys. Empty or None does not narrow."""

    from_ms: int | None = None
    to_ms: int | None = None  # not included
    site_ids: tuple[int, ...] = ()
    camera_keys: tuple[int, ...] = ()
    primary_events: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # all of them
    severity_min: int = 0
    unknown: bool | None = None
    event_ids: tuple[int, ...] | None = None  # one of these
    memo: Query | None = None  # its memo holds this
    hidden_group: str = ""  # tags of it do not count
    scores: tuple[ScoreCondition, ...] = ()  # all of them


# Of most indexes the tenant is the first column.
OF_TENANT = "p.tenant_id = :tenant_id"


@dataclass(frozen=True, slots=True)
class Path:
    """An index to walk along. One with several values is not in order: each value's entries are."""

    table: str  # events, event_tags, event_scores, search_tokens
    index: str
    clause: str
    params: dict[str, object]
    is_ordered: bool
    covers: frozenset[str] = frozenset()  # what needs no check any more
    at: str = "start_at"
    key: str = "event_id"
    rank: int = 0  # of two that are equally long the lower is taken
    each: tuple[str, ...] = ()  # of one with several values: a clause for each of them


def paths(tx: Scoped, wanted: Wanted) -> list[Path]:
    """Every path on which all events that are asked for lie."""
    if wanted.event_ids is not None:
        # Few enough to be looked at one by one.
        listed = {"listed": sorted(wanted.event_ids)}
        clause = f"{OF_TENANT} AND p.event_id IN (:listed...)"
        return [Path("events", "", clause, dict(listed), True, frozenset({"event_ids"}))]
    paths = [
        Path(
            "event_tags",
            "ix_event_tags_tag",
            f"{OF_TENANT} AND p.tag_id = :path_tag{_shown('p', wanted)}",
            {"path_tag": tag, "hidden": wanted.hidden_group},
            True,
            frozenset({f"tag:{tag}"}),
            rank=1,
        )
        for tag in wanted.tags
    ]
    if wanted.memo is not None:
        paths += [
            Path(
                "search_tokens",
                "",
                f"{OF_TENANT} AND p.kind = '{search_texts.MEMO}' AND p.token = :path_token",
                {"path_token": token},
                True,
                at="at",
                key="object_id",
            )
            for token in wanted.memo.tokens
        ]
    paths += [
        Path(
            "event_scores",
            "ix_event_scores_category",
            f"{OF_TENANT} AND p.category = :path_category AND p.score {'>=' if one.is_least else '<='} :path_score",
            {"path_category": one.category, "path_score": one.score},
            True,
            frozenset({f"score:{number}"}),
            rank=1,
        )
        for number, one in enumerate(wanted.scores)
    ]
    paths += _paths_by_column(tx, wanted)
    if wanted.from_ms is not None or not paths:
        paths.append(Path("events", "ix_events_tenant_id_start_at", OF_TENANT, {}, True, rank=9))
    return paths


def _shown(alias: str, wanted: Wanted) -> str:
    """For who may see all tags their group is not asked for: all else is in the indexes."""
    return f" AND {is_shown(alias)}" if wanted.hidden_group else ""


def _paths_by_column(tx: Scoped, wanted: Wanted) -> list[Path]:
    # Somebody held to sites, or to cameras, finds their events along these; with both, along everybody's.
    reached, granted = tx.principal.site_ids, tx.principal.camera_keys
    sites = wanted.site_ids or (() if reached is None or granted else tuple(sorted(reached)))
    cameras = wanted.camera_keys or (tuple(sorted(granted)) if reached == frozenset() else ())
    severities = tuple(one for one in SEVERITIES if one >= wanted.severity_min) if wanted.severity_min else ()
    by_column: list[tuple[str, str, Sequence[object], int]] = [
        ("camera_key", "ix_events_camera_key_start_at", cameras, 2),
        ("severity_max", "ix_events_severity_max", severities, 3),
        ("unknown_flag", "ix_events_unknown_flag", (1,) if wanted.unknown else (), 4),
        ("primary_event", "ix_events_primary_event", wanted.primary_events, 5),
        ("site_id", "ix_events_site_id_start_at", sites, 6),
    ]
    return [
        _of_one(column, index, values[0], rank) if len(values) == 1 else _of_many(column, index, values, rank)
        for column, index, values, rank in by_column
        if values
    ]


# An index that does not begin with the tenant is about something that belongs to one. That is asked once, and not of
# each entry, whose row would have to be read for it. Whoever finds an event asks for its tenant besides.
_OWNERS = {"camera_key": "cameras", "site_id": "sites"}


def _held(column: str, compared: str) -> str:
    owner = _OWNERS.get(column)
    if owner is None:
        return f"{OF_TENANT} AND p.{column} {compared}"
    foreign = f"SELECT 1 FROM {owner} o WHERE o.{column} {compared} AND o.tenant_id <> :tenant_id"
    return f"p.{column} {compared} AND NOT EXISTS ({foreign})"


def _of_one(column: str, index: str, value: object, rank: int) -> Path:
    name = f"path_{column}"
    clause = _held(column, f"= :{name}")
    return Path("events", index, clause, {name: value}, True, frozenset({column}), rank=rank)


def _of_many(column: str, index: str, values: Sequence[object], rank: int) -> Path:
    name = f"path_{column}s"
    single = {f"path_{column}_{number}": value for number, value in enumerate(values)}
    return Path(
        "events",
        index,
        _held(column, f"IN (:{name}...)"),
        {name: list(values), **single},
        False,
        frozenset({column}),
        rank=rank,
        each=tuple(_held(column, f"= :{one}") for one in single),
    )


def checks(wanted: Wanted, path: Path, entry: str) -> tuple[str, dict[str, object]]:
    """What is asked of each event on the path, beyond what the path itself says. Reach is always checked.

    What other tables say is asked of the path's entry, by its name, before the event `e` itself is read.
    """
    chosen: list[tuple[str, str, str, object]] = [
        ("site_id", "e.site_id IN (:wanted_sites...)", "wanted_sites", list(wanted.site_ids) or None),
        ("camera_key", "e.camera_key IN (:wanted_cameras...)", "wanted_cameras", list(wanted.camera_keys) or None),
        ("primary_event", "e.primary_event IN (:primary_events...)", "primary_events",
         list(wanted.primary_events) or None),
        ("severity_max", "e.severity_max >= :severity_min", "severity_min", wanted.severity_min or None),
        ("unknown_flag", "e.unknown_flag = :unknown", "unknown",
         None if wanted.unknown is None else int(wanted.unknown)),
        ("event_ids", "e.event_id IN (:event_ids...)", "event_ids",
         None if wanted.event_ids is None else list(wanted.event_ids)),
    ]  # fmt: skip
    # The sites and cameras of a path may be those that are reached, not those that are asked for.
    covered = (
        path.covers - ({"site_id"} if wanted.site_ids else set()) - ({"camera_key"} if wanted.camera_keys else set())
    )
    used = [
        (clause, name, value) for what, clause, name, value in chosen if value is not None and what not in covered
    ]
    clauses = "".join(f" AND {clause}" for clause, _, _ in used)
    params: dict[str, object] = {name: value for _, name, value in used}
    for number, tag in enumerate(one for one in wanted.tags if f"tag:{one}" not in covered):
        clauses += (
            f" AND EXISTS (SELECT 1 FROM event_tags g WHERE g.event_id = {entry}.event_id "
            f"AND g.tag_id = :tag_{number}{_shown('g', wanted)}{ONE_BY_ONE})"
        )
        params |= {f"tag_{number}": tag, "hidden": wanted.hidden_group}
    for number, one in enumerate(wanted.scores):
        if f"score:{number}" not in covered:
            clauses += (
                f" AND EXISTS (SELECT 1 FROM event_scores v WHERE v.event_id = {entry}.event_id AND v.category = "
                f":category_{number} AND v.score {'>=' if one.is_least else '<='} :score_{number}{ONE_BY_ONE})"
            )
            params |= {f"category_{number}": one.category, f"score_{number}": one.score}
    if wanted.memo is not None:
        condition = search_texts.holds(search_texts.MEMO, f"{entry}.event_id", wanted.memo)
        clauses += condition.clauses
        params |= condition.params
    return clauses, params
