"""Walking along events, newest first, by the index that leads to what is asked for with the fewest steps.

A *path* is an index whose entries are in the order of time: all events, those of a camera, a site, a primary event, a
severity, a tag, a word of a memo. Whatever else is asked for is checked at each event on the path. So that an answer
never takes long, a walk looks at a bounded number of events; where it stopped without having found enough, it says
how far it came, and the next page goes on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from camserver.domain.texts import Query
from camserver.store import search_texts
from camserver.store.paging import BEYOND
from camserver.store.sql import Dialect
from camserver.store.tx import Row, Scoped

# How many events each statement looks at. The first is enough for most pages. No statement takes more at once:
# PostgreSQL would rather read the whole table.
STEPS = (250, 750, 1_000, 1_000, 1_000)
# Up to this the events on a path are counted, to take the shortest.
COUNTED_MAX = 2_000
# A path with several values has no order of its own. It is walked in stretches of time, each longer than the last.
FIRST_STRETCH_MS = 6 * 3_600_000
STRETCH_GROWTH = 4
LISTED_MAX = 2_000

Place = tuple[int, int]  # start_at, event_id
END: Place = (-1, -1)


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


@dataclass(frozen=True, slots=True)
class Path:
    """An index to walk along. One with several values is not in order: each value's entries are."""

    table: str  # events, event_tags, search_tokens
    index: str
    clause: str
    params: dict[str, object]
    is_ordered: bool
    covers: frozenset[str] = frozenset()  # what needs no check any more
    at: str = "start_at"
    key: str = "event_id"
    rank: int = 0  # of two that are equally long the lower is taken


@dataclass(slots=True)
class Walk:
    """What was found, newest first. Nothing from `reached` on is missing; END: there is nothing more."""

    rows: list[Row] = field(default_factory=list)
    reached: Place = END


SEVERITIES = (0, 1, 2, 3)


async def walk(tx: Scoped, wanted: Wanted, before: Place, columns: str, most: int) -> Walk:
    """The newest `most` events before a place, as far as the bound allows. `columns` are of `events e`."""
    if wanted.event_ids == () or tx.principal.reaches_nothing:
        return Walk()
    path = await _shortest(tx, wanted, before)
    checks, params = _checks(wanted, path)
    walked = Walker(tx, path, wanted, columns, checks, {**params, **path.params})
    return await (walked.in_order(before, most) if path.is_ordered else walked.in_stretches(before, most))


