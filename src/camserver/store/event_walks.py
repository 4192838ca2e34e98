"""Walking along events, newest first, by the index that leads to what is asked for with the fewest steps.

A *path* is an index whose entries are in the order of time: all events, those of a camera, a site, a primary event, a
severity, a tag, a word of a memo. Whatever else is asked for is checked at each event on the path. So that an answer
never takes long, a walk looks at a bounded number of events; where it stopped without having found enough, it says
how far it came, and the next page goes on from there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple

from camserver.store import event_paths, search_texts
from camserver.store.event_paths import Path, Wanted
from camserver.store.paging import BEYOND
from camserver.store.sql import Dialect
from camserver.store.tx import F, Scoped

# How many events are looked at for one answer.
LOOKED_AT_MAX = 4_000
# How many a statement looks at on MariaDB, which first puts together all of them: first so many as are enough for
# most pages, then by how many of these were asked for. SQLite and PostgreSQL go on event by event until there are
# enough, so that one statement does.
STEPS = (250, 500, 1_000, 2_000, LOOKED_AT_MAX)
FIRST_STEP, LONG_STEP = 250, 1_000
# What is asked for is not spread evenly: rather one step that is too long than one more.
STEP_SPARE = 1.25
# Up to this the events on a path are counted, to take the shortest. Where all paths are in order, so many of the
# newest are enough: how far these reach back tells which of the longer paths is the sparsest.
COUNTED_MAX = 1_000
COMPARED_MAX = 500
# A path with no more than these is walked along before the length of another one is asked for.
SHORT_MAX = 50
# A path with several values has no order of its own. Up to so many values are merged; by MariaDB, which first reads
# a whole step of each, fewer. One with more is walked in stretches of time, each longer than the last.
MERGED_MAX = {Dialect.SQLITE: 16, Dialect.POSTGRES: 16, Dialect.MARIADB: 4}
FIRST_STRETCH_MS = 6 * 3_600_000
STRETCH_GROWTH = 4
LISTED_MAX = 2_000

Place = tuple[int, int]  # start_at, event_id
END: Place = (-1, -1)


@dataclass(slots=True)
class Walk(Generic[F]):
    """What was found, newest first. Nothing from `reached` on is missing; END: there is nothing more."""

    rows: list[F] = field(default_factory=list)
    reached: Place = END


class Key(NamedTuple):
    event_id: int
    start_at: int


@dataclass(frozen=True, slots=True)
class Shown(Generic[F]):
    """What is read of each event that is found, besides its key and time.

    `columns` are of `events e`, in the order of the kind's fields. With `joins` those that were found are held
    against other tables, in the same statement.
    """

    kind: type[F]
    columns: str
    place: Callable[[F], Place]
    joins: str = ""
    params: dict[str, object] = field(default_factory=dict)


KEYS = Shown(Key, "e.event_id, e.start_at", lambda row: (row.start_at, row.event_id))


async def walk(tx: Scoped, wanted: Wanted, before: Place, shown: Shown[F], most: int) -> Walk[F]:
    """The newest `most` events before a place, as far as the bound allows."""
    if wanted.event_ids == () or tx.principal.reaches_nothing:
        return Walk()
    path = await _shortest(tx, wanted, before)
    checks, params = event_paths.checks(wanted, path, "e" if _is_whole(path, tx.dialect) else "w")
    walked = Walker(tx, path, wanted, shown, checks, {**params, **path.params, **shown.params})
    in_order = _is_in_order(path, tx.dialect)
    return await (walked.in_order(before, most) if in_order else walked.in_stretches(before, most))


@dataclass(slots=True)
class Walker(Generic[F]):
    tx: Scoped
    path: Path
    wanted: Wanted
    shown: Shown[F]
    checks: str
    params: dict[str, object]

    async def in_order(self, before: Place, most: int) -> Walk[F]:
        found: Walk[F] = Walk(reached=before)
        looked_at, step = 0, self._first_step(most)
        while looked_at < LOOKED_AT_MAX:
            rows, found.reached = await self._step(found.reached, self.wanted.from_ms, step, most - len(found.rows))
            found.rows += rows
            if len(found.rows) == most or found.reached == END:
                return found
            looked_at += step
            step = next_step(looked_at, len(found.rows), most)
        return found

    def _first_step(self, most: int) -> int:
        """Where every event on the path is asked for, the first step need not be longer than the page; where many
        are, it need not be shorter."""
        if self.tx.dialect is not Dialect.MARIADB:
            return LOOKED_AT_MAX
        everything = not self.checks and self.tx.principal.site_ids is None
        if everything:
            return min(_rounded(most), LONG_STEP)
        return FIRST_STEP if most <= FIRST_STEP else LONG_STEP

    async def in_stretches(self, before: Place, most: int) -> Walk[F]:
        found: Walk[F] = Walk(reached=before)
        oldest, newest = await self._ends()
        looked_at, length = 0, FIRST_STRETCH_MS
        newest = min(before[0], BEYOND if self.wanted.to_ms is None else self.wanted.to_ms, newest + 1)
        while looked_at < LOOKED_AT_MAX:
            begin = max(newest - length, oldest)
            rows, reached = await self._step(found.reached, begin, LONG_STEP, most - len(found.rows))
            found.rows += rows
            is_end = reached == END and begin <= oldest
            # All of a stretch was seen: what comes next is older than all of it.
            found.reached = (begin, 0) if reached == END and not is_end else reached
            if len(found.rows) == most or is_end:
                return found
            if reached == END:
                newest, length = begin, length * STRETCH_GROWTH
            else:
                looked_at += LONG_STEP
        return found

    async def _ends(self) -> tuple[int, int]:
        """When the tenant's first and last events began, so that empty time is not walked through."""
        # A question each: for both of the same rows SQLite reads the whole index.
        ends = await self.tx.one(
            "SELECT (SELECT MIN(start_at) FROM events WHERE tenant_id = :tenant_id) AS oldest, "
            "(SELECT MAX(start_at) FROM events WHERE tenant_id = :tenant_id) AS newest"
        )
        if ends is None or ends["oldest"] is None:
            return 0, 0
        return max(ends["oldest"], self.wanted.from_ms or 0), ends["newest"]

    async def _step(self, before: Place, from_ms: int | None, step: int, most: int) -> tuple[Sequence[F], Place]:
        """Those of the next events on the path that are asked for, and how far that came; END: nothing is left."""
        path, dialect = self.path, self.tx.dialect
        if dialect is Dialect.MARIADB and _is_whole(path, dialect):
            # It would put the step together, sort it and look each event up. Where it ends is told by the index
            # alone, and up to there events are read as they lie.
            end = await self._end_of_step(before, from_ms, step)
            clauses, params = _span(path, dialect, self.wanted, before, from_ms, end)
            rows = await self._found(
                f"SELECT p.* FROM {_hinted(path, dialect)} WHERE {path.clause}{clauses}", params, most
            )
        else:
            clauses, params = _span(path, dialect, self.wanted, before, from_ms)
            columns = "p.*" if _is_whole(path, dialect) else ""
            rows = await self._found(_entries(path, dialect, clauses, step, columns), params, most)
            end = None if len(rows) == most else await self._end_of_step(before, from_ms, step)
            if end is not None:
                # What came meanwhile makes the step end earlier; what lies behind its end is found by the next one.
                rows = [row for row in rows if self.shown.place(row) >= end]
        return rows, self.shown.place(rows[-1]) if len(rows) == most else end or END

    async def _found(self, walked: str, params: dict[str, object], most: int) -> Sequence[F]:
        """The newest that are asked for of those that are walked by."""
        text = search_texts.portable(self._found_in(f"({walked})", _rounded(most)))
        rows = await self.tx.flat(self.shown.kind, text, **{**self.params, **params})
        return rows[:most]

    def _found_in(self, walked: str, most: int) -> str:
        columns, joins = self.shown.columns, self.shown.joins
        found = f"{walked} w JOIN events e ON e.event_id = w.event_id"
        checks = f"WHERE e.tenant_id = :tenant_id AND IN_REACH(e){self.checks}"
        ordered = "ORDER BY {0}.start_at DESC, {0}.event_id DESC"
        match self.tx.dialect:
            case Dialect.SQLITE:
                # It takes what was walked in its order, event by event, until there are enough; asked to order by it,
                # it would put together and sort all of them.
                found = f"{walked} w CROSS JOIN events e ON e.event_id = w.event_id"
                return f"SELECT {columns} FROM {found} {joins} {checks} LIMIT {most}"
            case Dialect.POSTGRES:
                if _is_whole(self.path, Dialect.POSTGRES):
                    found, first = f"{walked} e", "e"
                else:
                    # One by one: else it may rather read all events.
                    event = "SELECT * FROM events x WHERE x.event_id = w.event_id OFFSET 0"
                    found, first = f"{walked} w CROSS JOIN LATERAL ({event}) e", "w"
                bounded = f"SELECT e.* FROM {found} {checks} {ordered.format(first)} LIMIT {most}"
                # Bounded before it is held against others: they know then that it is short.
                return f"SELECT {columns} FROM ({bounded}) e {joins} {ordered.format('e')}"
            case Dialect.MARIADB:
                # Else it may turn the join around, and read all events.
                select, first = "SELECT STRAIGHT_JOIN", "w"
                if _is_whole(self.path, Dialect.MARIADB):
                    found, first = f"{walked} e", "e"
                if not joins:
                    return f"{select} {columns} FROM {found} {checks} {ordered.format(first)} LIMIT {most}"
                bounded = (
                    f"{select} e.event_id, e.start_at FROM {found} {checks} {ordered.format(first)} LIMIT {most}"
                )
                return (
                    f"{select} {columns} FROM ({bounded}) v JOIN events e ON e.event_id = v.event_id {joins} "
                    f"{ordered.format('v')}"
                )

    async def _end_of_step(self, before: Place, from_ms: int | None, step: int) -> Place | None:
        """Where a step of this length ended; None when it came to the end of the path."""
        clauses, params = _span(self.path, self.tx.dialect, self.wanted, before, from_ms)
        last = _entries(self.path, self.tx.dialect, clauses, step, skipped=step - 1)
        row = await self.tx.one(last, **{**self.path.params, **params})
        return None if row is None else (row["start_at"], row["event_id"])


