"""Words of memos and notes come and go with their texts."""

import asyncio

import pytest

from camserver.domain.cases import NOTE_MAX_CHARS, ItemKind
from camserver.domain.people import Principal, Role
from camserver.domain.retention import RetentionPolicy
from camserver.domain.scoring_sheets import ScoreCondition
from camserver.domain.texts import Query, excerpt
from camserver.store import Dialect, Store, Tx, case_items, cases, event_search, retention, search_texts
from camserver.store.event_search import SearchFilter
from tests.store.analyzing import rows
from tests.store.casework import DAY_MS, Evidence
from tests.store.people_rows import count_rows, execute
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def found(store: Store, who: Principal, text: str) -> int:
    return len((await store.as_(who).read(event_search.search, SearchFilter(text=text), None, 50)).found)


async def test_a_memo_is_found_until_its_event_goes(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event_id = await evidence.event(NOW_MS - 400 * DAY_MS)
    tenant_id = evidence.scene.tenant_id
    await fresh_store.write(search_texts.put_memo, tenant_id, event_id, "白いトラック")
    assert await found(fresh_store, evidence.somebody, "ﾄﾗｯｸ") == 1
    # Said again: only what was said last counts.
    await fresh_store.write(search_texts.put_memo, tenant_id, event_id, "黒い車")
    assert await found(fresh_store, evidence.somebody, "トラック") == 0
    assert await found(fresh_store, evidence.somebody, "黒い車") == 1
    camera_key = evidence.scene.camera_keys[0]
    await fresh_store.write(retention.sweep_events, camera_key, [event_id], RetentionPolicy(), NOW_MS)
    for table in ("events", "search_tokens", "search_texts"):
        assert await fresh_store.read(count_rows, table) == 0, table


async def test_a_memo_moves_with_its_event(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event_id = await evidence.event(NOW_MS)
    await fresh_store.write(search_texts.put_memo, evidence.scene.tenant_id, event_id, "犬")
    await fresh_store.write(execute, "UPDATE events SET start_at = start_at - 5000", {})
    await fresh_store.write(search_texts.move_events, {event_id: NOW_MS - 5000})
    assert {row["at"] for row in await fresh_store.read(rows, "search_tokens", "token")} == {NOW_MS - 5000}
    assert await found(fresh_store, evidence.somebody, "犬") == 1


async def test_a_memo_that_is_being_written_moves_with_its_event(fresh_pair: tuple[Store, Store]) -> None:
    store, second = fresh_pair
    if store.dialect is Dialect.SQLITE:
        pytest.skip("transactions of one writer come one after the other")
    evidence = await Evidence.gather(store)
    event_id = await evidence.event(NOW_MS)
    is_put, may_end = asyncio.Event(), asyncio.Event()

    async def put_and_wait(tx: Tx) -> None:
        await search_texts.put_memo(tx, evidence.scene.tenant_id, event_id, "犬")
        is_put.set()
        await may_end.wait()

    async def move(tx: Tx) -> None:
        await tx.run("UPDATE events SET start_at = start_at - 5000")
        await search_texts.move_events(tx, {event_id: NOW_MS - 5000})

    putting = asyncio.create_task(store.write(put_and_wait))
    await is_put.wait()
    moving = asyncio.create_task(second.write(move))
    # It waits for the memo; one that does not is done by then.
    await asyncio.wait([moving], timeout=0.5)
    may_end.set()
    await asyncio.gather(putting, moving)
    assert {row["at"] for row in await store.read(rows, "search_tokens", "token")} == {NOW_MS - 5000}


async def test_scores_move_with_their_event(fresh_store: Store) -> None:
    """Else a page that ends with it goes on behind where it stood, and misses what began in between."""
    evidence = await Evidence.gather(fresh_store)
    first, second = await evidence.event(NOW_MS), await evidence.event(NOW_MS - 2000)
    for event_id, at_ms in ((first, NOW_MS), (second, NOW_MS - 2000)):
        await fresh_store.write(
            execute,
            "INSERT INTO event_scores (event_id, category, tenant_id, start_at, score, run_id, scored_at) "
            "VALUES (:event_id, 'trespass', :tenant_id, :at_ms, 0.9, 1, 1)",
            {"event_id": event_id, "tenant_id": evidence.scene.tenant_id, "at_ms": at_ms},
        )
    await fresh_store.write(
        execute, "UPDATE events SET start_at = start_at - 5000 WHERE event_id = :first", {"first": first}
    )
    await fresh_store.write(search_texts.move_events, {first: NOW_MS - 5000})
    mine = fresh_store.as_(evidence.somebody)
    asked = SearchFilter(scores=(ScoreCondition("trespass", True, 0.5),))
    page = await mine.read(event_search.keys, asked, None, 1)
    rest = await mine.read(event_search.keys, asked, page.next_before, 1)
    assert (page.event_ids, rest.event_ids) == ((second,), (first,))
    late = SearchFilter(scores=asked.scores, from_ms=NOW_MS - 4000)
    assert (await mine.read(event_search.keys, late, None, 5)).event_ids == (second,)


async def test_a_note_of_signs_that_stand_for_words_is_taken_and_found(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    mine = fresh_store.as_(evidence.somebody)
    await evidence.event(NOW_MS)
    (event,) = await fresh_store.read(rows, "events", "event_id")
    case = await mine.write(cases.create, "title", "", NOW_MS)
    await mine.write(case_items.add, case.case_uuid, ItemKind.EVENT, event["event_uuid"], "", NOW_MS)
    body = "㍿" * NOTE_MAX_CHARS
    assert (await mine.write(cases.add_note, case.case_uuid, body, "", NOW_MS)).body == body
    assert await found(fresh_store, evidence.somebody, "株式会社") == 1


async def test_a_note_finds_what_its_case_holds_by_itself_its_clip_or_a_frame(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    who = evidence.somebody
    mine = fresh_store.as_(who)
    case = await mine.write(cases.create, "title", "", NOW_MS)
    for kind in ItemKind:
        await evidence.event(NOW_MS - len(kind) * 1000)
    events = await fresh_store.read(rows, "events", "event_id")
    frames = {row["event_id"]: row["frame_uuid"] for row in await fresh_store.read(rows, "frames", "frame_id")}
    for kind, event in zip(ItemKind, events, strict=True):
        if kind is ItemKind.CLIP:
            await evidence.clip(event["event_id"], NOW_MS)
        uuid = frames[event["event_id"]] if kind is ItemKind.FRAME else event["event_uuid"]
        await mine.write(case_items.add, case.case_uuid, kind, uuid, "", NOW_MS)
    await mine.write(cases.add_note, case.case_uuid, "倉庫の裏口で確認 (Door 7)", "", NOW_MS)
    for text in ("裏口", "DOOR", "door 7", "倉庫 確認"):
        assert await found(fresh_store, who, text) == 3, text
    assert await found(fresh_store, who, "表口") == 0
    in_case = SearchFilter(case_uuid=case.case_uuid)
    assert len((await mine.read(event_search.search, in_case, None, 50)).found) == 3
    stranger = Principal(who.tenant_id + 99, None, Role.TENANT_ADMIN)
    assert await found(fresh_store, stranger, "裏口") == 0


async def test_a_note_is_cut_out_once_for_all_that_its_case_holds(
    fresh_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long one it takes milliseconds, and a page may be of one case."""
    cut: list[str] = []

    def counted(query: Query, text: str) -> str:
        cut.append(text)
        return excerpt(query, text)

    monkeypatch.setattr(event_search, "excerpt", counted)
    evidence = await Evidence.gather(fresh_store)
    mine = fresh_store.as_(evidence.somebody)
    case_uuid = (await mine.write(cases.create, "title", "", NOW_MS)).case_uuid
    for second in range(5):
        await evidence.event(NOW_MS - second * 1000)
    for event in await fresh_store.read(rows, "events", "event_id"):
        await mine.write(case_items.add, case_uuid, ItemKind.EVENT, event["event_uuid"], "", NOW_MS)
    note = f"裏口 {'倉庫の前 ' * 100}"
    await mine.write(cases.add_note, case_uuid, note, "", NOW_MS)
    page = await mine.read(event_search.search, SearchFilter(text="裏口"), None, 50)
    assert [[one.case_uuid for one in found.passages] for found in page.found] == [[case_uuid]] * 5
    assert cut == [note]


async def test_that_not_all_of_the_noted_cases_were_followed_is_told(
    fresh_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few events the items that were followed are about."""
    monkeypatch.setattr(event_search, "LISTED_MAX", 3)
    evidence = await Evidence.gather(fresh_store)
    mine = fresh_store.as_(evidence.somebody)
    await evidence.event(NOW_MS - 5000)
    await evidence.event(NOW_MS, frames=2)
    older, newer = await fresh_store.read(rows, "events", "event_id")
    frames = [row["frame_uuid"] for row in await fresh_store.read(rows, "frames", "frame_id")][1:]
    cases_made = [(await mine.write(cases.create, title, "", NOW_MS)).case_uuid for title in ("few", "many")]
    for case_uuid in cases_made:
        await mine.write(cases.add_note, case_uuid, "裏口", "", NOW_MS)
    await mine.write(case_items.add, cases_made[0], ItemKind.EVENT, older["event_uuid"], "", NOW_MS)
    assert not (await mine.read(event_search.search, SearchFilter(text="裏口"), None, 50)).is_cut
    assert (await mine.read(event_search.facets, SearchFilter(text="裏口"))).is_complete
    await mine.write(case_items.add, cases_made[1], ItemKind.EVENT, newer["event_uuid"], "", NOW_MS)
    for frame_uuid in frames:
        await mine.write(case_items.add, cases_made[1], ItemKind.FRAME, frame_uuid, "", NOW_MS)
    page = await mine.read(event_search.search, SearchFilter(text="裏口"), None, 50)
    assert ([one.event.event_uuid for one in page.found], page.is_cut) == ([newer["event_uuid"]], True)
    counted = await mine.read(event_search.facets, SearchFilter(text="裏口"))
    assert (counted.counted, counted.is_complete) == (1, False)