@dataclass(slots=True)
class Walker:
    tx: Scoped
    path: Path
    wanted: Wanted
    columns: str
    checks: str
    params: dict[str, object]

    async def in_order(self, before: Place, most: int) -> Walk:
        found = Walk()
        for step in self._steps(most):
            left = most - len(found.rows)
            rows = await self._step(before, self.wanted.from_ms, step, left)
            found.rows += rows
            if len(rows) == left:
                found.reached = (rows[-1]["start_at"], rows[-1]["event_id"])
                return found
            end = await self._end_of_step(before, self.wanted.from_ms, step)
            if end is None:
                found.reached = END
                return found
            found.reached = before = end
        return found

    def _steps(self, most: int) -> tuple[int, ...]:
        """Where every event on the path is asked for, the first step need not be longer than the page."""
        everything = not self.checks and self.tx.principal.site_ids is None
        return (min(_rounded(most), STEPS[0]), *STEPS) if everything else STEPS

    async def in_stretches(self, before: Place, most: int) -> Walk:
        found = Walk()
        oldest, newest = await self._ends()
        looked_at, length = 0, FIRST_STRETCH_MS
        newest = min(before[0], BEYOND if self.wanted.to_ms is None else self.wanted.to_ms, newest + 1)
        while looked_at < sum(STEPS):
            begin = max(newest - length, oldest)
            step, left = STEPS[-1], most - len(found.rows)
            rows = await self._step(before, begin, step, left)
            found.rows += rows
            if len(rows) == left:
                found.reached = (rows[-1]["start_at"], rows[-1]["event_id"])
                return found
            end = await self._end_of_step(before, begin, step)
            if end is not None:
                looked_at += step
                found.reached = before = end
            elif begin <= oldest:
                found.reached = END
                return found
            else:
                # All of the stretch was seen: what comes next is older than all of it.
                found.reached = before = (begin, 0)
                newest, length = begin, length * STRETCH_GROWTH
        return found

    async def _ends(self) -> tuple[int, int]:
        """When the tenant's first and last events began, so that empty time is not walked through."""
        # Two statements: for both at once SQLite reads the whole index.
        oldest, newest = [
            await self.tx.one(f"SELECT {which}(start_at) AS at FROM events WHERE tenant_id = :tenant_id")
            for which in ("MIN", "MAX")
        ]
        if oldest is None or newest is None or oldest["at"] is None or newest["at"] is None:
            return 0, 0
        return max(oldest["at"], self.wanted.from_ms or 0), newest["at"]

    async def _step(self, before: Place, from_ms: int | None, step: int, most: int) -> Sequence[Row]:
        """Those of the next events on the path that are asked for."""
        inner, params = self._inner(before, from_ms)
        text = (
            f"SELECT {self.columns} FROM ({inner} LIMIT {step}) w JOIN events e ON e.event_id = w.event_id "
            f"WHERE e.tenant_id = :tenant_id AND IN_REACH(e){self.checks} "
            f"ORDER BY w.start_at DESC, w.event_id DESC LIMIT {_rounded(most)}"
        )
        # Else the join may be turned around, and all events be read.
        match self.tx.dialect:
            case Dialect.MARIADB:
                text = text.replace("SELECT ", "SELECT STRAIGHT_JOIN ", 1)
            case Dialect.SQLITE:
                text = text.replace(" w JOIN ", " w CROSS JOIN ", 1)
            case Dialect.POSTGRES:
                pass
        rows = await self.tx.all(search_texts.portable(text), **{**self.params, **params})
        return list(rows[:most])

    async def _end_of_step(self, before: Place, from_ms: int | None, step: int) -> Place | None:
        """Where a step of this length ended; None when it came to the end of the path."""
        inner, params = self._inner(before, from_ms)
        row = await self.tx.one(f"{inner} LIMIT 1 OFFSET {step - 1}", **{**self.path.params, **params})
        return None if row is None else (row["start_at"], row["event_id"])

    def _inner(self, before: Place, from_ms: int | None) -> tuple[str, dict[str, object]]:
        path = self.path
        clauses, params = _span(path, self.wanted, before, from_ms)
        return (
            f"SELECT p.{path.at} AS start_at, p.{path.key} AS event_id FROM {_hinted(path, self.tx.dialect)} "
            f"WHERE p.tenant_id = :tenant_id AND {path.clause}{clauses} "
            f"ORDER BY p.{path.at} DESC, p.{path.key} DESC"
        ), params


def _rounded(most: int) -> int:
    """Limits are written into statements (a parameter doubles PostgreSQL's work): few different ones."""
    return next((limit for limit in (51, 101, 201, 1_000) if most <= limit), most)


def _hinted(path: Path, dialect: Dialect) -> str:
    match dialect:
        case Dialect.SQLITE:
            return f"{path.table} p INDEXED BY {path.index}" if path.index else f"{path.table} p"
        case Dialect.MARIADB:
            return f"{path.table} p FORCE INDEX ({path.index or 'PRIMARY'})"
        case Dialect.POSTGRES:
            return f"{path.table} p"


def _span(path: Path, wanted: Wanted, before: Place, from_ms: int | None) -> tuple[str, dict[str, object]]:
    at, key = f"p.{path.at}", f"p.{path.key}"
    clauses = f" AND {at} <= :before_at AND ({at} < :before_at OR {key} < :before_id)"
    params: dict[str, object] = {"before_at": before[0], "before_id": before[1]}
    if wanted.to_ms is not None and wanted.to_ms <= before[0]:
        # The later of the two bounds says nothing more.
        clauses, params = f" AND {at} < :before_at", {"before_at": wanted.to_ms}
    if from_ms is not None:
        clauses += f" AND {at} >= :from_ms"
        params["from_ms"] = from_ms
    return clauses, params