def next_step(looked_at: int, found: int, most: int) -> int:
    """How many events to look at for the rest, where so many of those that were looked at are asked for."""
    left = LOOKED_AT_MAX - looked_at
    needed = (most - found) * looked_at / found * STEP_SPARE if found else left
    return min(left, next((step for step in STEPS if step >= needed), left))


def _rounded(most: int) -> int:
    """Limits are written into statements (a parameter doubles PostgreSQL's work): few different ones."""
    return next((limit for limit in (51, 101, 201, 1_000) if most <= limit), most)


def _is_whole(path: Path, dialect: Dialect) -> bool:
    """Whether an entry is the event itself. PostgreSQL would look for it anew, and MariaDB put together what has
    several values; else an event is read by its key as fast as by the entry that leads to it."""
    return path.table == "events" and (
        dialect is Dialect.POSTGRES or (dialect is Dialect.MARIADB and not path.is_ordered)
    )


def _is_in_order(path: Path, dialect: Dialect) -> bool:
    return path.is_ordered or len(path.each) <= MERGED_MAX[dialect]


def _entries(
    path: Path, dialect: Dialect, clauses: str, most: int, columns: str = "", skipped: int | None = None
) -> str:
    """The newest so many entries of a path, newest first: their times and events, if nothing else is asked for."""
    columns = columns or f"p.{path.at} AS start_at, p.{path.key} AS event_id"
    select = f"SELECT {columns} FROM {_hinted(path, dialect)} WHERE"
    ordered = f"ORDER BY p.{path.at} DESC, p.{path.key} DESC LIMIT"
    limit = f"{most}" if skipped is None else f"{most - skipped} OFFSET {skipped}"
    if path.is_ordered or not _is_in_order(path, dialect):
        return f"{select} {path.clause}{clauses} {ordered} {limit}"
    parts = [f"{select} {each}{clauses}" for each in path.each]
    merged = f"ORDER BY start_at DESC, event_id DESC LIMIT {limit}"
    if dialect is Dialect.SQLITE:
        return f"{' UNION ALL '.join(parts)} {merged}"
    # Each bounded: else all of them would rather be sorted.
    return f"SELECT * FROM ({' UNION ALL '.join(f'({part} {ordered} {most})' for part in parts)}) p {merged}"


