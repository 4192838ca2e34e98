"""Sheets that are brought on the web, and scores of events, on each database."""

from dataclasses import replace

import pytest

from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.scoring import RunSpec, Source, plan_chunks
from camserver.domain.scoring_sheets import SheetKind, SheetState, SheetWishes, parse_condition
from camserver.domain.sheet_layout import Category, SheetLayout
from camserver.store import (
    Store,
    cameras,
    event_search,
    scoring_desk,
    scoring_journal,
    scoring_runs,
    scoring_sheets,
    tenants,
)
from camserver.store.event_search import SearchFilter
from camserver.store.scoring_desk import EventScore
from camserver.store.scoring_journal import Result, Spent
from camserver.store.scoring_sheets import NewSheet, Piece, RunWanted
from tests.store.people_rows import NOW_MS as NOW
from tests.store.people_rows import add_event, admin_of, count_rows, prepare
from tests.store.test_cameras import CAMERA

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEC = RunSpec(
    "openai", None, "m", (), "numeric", 0.0, 100, "", SheetLayout(), (Category(0, "配達"), Category(1, "b"))
)
LOOK = {"check": {"ok": True, "last_row": 24}, "estimate": None, "is_priced": False}


async def test_a_sheet_comes_is_looked_at_by_one_and_is_scored(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id, other_id = [await store.write(tenants.ensure, name, NOW) for name in ("a", "b")]
    scoped = store.as_(Principal(tenant_id, None, Role.TENANT_ADMIN))
    stranger = store.as_(Principal(other_id, None, Role.SYSTEM_ADMIN))
    new = NewSheet("s-1", SheetKind.FILE, "シート😀.csv", SheetWishes(form="anchors"), 3)
    added = await scoped.write(scoring_sheets.add, new, 5, "", NOW)
    assert (added.state, added.wishes.form) == (SheetState.COMING, "anchors")
    with pytest.raises(Conflict):
        await scoped.write(scoring_sheets.add, replace(new, sheet_uuid="s-2"), 5, "", NOW)
    with pytest.raises(NotFound):
        await stranger.read(scoring_sheets.get, "s-1")
    assert await store.write(scoring_desk.claim_look, "t", NOW + 9, NOW) is None
    place = await scoped.write(scoring_sheets.claim_part, "s-1", 0, 3, NOW)
    assert await scoped.write(scoring_sheets.claim_part, "s-1", 0, 3, NOW) == place
    key = place.object_key
    assert not place.is_kept
    assert (await scoped.write(scoring_sheets.note_part, "s-1", key, NOW)).state is SheetState.WAITING
    # The last piece's answer may have been lost; it is there, and others are none.
    assert await scoped.write(scoring_sheets.claim_part, "s-1", 0, 3, NOW) == replace(place, is_kept=True)
    for number, size in ((0, 2), (1, 3)):
        with pytest.raises(Conflict, match="here already"):
            await scoped.write(scoring_sheets.claim_part, "s-1", number, size, NOW)

    held = await store.write(scoring_desk.claim_look, "t1", NOW + 9, NOW)
    assert held is not None
    assert held.tenant_id == tenant_id
    assert await store.write(scoring_desk.claim_look, "t2", NOW + 9, NOW) is None
    assert await store.write(scoring_desk.claim_look, "t2", NOW + 99, NOW + 10) is not None
    sheet_id = held.sheet.sheet_id
    assert not await store.write(scoring_desk.looked, sheet_id, "t1", LOOK, SPEC, None, NOW)
    assert await store.write(scoring_desk.looked, sheet_id, "t2", LOOK, SPEC, None, NOW)
    assert await store.read(scoring_desk.pieces, sheet_id) == (Piece(key, 3),)

    wanted = RunWanted("r-1", "s-1", "file:s-1", None, tuple(plan_chunks(5, 24, 10)))
    with pytest.raises(Conflict):
        await scoped.write(scoring_sheets.begin_run, replace(wanted, budget_micro=5), "", NOW)
    begun = await scoped.write(scoring_sheets.begin_run, wanted, "", NOW)
    assert (begun.run.spec, begun.totals.chunks, begun.brought and begun.brought.name) == (SPEC, 2, new.name)
    with pytest.raises(Conflict):
        await scoped.write(scoring_sheets.begin_run, replace(wanted, run_uuid="r-2"), "", NOW)
    run_id = begun.run.run_id
    assert await store.read(scoring_runs.waiting) == (run_id,)
    result = Result(1, 7, 0, "a" * 32, (0.5, 1.0), "k" * 64, "m", Source.CALL)
    await store.write(scoring_journal.record, run_id, tenant_id, (result,), (), Spent(calls=1), NOW)
    await store.write(scoring_runs.tell, run_id, 40, 3.5, 7)
    assert await store.read(scoring_desk.unfilled) == ()

    await store.write(scoring_runs.want, run_id, "pause", NOW + 1)
    assert await store.read(scoring_desk.unfilled) == (run_id,)
    (scored,) = await store.read(scoring_desk.scored, run_id, 0, 10)
    assert (scored.row, scored.scores) == (7, (0.5, 1.0))
    for token, mark in (("dead", "x"), ("w", "y")):
        pieces = (Piece(f"k/{mark}/0", 4), Piece(f"k/{mark}/1", 1))
        await store.write(scoring_desk.announce, tenant_id, sheet_id, run_id, pieces, NOW)
        if token == "w":
            assert await store.write(scoring_runs.take_writing, run_id, token, NOW + 9, NOW)
        is_filled = await store.write(scoring_desk.filled, run_id, token, pieces, NOW + 1, NOW)
        assert is_filled is (token == "w")
    assert await store.read(scoring_desk.unfilled) == ()
    name, made = await scoped.read(scoring_sheets.result, "r-1")
    assert (name, [one.object_key for one in made]) == (new.name, ["k/y/0", "k/y/1"])
    run = await store.read(scoring_runs.get, run_id)
    assert (run.busy_ms, run.places, run.write_delay_ms) == (40, 3.5, 7)

    await scoped.write(scoring_sheets.remove, "s-1", "", NOW)
    assert (await store.read(scoring_runs.get, run_id)).status == "cancelled"
    assert (await store.read(count_rows, "garbage"), await store.read(count_rows, "scoring_files")) == (5, 0)
    with pytest.raises(NotFound):
        await scoped.read(scoring_sheets.result, "r-1")


async def test_scores_of_events_are_put_found_and_pruned_with_their_sheet(fresh_store: Store) -> None:
    store = fresh_store
    home = await prepare(store)
    scoped = store.as_(admin_of(home.tenant_id))
    await scoped.write(cameras.add, replace(CAMERA, camera_id="door"), "", NOW)
    for n in range(4):
        await store.write(add_event, home.tenant_id, "door", f"e{n}", NOW - n, (("person", "who"),))
    keys = await scoped.read(event_search.keys, SearchFilter(), None, 10)
    wishes = SheetWishes(categories=SPEC.categories)
    new = NewSheet("s-1", SheetKind.EVENTS, "night", wishes, 0, keys.event_ids)
    sheet_id = (await scoped.write(scoring_sheets.add, new, 5, "", NOW)).sheet_id
    assert await store.read(scoring_desk.last_event_row, sheet_id) == 5
    facts = await store.read(scoring_desk.events, sheet_id, 1, 2, 5)
    assert [(one.row, one.event_uuid, one.tags) for one in facts][:2] == [
        (2, "e0", ("person",)),
        (3, "e1", ("person",)),
    ]
    scores = tuple(EventScore(row, "配達", row / 10) for row in (2, 3, 4, 9))
    assert await store.write(scoring_desk.put_scores, sheet_id, 1, scores, NOW) == {2, 3, 4}
    again = (EventScore(4, "配達", 0.9), EventScore(4, "b", 0.1))
    await store.write(scoring_desk.put_scores, sheet_id, 1, again, NOW)
    facts = await store.read(scoring_desk.events, sheet_id, 1, 4, 4)
    assert sorted(facts[0].scored) == ["b", "配達"]

    async def found(*conditions: str) -> list[str]:
        asked = SearchFilter(scores=tuple(parse_condition(one) for one in conditions))
        page = await scoped.read(event_search.search, asked, None, 10)
        return [one.event.event_uuid for one in page.found]

    assert await found("配達>=0.3") == ["e1", "e2"]
    assert await found("配達<=0.3") == ["e0", "e1"]
    assert await found("配達>=0.3", "b<=0.5") == ["e2"]
    facets = await scoped.read(event_search.facets, SearchFilter())
    assert [(one.value, one.count) for one in facets.facets["score"]] == [("配達", 1)]
    assert await store.write(scoring_desk.prune, NOW, NOW) == 0
    assert await store.write(scoring_desk.prune, NOW + 1, NOW) == 1
    assert await store.read(count_rows, "scoring_events") == 0
    assert await found("配達>=0.3") == ["e1", "e2"]
