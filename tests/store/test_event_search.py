"""A search finds what a naive reader of all rows would, page by page, whichever way it takes."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from camserver.base.errors import BadInput, Forbidden, NotFound
from camserver.domain.cases import ItemKind
from camserver.domain.people import Principal, Role
from camserver.domain.texts import matches, parse_query
from camserver.store import Store, Tx, cameras, case_items, cases, event_search, event_walks, search_texts, tenants
from camserver.store.event_search import SearchFilter
from camserver.store.sql import Dialect
from tests.rig.effort import times
from tests.store.conftest import Driven
from tests.store.people_rows import HOUR_MS, NOW_MS, EventRow, add_event, add_incident, admin_of, execute, prepare
from tests.store.test_cameras import CAMERA

EVENTS = 160
CAMERAS = {"cam_1": "main", "cam_2": "main", "cam_3": "north", "cam_4": "south"}
TAGS = ("carry.bag", "top_color.red", "behavior.x")
MEMOS = ("赤い服の男性が荷物を持つ", "白いトラック", "A man in a red jacket", "red truck", "犬")
NOTES = ("赤い服を着た人を確認", "Red jacket, again")


@dataclass(frozen=True, slots=True)
class Known:
    """An event as the test made it."""

    event_uuid: str
    camera_id: str
    site: str
    start_at: int
    primary_event: str
    severity: int
    unknown: bool
    tags: frozenset[str]
    memo: str | None
    case: int | None


@dataclass(frozen=True, slots=True)
class House:
    driven: Driven
    admin: Principal
    viewer: Principal
    northern: Principal  # an admin of one site
    events: tuple[Known, ...]  # newest first
    case_uuids: tuple[str, str]
    spare_case: str

    def search(self, asked: SearchFilter, who: Principal | None = None, limit: int = 200) -> list[str]:
        """All pages of it."""
        found: list[str] = []
        before = None
        for _ in range(2 * EVENTS):
            mine = self.driven.store.as_(who or self.admin)
            page = self.driven.do(mine.read(event_search.search, asked, before, limit))
            found += [one.event.event_uuid for one in page.found]
            assert len(page.found) <= limit
            before = page.next_before
            if before is None:
                return found
        raise AssertionError("the pages never end")


def expected(house: House, asked: SearchFilter, visible: Any = None) -> list[str]:
    """What a reader of all rows finds."""
    query = None if asked.text is None else parse_query(asked.text)

    def fits(one: Known) -> bool:
        in_text = query is None or (one.memo is not None and matches(query, one.memo)) or (
            one.case is not None and matches(query, NOTES[one.case]))  # fmt: skip
        return (
            (asked.from_ms is None or one.start_at >= asked.from_ms)
            and (asked.to_ms is None or one.start_at < asked.to_ms)
            and (not asked.sites or one.site in asked.sites)
            and (not asked.camera_ids or one.camera_id in asked.camera_ids)
            and (not asked.primary_events or one.primary_event in asked.primary_events)
            and set(asked.tags) <= one.tags
            and one.severity >= asked.severity_min
            and (asked.unknown is None or one.unknown == asked.unknown)
            and (asked.case_uuid is None or (one.case is not None and house.case_uuids[one.case] == asked.case_uuid))
            and in_text
            and (visible is None or visible(one))
        )

    return [one.event_uuid for one in house.events if fits(one)]


@pytest.fixture(scope="module")
def house(driven: Driven) -> House:
    driven.wipe()
    return driven.do(_build(driven))


async def _build(driven: Driven) -> House:
    store = driven.store
    home = await prepare(store)
    admin = admin_of(home.tenant_id)
    mine = store.as_(admin)
    site_ids = {"main": home.site_id}
    for site in ("north", "south"):
        site_ids[site] = await store.write(tenants.ensure_site, home.tenant_id, site, NOW_MS)
    for camera_id, site in CAMERAS.items():
        await mine.write(cameras.add, replace(CAMERA, camera_id=camera_id, site=site), "", NOW_MS)
    case_uuids = [(await mine.write(cases.create, f"case {note}", "", NOW_MS)).case_uuid for note in NOTES]
    for case_uuid, note in zip(case_uuids, NOTES, strict=True):
        await mine.write(cases.add_note, case_uuid, note, "", NOW_MS)
    chance = random.Random(7)
    events = [await _add(store, home.tenant_id, chance, number, case_uuids, admin) for number in range(EVENTS)]
    # Somebody else's, like ours in everything.
    other = await store.write(tenants.ensure, "other", NOW_MS)
    site_id = await store.write(tenants.ensure_site, other, "main", NOW_MS)
    await store.as_(admin_of(other)).write(cameras.add, CAMERA, "", NOW_MS)
    foreign = await store.write(add_event, other, "cam_1", "foreign", NOW_MS, (("carry.bag", "notify_safe"),))
    await store.write(search_texts.put_memo, other, foreign, MEMOS[0])
    assert site_id not in site_ids.values()
    # The order of keys is that of making, which breaks ties of time.
    newest_first = sorted(enumerate(events), key=lambda pair: (pair[1].start_at, pair[0]), reverse=True)
    return House(
        driven,
        admin,
        Principal(home.tenant_id, None, Role.VIEWER),
        replace(admin, site_ids=frozenset({site_ids["north"]})),
        tuple(one for _, one in newest_first),
        (case_uuids[0], case_uuids[1]),
        (await mine.write(cases.create, "empty", "", NOW_MS)).case_uuid,
    )


async def _add(
    store: Store, tenant_id: int, chance: random.Random, number: int, case_uuids: list[str], admin: Principal
) -> Known:
    camera_id = chance.choice(list(CAMERAS))
    tags = frozenset(tag for tag in TAGS if chance.random() < 0.4)
    known = Known(
        event_uuid=f"e{number:03d}",
        camera_id=camera_id,
        site=CAMERAS[camera_id],
        # Few different moments, far apart and near: many begin at the same one.
        start_at=NOW_MS - chance.choice([0, 1, 1, 2, HOUR_MS, 30 * HOUR_MS, 500 * HOUR_MS]) * chance.randint(0, 3),
        primary_event=chance.choice(["human", "human", "vehicle", "animal"]),
        severity=chance.choice([0, 0, 0, 1, 1, 2, 3]),
        unknown=chance.random() < 0.2,
        tags=tags,
        memo=chance.choice(MEMOS) if chance.random() < 0.4 else None,
        case=chance.choice([0, 1]) if chance.random() < 0.1 else None,
    )
    groups = tuple((tag, "investigation_only" if tag == "behavior.x" else "notify_safe") for tag in sorted(tags))
    row = EventRow(primary_event=known.primary_event, severity_max=known.severity)
    event_id = await store.write(add_event, tenant_id, camera_id, known.event_uuid, known.start_at, groups, row)
    await store.write(
        execute, "UPDATE events SET unknown_flag = :unknown WHERE event_id = :event_id",
        {"unknown": int(known.unknown), "event_id": event_id},
    )  # fmt: skip
    if known.memo is not None:
        await store.write(_review, tenant_id, event_id, known.memo)
    if known.case is not None:
        item = (case_uuids[known.case], ItemKind.EVENT, known.event_uuid, "", NOW_MS)
        await store.as_(admin).write(case_items.add, *item)
    return known


async def _review(tx: Tx, tenant_id: int, event_id: int, memo: str) -> None:
    await tx.run(
        "INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label, "
        "memo, created_at) VALUES (:uuid, :tenant_id, 1, :event_id, 1, 'p', 'm', 'person', :memo, 5)",
        uuid=f"r{event_id}",
        tenant_id=tenant_id,
        event_id=event_id,
        memo=memo,
    )
    await search_texts.put_memo(tx, tenant_id, event_id, memo)


@pytest.fixture(params=["as it is", "short steps", "in stretches"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With short steps most searches end before they found all, and go on from there; what has several values is
    merged, or walked in stretches of time."""
    if request.param != "as it is":
        shorten(monkeypatch)
    if request.param == "in stretches":
        monkeypatch.setattr(event_walks, "MERGED_MAX", dict.fromkeys(Dialect, 0))


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_walks, "LOOKED_AT_MAX", 8)
    monkeypatch.setattr(event_walks, "STEPS", (3, 5))
    monkeypatch.setattr(event_walks, "FIRST_STEP", 3)
    monkeypatch.setattr(event_walks, "LONG_STEP", 5)
    monkeypatch.setattr(event_walks, "COUNTED_MAX", 20)
    monkeypatch.setattr(event_walks, "COMPARED_MAX", 10)
    monkeypatch.setattr(event_walks, "SHORT_MAX", 1)


