"""The events of a search as a sheet: a row is an event, its text what is known of it, its picture that of its best
frame. Scores go to the events themselves, where searches find them."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from camserver.base.clock import Clock
from camserver.base.zones import zone_of
from camserver.clients.sheets.sheet import PAGE_ROWS_MAX
from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.scoring_sheets import EVENTS_LAYOUT, event_text
from camserver.domain.sheet_layout import Category, Finding, Problem, Severity, SheetCheck
from camserver.domain.sheet_rows import Outcome, RowOutcome, RowScores, SheetRow, identity_of
from camserver.store import Store, scoring_desk
from camserver.store.scoring_desk import EventFacts, EventScore

# Providers take no picture beyond a few megabytes; then the small one must do.
PICTURE_BYTES_MAX = 4_000_000


class EventSheet:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        address: str,
        sheet_id: int,
        run_id: int,
        categories: tuple[Category, ...],
        order: tuple[Kind, ...] = (Kind.INFER, Kind.FULL),
    ) -> None:
        self.address = address
        self.layout = EVENTS_LAYOUT
        self._store = store
        self._clock = clock
        self._sheet_id = sheet_id
        self._run_id = run_id
        self._categories = categories
        self._order = order

    async def check(self) -> SheetCheck:
        last_row = await self._store.read(scoring_desk.last_event_row, self._sheet_id)
        count = max(last_row - self.layout.first_data_row + 1, 0)
        findings: tuple[Finding, ...] = ()
        if not count:
            findings = (Finding(Severity.ERROR, Problem.NO_TEXTS, "", "no event fits the search"),)
        return SheetCheck(self._categories, findings, last_row, texts=count, distinct_texts=count)

    async def categories(self) -> tuple[Category, ...]:
        return self._categories

    async def rows(self, first_row: int, last_row: int | None = None) -> AsyncIterator[Sequence[SheetRow]]:
        end = await self._store.read(scoring_desk.last_event_row, self._sheet_id)
        end = end if last_row is None else min(end, last_row)
        for begin in range(first_row, end + 1, PAGE_ROWS_MAX):
            until = min(begin + PAGE_ROWS_MAX - 1, end)
            found = await self._store.read(scoring_desk.events, self._sheet_id, self._run_id, begin, until)
            if found:
                yield [self._row(one) for one in found]

    async def write(self, scores: Sequence[RowScores]) -> Sequence[RowOutcome]:
        put = tuple(
            EventScore(one.row, self._categories[one.first_category + offset].name, round(score, 4))
            for one in scores
            for offset, score in enumerate(one.scores)
            if score is not None
        )
        there = frozenset[int]()
        if put:
            there = await self._store.write(
                scoring_desk.put_scores, self._sheet_id, self._run_id, put, self._clock.now_ms()
            )
        return [
            RowOutcome(one.row, one.identity, one.first_category, Outcome.WRITTEN, one.row)
            if one.row in there
            else RowOutcome(one.row, one.identity, one.first_category, Outcome.KEPT, 0, reason="the event is gone")
            for one in scores
        ]

    async def flush(self, final: bool = False) -> AsyncIterator[Sequence[RowOutcome]]:
        staged: Sequence[Sequence[RowOutcome]] = ()  # what was written is with its event already
        for page in staged:
            yield page

    async def close(self) -> None:
        """Nothing is held."""

    def _row(self, one: EventFacts) -> SheetRow:
        began = datetime.fromtimestamp(one.start_at / 1000, zone_of(one.timezone)).strftime("%Y-%m-%d %H:%M")
        picture = self._picture(one)
        text = event_text(
            camera=one.camera,
            site=one.site,
            began=began,
            primary_event=one.primary_event,
            tags=one.tags,
            has_picture=bool(picture),
        )
        filled = sum(1 << each.index for each in self._categories if each.name in one.scored)
        # By the event and not by what is known of it: that grows while an event goes on.
        return SheetRow(one.row, text, identity_of(one.event_uuid), filled, picture)

    def _picture(self, one: EventFacts) -> str:
        sizes = {Kind.INFER: one.infer_bytes, Kind.FULL: one.full_bytes}
        if one.frame_uuid is None or one.captured_at is None or one.epoch_id is None:
            return ""
        for kind in self._order:
            size = sizes[kind]
            if size is not None and size <= PICTURE_BYTES_MAX:
                return frame_key(one.epoch_id, one.tenant_id, one.camera_key, one.captured_at, one.frame_uuid, kind)
        return ""
