"""/metrics: for whom it is, what it tells, and that the docs, the dashboard and the alerts know the same names."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from camserver.base import figures
from camserver.base.errors import StoreUnavailable
from camserver.config import load
from camserver.domain.availability import AvailabilityPolicy, Share
from camserver.objects.local import LocalObjects
from camserver.services.web.figures import MEANINGS, WORKER_PREFIX, InstallationFigures
from camserver.store import Dialect, Store, Tx, tenants
from camserver.store import figures as rows
from tests.rig.clock import ManualClock
from tests.rig.processes import REPOSITORY
from tests.services.web.rig import running_web
from tests.store.any_rows import fill

TOKEN = "a-token-for-prometheus"
NOW_MS = 1_800_000_000_000
# What workers say of themselves; the docs list the seeds' own names.
SEED_NAMES = {
    *("decode_fps", "detect_fps", "latency_ms_p50", "latency_ms_p95", "dropped_frames", "ringbuf_seconds"),
    "lease_renew_rtt_ms",
}


def names_of(text: str) -> set[str]:
    return {family.name for family in text_string_to_metric_families(text)}


async def test_it_is_for_this_machine_or_the_token(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    if store.dialect.value != "sqlite":
        pytest.skip("who may ask does not depend on the database")
    async with running_web(store, clock, tmp_path, {"CAMSERVER_METRICS_TOKEN": TOKEN}) as web:
        browser = web.browser()
        told = await browser.http.get(f"{web.url}/metrics")
        text = await told.text()
        assert told.status == 200
        assert told.headers["content-type"] == figures.CONTENT_TYPE
        assert {
            "camserver_up",
            "camserver_build_info",
            "camserver_leases_active",
            "camserver_jobs_waiting",
        } <= names_of(text)
        forwarded = {"X-Forwarded-For": "192.0.2.1"}
        for headers, expected in (
            (forwarded, 401),
            ({**forwarded, "Authorization": f"Bearer {TOKEN}"}, 200),
            ({**forwarded, "Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
        ):
            answer = await browser.http.get(f"{web.url}/metrics", headers=headers)
            assert answer.status == expected


async def _some_rows(tx: Tx) -> None:
    await tx.run(
        "UPDATE workers SET last_seen_at = :now_ms, metrics = :metrics", now_ms=NOW_MS - 1000, metrics=METRICS
    )
    await tx.run("UPDATE cameras SET enabled = 1, deleted_at = NULL, created_at = 1")
    await tx.run("UPDATE sites SET timezone = 'Asia/Tokyo'")
    await tx.run("UPDATE frames SET received_at = :now_ms", now_ms=NOW_MS)
    await tx.run(
        "INSERT INTO analyzers (dispatcher, url, state, seen_at, latency_ms) "
        "VALUES ('d', 'http://a', 'closed', :at, 20)",
        at=NOW_MS,
    )
    await tx.run("INSERT INTO streamers (streamer_id, total_units, reported_at) VALUES ('s', 50, :at)", at=NOW_MS)


METRICS = json.dumps({"decode_fps": 2.5, "cameras": 3})


async def test_figures_come_from_the_rows_of_each_database(store: Store) -> None:
    home = await store.write(tenants.ensure_home, 1)
    await store.write(fill, home)
    await store.write(_some_rows)
    found = await store.read(rows.read, NOW_MS, 30_000)
    names = {sample.name for sample in found}
    assert {name for name in names if name not in MEANINGS} == {"worker_decode_fps", "worker_cameras"}
    by_name = {sample.name: sample for sample in found}
    assert by_name["worker_decode_fps"].value == 2.5
    assert by_name["worker_up"].value == 1
    assert by_name["analyzer_latency_seconds"].value == 0.02
    share, short = await store.read(rows.availability, AvailabilityPolicy(), NOW_MS)
    assert share.wanted > 0
    assert (share.seen, short) == (0, 1), "a camera that nobody looked at"
    assert isinstance(share, Share)


async def _move_rows(tx: Tx) -> None:
    at = NOW_MS - 7_000
    await tx.run("UPDATE inference_jobs SET status = 'queued', created_at = :at", at=at)
    await tx.run("UPDATE deliveries SET status = 'delayed', created_at = :at", at=at)
    await tx.run(
        "UPDATE camera_sessions SET lease_expires_at = :until, worker_key = (SELECT min(worker_key) FROM workers)",
        until=NOW_MS + 1,
    )
    await tx.run("UPDATE workers SET status = 'DRAINING', last_seen_at = :at", at=NOW_MS - 31_000)
    await tx.run("UPDATE modal_leases SET streamer_id = 's', valid_until = :until, units = 3", until=NOW_MS + 1)
    await tx.run("UPDATE streamers SET requests_total = 9, rejections_total = 2, overloaded = 1")
    await tx.run("UPDATE camera_usage SET bytes = 10, pictures = 4, day_bytes = 5")
    await tx.run("UPDATE scoring_runs SET status = 'completed', calls = 6, cost_micro = 2500000")
    await tx.run("UPDATE analyzers SET state = 'open', in_flight = 2")


async def test_figures_follow_the_rows(sqlite_store: Store) -> None:
    home = await sqlite_store.write(tenants.ensure_home, 1)
    await sqlite_store.write(fill, home)
    await sqlite_store.write(_some_rows)
    await sqlite_store.write(_move_rows)
    found = await sqlite_store.read(rows.read, NOW_MS, 30_000)
    told = {(one.name, dict(one.labels).get("status") or dict(one.labels).get("state")): one.value for one in found}
    assert told["jobs_waiting", "queued"] == told["deliveries_waiting", "delayed"] == 1
    assert told["jobs_oldest_seconds", None] == told["deliveries_oldest_seconds", None] == 7
    assert told["leases_active", None] == 1
    assert (told["worker_up", None], told["workers_silent", None], told["worker_state", "DRAINING"]) == (0, 1, 1)
    assert told["worker_cameras_held", None] == 1
    assert ("worker_decode_fps", None) not in told, "what a silent worker said is no news"
    assert told["admission_viewings", None] >= 1
    assert told["admission_units_used", None] >= 3
    assert (told["admission_requests_total", None], told["admission_rejections_total", None]) == (9, 2)
    assert told["streamer_overloaded", None] == 1
    assert (told["kept_bytes", None], told["kept_pictures", None], told["kept_day_bytes", None]) == (10, 4, 5)
    assert (told["scoring_calls", "completed"], told["scoring_cost_usd", "completed"]) == (6, 2.5)
    assert (told["analyzer_state", "open"], told["analyzer_in_flight", None]) == (1, 2)


async def test_availability_moves_with_the_hours(sqlite_store: Store) -> None:
    home = await sqlite_store.write(tenants.ensure_home, 1)
    await sqlite_store.write(fill, home)
    await sqlite_store.write(_some_rows)
    policy = AvailabilityPolicy()
    before, _ = await sqlite_store.read(rows.availability, policy, NOW_MS)
    await sqlite_store.write(_seen_all_the_time)
    after, short = await sqlite_store.read(rows.availability, policy, NOW_MS)
    assert (before.ratio, after.ratio, short) == (0.0, 1.0, 0)
    assert policy.objective == 0.99
    # What came since is not counted yet, and held against nobody.
    await sqlite_store.write(_nothing_counted_since_yesterday)
    behind, _ = await sqlite_store.read(rows.availability, policy, NOW_MS)
    assert behind.ratio == 1.0


async def _nothing_counted_since_yesterday(tx: Tx) -> None:
    day_ms = 24 * 3_600_000
    await tx.run("UPDATE frames SET received_at = :at", at=NOW_MS - day_ms)
    await tx.run("DELETE FROM hourly_stats WHERE hour_at > :at", at=NOW_MS - day_ms)


async def _seen_all_the_time(tx: Tx) -> None:
    row = await tx.one("SELECT * FROM hourly_stats LIMIT 1")
    camera = await tx.one("SELECT camera_key FROM cameras")
    assert row is not None
    assert camera is not None
    names = [name for name in dict(row) if name != "hour_at"]
    await tx.run("DELETE FROM hourly_stats")
    hour_ms = 3_600_000
    newest = NOW_MS // hour_ms * hour_ms
    for number in range(9 * 24):
        values = {**{name: row[name] for name in names}, "hour_at": newest - number * hour_ms, "cells": ""}
        values |= {"looks": 12, "looks_failed": 0, "camera_key": camera["camera_key"]}
        columns = ", ".join(values)
        await tx.run(
            f"INSERT INTO hourly_stats ({columns}) VALUES ({', '.join(f':{name}' for name in values)})", **values
        )


def test_counting_holds_to_closed_lists() -> None:
    figures.count_request("BREW", 200, 0.1)
    figures.count_request("GET", None, 0.1)
    text = figures.own_text().decode()
    assert 'method="other"' in text
    assert "BREW" not in text


def shipped(name: str) -> str:
    return (REPOSITORY / "deploy" / "observability" / name).read_text()


def told_names() -> set[str]:
    own = {family.name for family in text_string_to_metric_families(figures.own_text().decode())}
    counters = {f"{name}_total" for name in own}
    parts = {f"{name}_{part}" for name in own for part in ("bucket", "sum", "count")}
    rows_told = {f"camserver_{name}" for name in MEANINGS} | {
        f"camserver_{WORKER_PREFIX}{name}" for name in SEED_NAMES
    }
    return own | counters | parts | rows_told


def test_the_page_of_metrics_lists_every_one() -> None:
    page = (REPOSITORY / "docs" / "ref" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(camserver_\w+)", page, re.MULTILINE))
    own = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(figures.own_text().decode())
        if family.name.startswith("camserver_")
    }
    assert listed == own | {f"camserver_{name}" for name in MEANINGS} | {f"camserver_worker_{n}" for n in SEED_NAMES}


def test_the_dashboard_and_the_alerts_ask_for_what_there_is() -> None:
    board = json.loads(shipped("grafana-dashboard.json"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 20
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    rules = yaml.safe_load(shipped("alerts.yaml"))["groups"]
    alerts = [rule for group in rules for rule in group["rules"]]
    for rule in alerts:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert {"summary", "description", "summary_ja"} <= set(rule["annotations"])
        assert rule["labels"]["severity"] in ("page", "ticket")
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    known = told_names()
    for expression in (*asked, *(rule["expr"] for rule in alerts)):
        used = set(re.findall(r"\bcamserver_\w+", expression))
        assert used <= known, expression
        assert expression.count("(") == expression.count(")")


Series = dict[str, set[str]]  # by name: its labels


def asked_series() -> Series:
    """What the dashboard, the alerts and their cases name."""
    board = json.loads(shipped("grafana-dashboard.json"))
    rules = yaml.safe_load(shipped("alerts.yaml"))["groups"]
    cases = yaml.safe_load(shipped("alerts_test.yaml"))["tests"]
    texts = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    texts += [rule["expr"] for group in rules for rule in group["rules"]]
    texts += [one["series"] for case in cases for one in case["input_series"]]
    found: Series = {}
    for name, labels in re.findall(r"\b(camserver_\w+)(\{[^}]*\})?", " ".join(texts)):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*=~?", labels))
    return found


def scraped_series(text: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def test_a_scrape_has_every_series_that_is_asked_for(sqlite_store: Store, tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    home = await sqlite_store.write(tenants.ensure_home, 1)
    await sqlite_store.write(fill, home)
    await sqlite_store.write(_some_rows)
    await sqlite_store.write(_move_rows)
    await sqlite_store.write(_is_heard)
    # What this process counts by labels that are known only when it happens.
    figures.deliveries.labels("message", "done")
    figures.begin_at_zero(figures.job_failures, "timeout")
    async with running_web(sqlite_store, clock, tmp_path) as web:
        browser = web.browser()
        await browser.http.get(f"{web.url}/metrics")  # requests are counted when they are over
        told = await browser.http.get(f"{web.url}/metrics")
        scraped = scraped_series(await told.text())
    asked = asked_series()
    assert len(asked) > 35
    assert {name: labels for name, labels in asked.items() if name not in scraped} == {}
    of_prometheus = {"instance", "job", "le"}
    for name, labels in asked.items():
        assert labels - of_prometheus <= scraped[name], name


async def _is_heard(tx: Tx) -> None:
    metrics = json.dumps(dict.fromkeys(SEED_NAMES, 1.5))
    await tx.run(
        "UPDATE workers SET status = 'ACTIVE', last_seen_at = :at, metrics = :metrics", at=NOW_MS, metrics=metrics
    )


class AwayStore:
    dialect = Dialect.SQLITE

    async def read(self, *_: object) -> object:
        raise StoreUnavailable("away")


async def test_a_database_that_is_away_is_told(clock: ManualClock, tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path / "o")
    told = InstallationFigures(AwayStore(), objects, clock, load(None, {}, tmp_path))  # type: ignore[arg-type]
    text = (await told.text()).decode()
    assert "camserver_up 0.0" in text
    assert "process_cpu_seconds_total" in text