@pytest.mark.parametrize(
    ("looked_at", "found", "most", "step"),
    [
        (250, 45, 50, 250),  # 28 more are needed, and a quarter is to spare
        (250, 10, 50, 2_000),  # 1,250
        (1_000, 260, 1_000, 3_000),  # all that may be looked at
        (250, 0, 50, 3_750),
        (3_750, 49, 50, 250),
    ],
)
def test_a_walk_goes_on_by_what_it_found(looked_at: int, found: int, most: int, step: int) -> None:
    assert event_walks.next_step(looked_at, found, most) == step


def some(values: list[str], most: int = 3) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=most).map(tuple)


MOMENTS = st.none() | st.sampled_from([NOW_MS + hours * HOUR_MS for hours in (-1500, -60, -30, -1, 0)] + [NOW_MS + 1])
FILTERS = st.builds(
    SearchFilter,
    from_ms=MOMENTS,
    to_ms=MOMENTS,
    sites=some(["main", "north", "south"], 2),
    camera_ids=some(list(CAMERAS)),
    primary_events=some(["human", "vehicle", "animal", "nothing"], 2),
    tags=some([*TAGS, "tag.nobody.has"], 2),
    severity_min=st.integers(0, 3),
    unknown=st.none() | st.booleans(),
    text=st.none()
    | st.sampled_from(["赤い服", "red", "ﾄﾗｯｸ", "犬", "red jacket", "赤いトラック", "nobody wrote it"]),
)
PLENTY = settings(
    max_examples=times(60, 600), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@PLENTY
@given(asked=FILTERS, limit=st.sampled_from([1, 7, 200]), in_case=st.none() | st.integers(0, 1))
@example(SearchFilter(), 7, None)
@example(SearchFilter(severity_min=1), 3, None)
@example(SearchFilter(text="赤い服"), 3, None)
@example(SearchFilter(text="red"), 1, 1)
def test_a_search_finds_what_a_naive_reader_does(
    house: House, steps: None, asked: SearchFilter, limit: int, in_case: int | None
) -> None:
    if in_case is not None:
        asked = replace(asked, case_uuid=house.case_uuids[in_case])
    assert house.search(asked, limit=limit) == expected(house, asked)
    in_north = expected(house, asked, lambda one: one.site == "north")
    if not (set(asked.sites) | {CAMERAS[one] for one in asked.camera_ids}) - {"north"}:
        assert house.search(asked, house.northern, limit) == in_north


@PLENTY
@given(asked=FILTERS)
def test_facets_count_what_is_found(house: House, asked: SearchFilter) -> None:
    found = house.driven.do(house.driven.store.as_(house.admin).read(event_search.facets, asked))
    by_uuid = {one.event_uuid: one for one in house.events}
    those = [by_uuid[uuid] for uuid in expected(house, asked)]
    assert (found.counted, found.is_complete) == (len(those), True)
    assert found.oldest_at == (min(one.start_at for one in those) if those else None)
    for facet, values in (
        ("site", [one.site for one in those]),
        ("camera", [one.camera_id for one in those]),
        ("primary_event", [one.primary_event for one in those]),
        ("severity", [str(one.severity) for one in those]),
        ("unknown", ["true" if one.unknown else "false" for one in those]),
        ("tag", [tag for one in those for tag in one.tags]),
    ):
        counted = {one.value: one.count for one in found.facets[facet]}
        assert counted == {value: values.count(value) for value in values}, facet
    assert sum(one.count for one in found.facets["day"]) == len(those)


@pytest.mark.parametrize(("zone", "minute"), [("Asia/Tokyo", 0), ("Asia/Kolkata", 30), ("Asia/Kathmandu", 15)])
def test_an_event_is_of_the_day_that_its_site_had(house: House, zone: str, minute: int) -> None:
    store, tenant_id = house.driven.store, house.admin.tenant_id
    midnight = NOW_MS + 15 * HOUR_MS + (3 * HOUR_MS if minute else 0) + minute * 60_000
    new_zone = "UPDATE sites SET timezone = :zone WHERE name = 'south'"
    house.driven.do(store.write(execute, new_zone, {"zone": zone}))
    for number, at_ms in enumerate((midnight - 1, midnight, midnight + 60_000)):
        house.driven.do(store.write(add_event, tenant_id, "cam_4", f"new{number}", at_ms))
    mine = store.as_(house.admin)
    found = house.driven.do(mine.read(event_search.facets, SearchFilter(from_ms=midnight - 1)))
    house.driven.do(store.write(execute, "DELETE FROM events WHERE event_uuid LIKE 'new%'", {}))
    house.driven.do(store.write(execute, new_zone, {"zone": "UTC"}))
    assert [(one.value, one.count) for one in found.facets["day"]] == [("2026-01-02", 2), ("2026-01-01", 1)]


def test_a_removed_camera_is_not_counted_for_the_one_that_has_its_id_now(house: House) -> None:
    store, tenant_id = house.driven.store, house.admin.tenant_id
    mine = store.as_(house.admin)
    for number in range(4):
        if number in (0, 3):
            house.driven.do(mine.write(cameras.add, replace(CAMERA, camera_id="cam_5"), "", NOW_MS))
        house.driven.do(store.write(add_event, tenant_id, "cam_5", f"new{number}", NOW_MS + 10 + number))
        if number == 2:
            house.driven.do(mine.write(cameras.remove, "cam_5", "", NOW_MS))
    found = house.driven.do(mine.read(event_search.facets, SearchFilter(from_ms=NOW_MS + 10)))
    there = [(one.value, one.count) for one in found.facets["camera"]]
    assert (found.counted, there) == (4, [("cam_5", 1)])
    assert house.search(SearchFilter(camera_ids=("cam_5",))) == ["new3"]
    house.driven.do(mine.write(cameras.remove, "cam_5", "", NOW_MS))
    gone = house.driven.do(mine.read(event_search.facets, SearchFilter(from_ms=NOW_MS + 10)))
    house.driven.do(store.write(execute, "DELETE FROM events WHERE event_uuid LIKE 'new%'", {}))
    assert (gone.counted, gone.facets["camera"]) == (4, ())


def test_facets_say_when_they_did_not_count_all(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_search, "FACETS_MAX", 10)
    found = house.driven.do(house.driven.store.as_(house.admin).read(event_search.facets, SearchFilter()))
    assert (found.counted, found.is_complete) == (10, False)
    assert found.oldest_at == house.events[9].start_at


def test_pages_neither_skip_nor_repeat_while_events_come(house: House) -> None:
    asked = SearchFilter(severity_min=1)
    mine = house.driven.store.as_(house.admin)
    seen: list[str] = []
    before = None
    tenant_id = house.admin.tenant_id
    for number in range(EVENTS):
        page = house.driven.do(mine.read(event_search.search, asked, before, 4))
        seen += [one.event.event_uuid for one in page.found]
        newer = (tenant_id, "cam_1", f"new{number}", NOW_MS + 1 + number, (), EventRow(severity_max=2))
        house.driven.do(house.driven.store.write(add_event, *newer))
        before = page.next_before
        if before is None:
            break
    house.driven.do(house.driven.store.write(execute, "DELETE FROM events WHERE event_uuid LIKE 'new%'", {}))
    assert seen == expected(house, asked)


def test_what_comes_within_a_page_makes_it_repeat_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements of one read see what came between them, and where a step ended is asked after what is on it."""
    if house.driven.store.dialect is Dialect.SQLITE:
        pytest.skip("all statements of a read see the same rows")
    shorten(monkeypatch)
    store, tenant_id = house.driven.store, house.admin.tenant_id
    asked = SearchFilter(from_ms=NOW_MS + 100, unknown=False)
    for number in range(20):
        house.driven.do(store.write(add_event, tenant_id, "cam_1", f"new{number:02d}", NOW_MS + 100 + number))
    end_of_step = event_walks.Walker._end_of_step
    later = iter(range(20, 60))

    async def busy(walker: Any, *args: Any) -> Any:
        at_ms = NOW_MS + 100 + next(later)
        await store.write(add_event, tenant_id, "cam_1", f"new{at_ms}", at_ms)
        return await end_of_step(walker, *args)

    monkeypatch.setattr(event_walks.Walker, "_end_of_step", busy)
    found = house.search(asked, limit=50)
    house.driven.do(store.write(execute, "DELETE FROM events WHERE event_uuid LIKE 'new%'", {}))
    assert [one for one in found if len(one) == len("new00")] == [f"new{number:02d}" for number in range(19, -1, -1)]


def test_hidden_tags_neither_narrow_nor_count_for_viewers(house: House) -> None:
    assert house.search(SearchFilter(tags=("behavior.x",)), house.viewer) == []
    assert house.search(SearchFilter(tags=("behavior.x",)))
    theirs = house.driven.store.as_(house.viewer)
    found = house.driven.do(theirs.read(event_search.facets, SearchFilter()))
    assert {one.value for one in found.facets["tag"]} == {"carry.bag", "top_color.red"}
    page = house.driven.do(theirs.read(event_search.search, SearchFilter(), None, 200))
    assert all("behavior.x" not in one.event.tags for one in page.found)


@pytest.mark.parametrize("field", ["text", "case"])
def test_text_and_cases_are_for_investigators(house: House, field: str) -> None:
    asked = SearchFilter(text="red") if field == "text" else SearchFilter(case_uuid=house.case_uuids[0])
    theirs = house.driven.store.as_(house.viewer)
    for operation in (theirs.read(event_search.search, asked, None, 5), theirs.read(event_search.facets, asked)):
        with pytest.raises(Forbidden, match=field):
            house.driven.do(operation)


def test_what_was_found_in_a_text_is_shown(house: House) -> None:
    mine = house.driven.store.as_(house.admin)
    page = house.driven.do(mine.read(event_search.search, SearchFilter(text="赤い服"), None, 200))
    by_uuid = {one.event_uuid: one for one in house.events}
    for one in page.found:
        known = by_uuid[one.event.event_uuid]
        kinds = {passage.kind for passage in one.passages}
        assert kinds == {
            *(["memo"] if known.memo == MEMOS[0] else []),
            *(["note"] if known.case == 0 else []),
        }
        assert all("赤い服" in passage.excerpt for passage in one.passages)
        assert all(passage.case_uuid == house.case_uuids[0] for passage in one.passages if passage.kind == "note")
    plain = house.driven.do(mine.read(event_search.search, SearchFilter(), None, 200))
    assert all(one.passages == () for one in plain.found)


BAD = [
    (SearchFilter(camera_ids=("cam_9",)), NotFound, "cam_9"),
    (SearchFilter(sites=("nowhere",)), NotFound, "nowhere"),
    (SearchFilter(case_uuid="no-such"), NotFound, "no-such"),
    (SearchFilter(text="。。"), BadInput, "no letter"),
]


@pytest.mark.parametrize(("asked", "error", "named"), BAD)
def test_what_is_not_there_is_named(house: House, asked: SearchFilter, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        house.search(asked)


def test_of_two_long_ways_the_one_that_reaches_back_further_is_taken(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have more events than are counted. On one of them fewer lie between those that are asked for."""
    shorten(monkeypatch)
    monkeypatch.setattr(event_walks, "COMPARED_MAX", 2)
    often, seldom = ("x.often", "notify_safe"), ("x.seldom", "notify_safe")
    store, tenant_id = house.driven.store, house.admin.tenant_id
    for number in range(32):
        tags = (often, seldom) if number % 4 == 0 else (often,)
        added = (tenant_id, "cam_1", f"way{number}", NOW_MS + 100 + number, tags)
        house.driven.do(store.write(add_event, *added))
    mine = store.as_(house.admin)
    pages = [
        house.driven.do(mine.read(event_search.search, SearchFilter(tags=tags), None, 50))
        for tags in (("x.often", "x.seldom"), ("x.seldom", "x.often"))
    ]
    house.driven.do(store.write(execute, "DELETE FROM event_tags WHERE tag_id LIKE 'x.%'", {}))
    house.driven.do(store.write(execute, "DELETE FROM events WHERE event_uuid LIKE 'way%'", {}))
    newest_first = [f"way{number}" for number in range(28, -1, -4)]
    assert [[one.event.event_uuid for one in page.found] for page in pages] == [newest_first] * 2


def test_who_is_held_to_a_place_of_another_tenant_finds_nothing(house: House) -> None:
    places = house.driven.do(house.driven.store.read(_foreign_places, house.admin.tenant_id))
    held = [replace(house.admin, site_ids=frozenset(one[0] for one in places))]
    held.append(replace(house.admin, site_ids=frozenset(), camera_keys=frozenset(one[1] for one in places)))
    for who in held:
        assert house.search(SearchFilter(), who) == []
        assert house.driven.do(house.driven.store.as_(who).read(event_search.facets, SearchFilter())).counted == 0


async def _foreign_places(tx: Tx, tenant_id: int) -> list[tuple[int, int]]:
    rows = await tx.all("SELECT site_id, camera_key FROM events WHERE tenant_id <> :tenant_id", tenant_id=tenant_id)
    assert rows
    return [(row["site_id"], row["camera_key"]) for row in rows]


def test_out_of_reach_is_not_there(house: House) -> None:
    with pytest.raises(NotFound, match="cam_1"):
        house.search(SearchFilter(camera_ids=("cam_1",)), house.northern)
    with pytest.raises(NotFound, match="main"):
        house.search(SearchFilter(sites=("main",)), house.northern)
    nowhere = replace(house.admin, site_ids=frozenset())
    assert house.search(SearchFilter(), nowhere) == []
    assert house.search(SearchFilter(case_uuid=house.spare_case)) == []
    with pytest.raises(BadInput, match="cursor"):
        house.driven.do(house.driven.store.as_(house.admin).read(event_search.search, SearchFilter(), "x", 5))


def test_a_review_that_holds_is_shown_to_who_made_it(house: House) -> None:
    store, tenant_id = house.driven.store, house.admin.tenant_id
    incident_id = house.driven.do(store.write(add_incident, tenant_id, "cam_1", "i1", NOW_MS + 5))
    row = EventRow(incident_id=incident_id)
    house.driven.do(store.write(add_event, tenant_id, "cam_1", "new-reviewed", NOW_MS + 5, (), row))
    house.driven.do(store.write(_reviewed, tenant_id, incident_id))
    user_id = house.driven.do(store.read(_a_user))
    reviewer = store.as_(replace(house.admin, user_id=user_id))
    mine = house.driven.do(reviewer.read(event_search.search, SearchFilter(), None, 1)).found[0]
    theirs = house.driven.do(store.as_(house.admin).read(event_search.search, SearchFilter(), None, 1)).found[0]
    house.driven.do(store.write(execute, "DELETE FROM events WHERE event_uuid = 'new-reviewed'", {}))
    assert (mine.event.incident_uuid, mine.reviewed_at, theirs.reviewed_at) == ("i1", 99, None)


async def _reviewed(tx: Tx, tenant_id: int, incident_id: int) -> None:
    user_id = await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, role, language, created_at) "
        "VALUES (:tenant_id, 'u', 'u', 'viewer', 'en', 1) RETURNING user_id",
        tenant_id=tenant_id,
    )
    await tx.run(
        "INSERT INTO incident_reviews (incident_id, user_id, tenant_id, severity, reviewed_at) "
        "VALUES (:incident_id, :user_id, :tenant_id, 3, 99)",
        incident_id=incident_id,
        user_id=user_id,
        tenant_id=tenant_id,
    )


async def _a_user(tx: Tx) -> int:
    row = await tx.one("SELECT user_id FROM users WHERE login = 'u'")
    assert row is not None
    return int(row["user_id"])