def _hinted(path: Path, dialect: Dialect) -> str:
    match dialect:
        case Dialect.SQLITE:
            return f"{path.table} p INDEXED BY {path.index}" if path.index else f"{path.table} p"
        case Dialect.MARIADB:
            return f"{path.table} p FORCE INDEX ({path.index or 'PRIMARY'})"
        case Dialect.POSTGRES:
            return f"{path.table} p"


def _span(
    path: Path, dialect: Dialect, wanted: Wanted, before: Place, from_ms: int | None, end: Place | None = None
) -> tuple[str, dict[str, object]]:
    """What holds a path to the time from a moment, or the last place that still belongs to it, to before a place."""
    at, key = f"p.{path.at}", f"p.{path.key}"
    if wanted.to_ms is not None and wanted.to_ms <= before[0]:
        # The later of the two bounds says nothing more.
        before = (wanted.to_ms, 0)
    if dialect is Dialect.POSTGRES:
        # As one comparison: it takes next to nothing to lie between two bounds of one column whose values it does
        # not know, and would rather read and sort all of that.
        clauses = f" AND ({at}, {key}) < (:before_at, :before_id)"
    else:
        clauses = f" AND {at} <= :before_at AND ({at} < :before_at OR {key} < :before_id)"
    params: dict[str, object] = {"before_at": before[0], "before_id": before[1]}
    if from_ms is not None:
        clauses += f" AND {at} >= :from_ms"
        params["from_ms"] = from_ms
    if end is not None:
        clauses += f" AND {at} >= :end_at AND ({at} > :end_at OR {key} >= :end_id)"
        params |= {"end_at": end[0], "end_id": end[1]}
    return clauses, params


