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