# ---------------------------------------------------------------------------------------------------------------
# Paths
# ---------------------------------------------------------------------------------------------------------------


async def _shortest(tx: Scoped, wanted: Wanted, before: Place) -> Path:
    paths = _paths(tx, wanted)
    if len(paths) == 1:
        return paths[0]
    counted: list[tuple[int, int, Path]] = []
    for path in paths:
        clauses, params = _span(path, wanted, before, wanted.from_ms)
        row = await tx.one(
            f"SELECT COUNT(*) AS events FROM (SELECT 1 AS one FROM {_hinted(path, tx.dialect)} "
            f"WHERE p.tenant_id = :tenant_id AND {path.clause}{clauses} LIMIT {COUNTED_MAX}) q",
            **{**path.params, **params},
        )
        counted.append((0 if row is None else int(row["events"]), path.rank, path))
        if counted[-1][0] == 0:
            break
    return min(counted, key=lambda one: one[:2])[2]


def _paths(tx: Scoped, wanted: Wanted) -> list[Path]:
    """Every path on which all events that are asked for lie."""
    if wanted.event_ids is not None:
        # Few enough to be looked at one by one.
        listed = {"listed": sorted(wanted.event_ids)}
        return [Path("events", "", "p.event_id IN (:listed...)", dict(listed), True, frozenset({"event_ids"}))]
    paths = [
        Path(
            "event_tags",
            "ix_event_tags_tag",
            "p.tag_id = :path_tag AND p.tag_group <> :hidden",
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
                f"p.kind = '{search_texts.MEMO}' AND p.token = :path_token",
                {"path_token": token},
                True,
                frozenset({f"token:{token}"}),
                at="at",
                key="object_id",
            )
            for token in wanted.memo.tokens
        ]
    paths += _paths_by_column(tx, wanted)
    if wanted.from_ms is not None or not paths:
        paths.append(Path("events", "ix_events_tenant_id_start_at", "1 = 1", {}, True, rank=9))
    return paths


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


def _of_one(column: str, index: str, value: object, rank: int) -> Path:
    name = f"path_{column}"
    return Path("events", index, f"p.{column} = :{name}", {name: value}, True, frozenset({column}), rank=rank)


def _of_many(column: str, index: str, values: Sequence[object], rank: int) -> Path:
    name = f"path_{column}s"
    return Path(
        "events", index, f"p.{column} IN (:{name}...)", {name: list(values)}, False, frozenset({column}), rank=rank
    )


def _checks(wanted: Wanted, path: Path) -> tuple[str, dict[str, object]]:
    """What is asked of each event on the path, beyond what the path itself says. Reach is always checked."""
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
            f" AND EXISTS (SELECT 1 FROM event_tags g WHERE g.event_id = e.event_id AND g.tag_id = :tag_{number} "
            "AND g.tag_group <> :hidden)"
        )
        params |= {f"tag_{number}": tag, "hidden": wanted.hidden_group}
    if wanted.memo is not None:
        known = next((token for token in wanted.memo.tokens if f"token:{token}" in covered), None)
        condition = search_texts.holds(search_texts.MEMO, "e.start_at", "e.event_id", wanted.memo, known)
        clauses += condition.clauses
        params |= condition.params
    return clauses, params


# ---------------------------------------------------------------------------------------------------------------
# Several walks at once
# ---------------------------------------------------------------------------------------------------------------


def joined(walks: Sequence[Walk], most: int) -> Walk:
    """Walks with alternatives as one: each event once, and nothing beyond the place that all have reached."""
    horizon = max(found.reached for found in walks)
    rows: dict[Place, Row] = {}
    for found in walks:
        rows |= {(row["start_at"], row["event_id"]): row for row in found.rows}
    places = sorted((place for place in rows if place >= horizon), reverse=True)
    if len(places) > most:
        places = places[:most]
        horizon = places[-1]
    return Walk([rows[place] for place in places], horizon)


def only(wanted: Wanted, event_ids: Sequence[int]) -> Wanted:
    """The same, of these events only, whatever their memos say."""
    return replace(wanted, event_ids=tuple(event_ids), memo=None)
