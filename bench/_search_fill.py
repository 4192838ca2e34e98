"""Rows of a house of 200 cameras at one look a minute, made fast: by the database itself, or in bulk.

Every tenth look is an event's. What is older is added below what is newer, so that the same questions can be asked
of few rows and of many; a day looks the same in both.
"""

import json
import random
from dataclasses import dataclass

from camserver.domain.texts import comparable, tokens_of
from camserver.store import Sql, Store, Tx, hourly_stats
from tests.store.scenery import NOW_MS, Scene, furnish

CAMERAS = 200
SITES = 4
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
FRAMES_PER_EVENT = 10
# A language model is asked rarely: unknown events only, and within a budget.
EVENTS_PER_MEMO = 50
PRIMARY_EVENTS = ("human", "human", "human", "vehicle", "vehicle", "animal", "object", "unknown", "hazard", "human")
RARE_TAG = "hazard.smoke"
WORDS_JA = (
    "赤い服の男性",
    "白いトラック",
    "荷物を持った人",
    "犬を連れた女性",
    "傘をさした人物",
    "自転車",
    "配達員",
    "黒い鞄",
)
WORDS_EN = ("a man in a red jacket", "white delivery truck", "carrying a parcel", "two people near the gate",
            "umbrella", "bicycle", "looking into the window", "a dog without a leash")  # fmt: skip
RARE_WORDS = "緑色の脚立 stepladder"


@dataclass(frozen=True, slots=True)
class House:
    scene: Scene
    sites: tuple[int, ...]


async def build(store: Store) -> House:
    scene = await furnish(store, CAMERAS)
    sites = await store.write(_more_sites, scene)
    await store.write(_count_all)
    return House(scene, sites)


async def _count_all(tx: Tx) -> None:
    """As it is in earnest: hours are counted up to the newest look."""
    await tx.run(
        "INSERT INTO settings (tenant_id, name, value, updated_at) VALUES (0, :name, :text, 0)",
        name=hourly_stats.CURSOR,
        text=json.dumps({"frame_id": TOP, "seqs": {}, "final_hour": 0}),
    )


async def _more_sites(tx: Tx, scene: Scene) -> tuple[int, ...]:
    sites = [scene.site_id]
    for number in range(1, SITES):
        sites.append(
            await tx.insert(
                "INSERT INTO sites (tenant_id, site_uuid, name, created_at) "
                "VALUES (:tenant_id, :name, :name, 0) RETURNING site_id",
                tenant_id=scene.tenant_id,
                name=f"site-{number}",
            )
        )
    # The scenery's cameras have consecutive keys.
    for number, site_id in enumerate(sites):
        await tx.run(
            "UPDATE cameras SET site_id = :site_id, created_at = 0 WHERE camera_key % :sites = :number",
            site_id=site_id,
            sites=SITES,
            number=number,
        )
    return tuple(sites)