# ---------------------------------------------------------------------------------------------------------------
# Paths
# ---------------------------------------------------------------------------------------------------------------


async def _shortest(tx: Scoped, wanted: Wanted, before: Place) -> Path:
    """The one with the fewest events; of those with too many to count the one whose newest reach back furthest."""
    paths = event_paths.paths(tx, wanted)
    if len(paths) == 1:
        return paths[0]
    counted: list[tuple[int, int, Path]] = []
    are_in_order = all(_is_in_order(path, tx.dialect) for path in paths)
    most = COMPARED_MAX if are_in_order else COUNTED_MAX
    for path in paths:
        events, oldest_at = await _length(tx, path, wanted, before, most)
        counted.append((events, oldest_at if are_in_order and events == most else path.rank, path))
        if events <= SHORT_MAX:
            break
    return min(counted, key=lambda one: one[:2])[2]


async def _length(tx: Scoped, path: Path, wanted: Wanted, before: Place, most: int) -> tuple[int, int]:
    """How many events are on it, up to a bound, and when the oldest of these began."""
    clauses, params = _span(path, tx.dialect, wanted, before, wanted.from_ms)
    if _is_in_order(path, tx.dialect):
        newest = _entries(path, tx.dialect, clauses, most)
    else:
        newest = f"SELECT p.{path.at} AS start_at FROM {_hinted(path, tx.dialect)} WHERE {path.clause}{clauses} "
        newest += f"LIMIT {most}"
    row = await tx.one(
        f"SELECT COUNT(*) AS events, MIN(start_at) AS oldest_at FROM ({newest}) q", **{**path.params, **params}
    )
    return (0, 0) if row is None else (row["events"], row["oldest_at"] or 0)


# ---------------------------------------------------------------------------------------------------------------
# Several walks at once
# ---------------------------------------------------------------------------------------------------------------


def joined(walks: Sequence[Walk[F]], place: Callable[[F], Place], most: int) -> Walk[F]:
    """Walks with alternatives as one: each event once, and nothing beyond the place that all have reached."""
    horizon = max(found.reached for found in walks)
    rows = {place(row): row for found in walks for row in found.rows}
    places = sorted((one for one in rows if one >= horizon), reverse=True)
    if len(places) > most:
        places = places[:most]
        horizon = places[-1]
    return Walk([rows[one] for one in places], horizon)


def only(wanted: Wanted, event_ids: Sequence[int]) -> Wanted:
    """The same, of these events only, whatever their memos say."""
    return replace(wanted, event_ids=tuple(event_ids), memo=None)