async def fill(store: Store, house: House, first: int, last: int, memo_random: random.Random) -> None:
    """Looks `first` to before `last`, and all that comes with them. The oldest come first, as they do in earnest."""
    for begin in reversed(range(first, last, CHUNK)):
        end = min(begin + CHUNK, last)
        await store.write(_fill_looks, house, begin, end)
        await store.write(_fill_events, house, begin // FRAMES_PER_EVENT, end // FRAMES_PER_EVENT)
    if first == 0:
        await store.write(_open_newest)
    first_hour, last_hour = (-(-looks // (60 * CAMERAS)) for looks in (first, last))
    await store.write(_fill_hours, house, first_hour, last_hour)
    events = range(first // FRAMES_PER_EVENT, last // FRAMES_PER_EVENT)
    memos = [event for event in events if event % EVENTS_PER_MEMO == 0]
    for begin in range(0, len(memos), MEMOS_CHUNK):
        chosen = memos[begin : begin + MEMOS_CHUNK]
        await store.write(_fill_memos, house, [(event, _memo(memo_random, event)) for event in chosen])


async def _open_newest(tx: Tx) -> None:
    await tx.run(
        "UPDATE events SET open_key = camera_key, state = 'open', end_at = NULL "
        f"WHERE event_id > {TOP - CAMERAS // 4}"
    )


FILLED = (
    "frames",
    "events",
    "event_tags",
    "incidents",
    "hourly_stats",
    "llm_reviews",
    "search_tokens",
    "search_texts",
)
CHUNK = 100_000
# Keys grow with time, as they do in earnest: the newest look has this one.
TOP = 1_000_000_000
MEMOS_CHUNK = 500


def _memo(chance: random.Random, event: int) -> str:
    words = WORDS_JA if event % (2 * EVENTS_PER_MEMO) else WORDS_EN
    between = "、" if words is WORDS_JA else ", "
    text = between.join(chance.choice(words) for _ in range(6))
    return f"{text}{between}{RARE_WORDS}" if event % (200 * EVENTS_PER_MEMO) == 0 else text


# Look i is of minute i / 200 before now and of camera i % 200. Event j is of camera j % 200, too: one in ten minutes.
# Spread over its values without a pattern that cameras or minutes share.
_DICE = "((n.i * 7919) % 1000)"


def over(text: str, first: int, last: int) -> Sql:
    """A statement over n(i) from `first` to before `last`, the oldest first. `{n}`: those numbers, `{id}`: a public
    id, `{/}`: whole division."""
    sqlite = text.replace("{n}", f"(WITH RECURSIVE n(i) AS (SELECT {last - 1} UNION ALL SELECT i - 1 FROM n "
                          f"WHERE i > {first}) SELECT i FROM n) AS n")  # fmt: skip
    postgres = text.replace("{n}", f"generate_series({last - 1}::bigint, {first}::bigint, -1) AS n(i)")
    mariadb = text.replace("{n}", f"(SELECT CAST(seq AS SIGNED) AS i FROM seq_{last - 1}_to_{first}) AS n").replace(
        "{/}", "DIV"
    )
    return Sql(
        sqlite=sqlite.replace("{/}", "/").replace("{id}", f"printf('%012d', {TOP} - n.i)"),
        postgres=postgres.replace("{/}", "/").replace("{id}", f"lpad(({TOP} - n.i)::text, 12, '0')"),
        mariadb=mariadb.replace("{id}", f"lpad({TOP} - n.i, 12, '0')"),
    )


def _primary(column: str) -> str:
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(PRIMARY_EVENTS))
    return f"CASE {column} {cases} END"


async def _fill_looks(tx: Tx, house: House, first: int, last: int) -> None:
    is_seen = f"CASE WHEN ((n.i {{/}} {CAMERAS}) - (n.i % {CAMERAS})) % {FRAMES_PER_EVENT} = 0 THEN 1 ELSE 0 END"
    at = f"{NOW_MS} - (n.i {{/}} {CAMERAS}) * {MINUTE_MS} - (n.i % {CAMERAS}) * 300"
    await tx.run(
        over(
            f"""
INSERT INTO frames (frame_id, frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, worker_at,
  received_at, collector_status, verdict, diff_ratio, luma_delta, blur_score, analyzed, detected, primary_event,
  severity, event_id, full_w, full_h, infer_w, infer_h, infer_hash64_hex, epoch_id, infer_bytes)
SELECT {TOP} - n.i, {{id}}, :tenant_id, c.site_id, c.camera_key, 1, {2**40} - n.i {{/}} {CAMERAS}, {at}, {at},
  {at} + 150, CASE WHEN n.i % 97 = 0 THEN 'timeout' ELSE 'ok' END,
  CASE WHEN {is_seen} = 1 THEN 'analyze' ELSE 'skip' END,
  0.01, 0.5, 12.5, {is_seen}, {is_seen}, CASE WHEN {is_seen} = 1 THEN 'human' ELSE 'none' END, {is_seen},
  CASE WHEN {is_seen} = 1 THEN {TOP} - ((n.i {{/}} {CAMERAS}) {{/}} {FRAMES_PER_EVENT}) * {CAMERAS} - n.i % {CAMERAS}
    ELSE NULL END,
  1920, 1080, 640, 360, '0123456789abcdef', :epoch_id, CASE WHEN n.i % 97 = 0 THEN NULL ELSE 24000 END
FROM {{n}} JOIN cameras c ON c.camera_key = :first_camera + n.i % {CAMERAS}""",
            first,
            last,
        ),
        tenant_id=house.scene.tenant_id,
        epoch_id=house.scene.epoch_id,
        first_camera=house.scene.camera_keys[0],
    )


async def _fill_events(tx: Tx, house: House, first: int, last: int) -> None:
    minute = f"((n.i {{/}} {CAMERAS}) * {FRAMES_PER_EVENT} + (n.i % {CAMERAS}) % {FRAMES_PER_EVENT})"
    at = f"{NOW_MS} - {minute} * {MINUTE_MS} - (n.i % {CAMERAS}) * 300"
    severity = f"CASE WHEN {_DICE} < 5 THEN 3 WHEN {_DICE} < 50 THEN 2 WHEN {_DICE} < 400 THEN 1 ELSE 0 END"
    cameras = f"FROM {{n}} JOIN cameras c ON c.camera_key = :first_camera + n.i % {CAMERAS}"
    params = {"tenant_id": house.scene.tenant_id, "first_camera": house.scene.camera_keys[0]}
    statements = [
        f"""
INSERT INTO incidents (incident_id, incident_uuid, tenant_id, site_id, camera_key, start_at, last_seen_at,
  severity_max, event_count, last_event_id, created_at, updated_at)
SELECT {TOP} - n.i, {{id}}, :tenant_id, c.site_id, c.camera_key, {at}, {at} + 30000, {severity}, 1, {TOP} - n.i, {at},
  {at} {cameras}""",
        f"""
INSERT INTO events (event_id, event_uuid, tenant_id, site_id, camera_key, incident_id, state, primary_event, start_at,
  last_seen_at, end_at, severity_max, confidence_max, best_frame_id, best_score, retention_class, frame_count,
  created_at, updated_at, unknown_flag)
SELECT {TOP} - n.i, {{id}}, :tenant_id, c.site_id, c.camera_key, {TOP} - n.i, 'closed',
  {_primary(f"{_DICE} % 10")}, {at}, {at} + 30000, {at} + 30000, {severity}, 0.8,
  {TOP} - {minute} * {CAMERAS} - n.i % {CAMERAS}, 900, 'normal',
  1, {at}, {at}, CASE WHEN {_DICE} % 10 = 7 THEN 1 ELSE 0 END
{cameras}""",
    ]
    for tag, group, share in (
        ("count.single", "notify_safe", f"{_DICE} < 600"),
        ("carry.bag", "notify_safe", f"{_DICE} % 3 = 0"),
        ("top_color.red", "notify_safe", f"{_DICE} % 5 = 1"),
        ("behavior.loitering", "investigation_only", f"{_DICE} % 11 = 0"),
        (RARE_TAG, "notify_safe", "n.i % 5000 = 77"),
    ):
        statements.append(
            f"""
INSERT INTO event_tags (event_id, tag_id, tenant_id, tag_group, camera_key, start_at)
SELECT {TOP} - n.i, '{tag}', :tenant_id, '{group}', c.camera_key, {at} {cameras} WHERE {share}"""
        )
    for statement in statements:
        await tx.run(over(statement, first, last), **params)


async def _fill_hours(tx: Tx, house: House, first: int, last: int) -> None:
    cells = "".join(f"o{int(number % 5 == 0)}{number % 2}" for number in range(12))
    if last <= first:
        return
    await tx.run(
        over(
            f"""
INSERT INTO hourly_stats (tenant_id, camera_key, hour_at, looks, looks_failed, analyzed, detected, unknown, events,
  severity_max, by_event, bytes, cells)
SELECT :tenant_id, c.camera_key, {NOW_MS // HOUR_MS * HOUR_MS} - n.i * {HOUR_MS}, 60, 1, 6, 6, 1, 6, 1,
  '{{"human": 6}}', 1440000, '{cells}'
FROM {{n}} CROSS JOIN cameras c WHERE c.tenant_id = :tenant_id""",
            first,
            last,
        ),
        tenant_id=house.scene.tenant_id,
    )


async def _fill_memos(tx: Tx, house: House, memos: list[tuple[int, str]]) -> None:
    rows = {
        row["event_id"]: row
        for row in await tx.all(
            "SELECT event_id, start_at, camera_key FROM events WHERE event_id IN (:ids...)",
            ids=[TOP - event for event, _ in memos],
        )
    }
    tenant_id = house.scene.tenant_id
    await tx.at_once(
        "INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label, "
        "memo, created_at) "
        "VALUES (:uuid, :tenant_id, :camera_key, :event_id, 1, 'bench', 'bench', 'person', :memo, 5)",
        [
            {"uuid": f"r{event}", "tenant_id": tenant_id, "camera_key": rows[TOP - event]["camera_key"],
             "event_id": TOP - event, "memo": memo}
            for event, memo in memos
        ],
    )  # fmt: skip
    await tx.at_once(
        "INSERT INTO search_texts (kind, object_id, tenant_id, compared) "
        "VALUES ('memo', :event_id, :tenant_id, :text)",
        [{"event_id": TOP - event, "tenant_id": tenant_id, "text": comparable(memo)} for event, memo in memos],
    )
    await tx.at_once(
        "INSERT INTO search_tokens (tenant_id, kind, token, at, object_id) "
        "VALUES (:tenant_id, 'memo', :token, :at, :event_id)",
        [
            {"tenant_id": tenant_id, "token": token, "at": rows[TOP - event]["start_at"], "event_id": TOP - event}
            for event, memo in memos
            for token in sorted(tokens_of(memo))
        ],
    )
