"""Telemetry: what a collector gets, and that one which is slow, refuses or is away costs nobody anything."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from camserver.base import figures, telemetry, traces
from camserver.base.clock import StoreClock
from camserver.base.errors import BadSettings
from camserver.base.secrets import Secret, scrub
from camserver.base.telemetry import Telemetry, parse_headers
from camserver.base.traces import Span, Step
from tests.fakes.otlp import collecting
from tests.rig.polling import poll_async
from tests.rig.ports import free_port

FRAME = "0192f3a1-7b2c-7def-8123-456789abcdef"


def span(number: int = 1) -> Span:
    ids: dict[str, traces.Value] = {"camera_id": "entrance", "generation": 7}
    return Span(int(traces.trace_id_of(FRAME), 16), number, None, Step.LOOK, 1_000_000, 3_000_000, ids, None)


def dropped() -> float:
    return float(figures.REGISTRY.get_sample_value("camserver_telemetry_spans_dropped_total") or 0)


def exports(signal: str, outcome: str) -> float:
    labels = {"signal": signal, "outcome": outcome}
    return float(figures.REGISTRY.get_sample_value("camserver_telemetry_exports_total", labels) or 0)


def opened(url: str, headers: str = "") -> Telemetry:
    sender = Telemetry(url, parse_headers(Secret(headers)), "shop", "server")
    sender.start()
    return sender


def test_a_span_arrives_as_it_was() -> None:
    with collecting() as collector:
        sender = opened(collector.url, "Authorization=Bearer a-collectors-token, x-team = 7")
        sender.add(span())
        sender.close()
    (got,) = collector.spans
    assert (got.name, got.service, got.trace_id, got.parent_id) == ("look", "shop-worker", FRAME.replace("-", ""), "")
    assert got.attributes == {"camserver.camera_id": "entrance", "camserver.generation": 7}
    assert (got.started_ns, got.ended_ns, got.is_error) == (1_000_000, 3_000_000, False)
    assert collector.headers[0]["authorization"] == "Bearer a-collectors-token"
    assert collector.headers[0]["x-team"] == "7"
    assert "a-collectors-token" not in scrub("said back: Bearer a-collectors-token")


def test_figures_arrive_as_prometheus_tells_them() -> None:
    registry = CollectorRegistry()
    Counter("made", "What was made.", ["kind"], registry=registry).labels("a").inc(3)
    Gauge("level", "How high.", registry=registry).set(2.5)
    Info("build", "What it is.", registry=registry).info({"version": "1"})
    took = Histogram("took", "How long.", buckets=(1, 10), registry=registry)
    for value in (0.5, 5, 6, 100):
        took.observe(value)
    with collecting() as collector:
        sender = opened(collector.url)
        sender.tell(registry.collect())
        sender.close()
    ((labels, made),) = collector.metrics["made_total"]
    assert (labels, made.as_double) == ({"kind": "a"}, 3)
    assert collector.metrics["level"][0][1].as_double == 2.5
    assert collector.metrics["build_info"][0][0] == {"version": "1"}
    point = collector.metrics["took"][0][1]
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == ([1, 2, 1], [1, 10])
    assert (point.count, point.sum) == (4, 111.5)
    assert collector.resources[-1]["service.name"] == "shop-server"
    assert collector.resources[-1]["service.namespace"] == "shop"


def _fill(sender: Telemetry) -> None:
    for number in range(telemetry.WAITING_MAX + telemetry.BATCH_MAX + 100):
        sender.add(span(number + 1))


def test_a_slow_collector_costs_spans_and_nothing_else() -> None:
    before = dropped()
    with collecting(is_held=True) as collector:
        sender = opened(collector.url)
        _fill(sender)  # comes back at once, though nobody takes anything
        assert dropped() - before >= 100
        collector.held.set()
        sender.close()
    assert len(collector.spans) + (dropped() - before) >= telemetry.WAITING_MAX


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_collector_that_refuses_is_told_of_once(
    status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "BATCH_MAX", 1)
    before, failed = dropped(), exports("traces", "failed")
    with collecting(status) as collector:
        sender = opened(collector.url, "authorization=Bearer a-collectors-token")
        for _ in range(3):
            sender.add(span())
        sender.close()
    assert dropped() - before == 3
    assert exports("traces", "failed") - failed == 3
    said = [record for record in caplog.records if "collector" in record.getMessage()]
    assert len(said) == 1
    assert "a-collectors-token" not in caplog.text


def test_a_collector_that_is_away_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "CLOSE_SEC", 0.5)
    before = dropped()
    sender = opened(f"http://127.0.0.1:{free_port()}")
    sender.add(span())
    sender.tell([])
    sender.close()  # does not wait for its retries
    sender.add(span())
    assert dropped() - before >= 1


@dataclass(frozen=True)
class Chosen:
    endpoint: str | None
    headers: Secret | None = None
    sample_ratio: float = 1.0
    service_name: str = "camserver"
    metrics_every_sec: int = 1


async def test_it_is_on_as_long_as_it_runs() -> None:
    async with telemetry.running(Chosen(None), "server", StoreClock()):
        assert not traces.is_on()
    with collecting() as collector:
        async with telemetry.running(Chosen(collector.url), "control", StoreClock()):
            assert traces.is_on()
            traces.add(Step.RECORD, FRAME, traces.now_ns(), ids={"camera_id": "entrance"})

            async def told() -> Any:
                return "camserver_jobs_claimed_total" in collector.metrics

            await poll_async(told, "figures")
        assert not traces.is_on()
        assert [got.name for got in collector.spans] == ["record"]


async def test_figures_of_others_are_told_along() -> None:
    async def more() -> Any:
        registry = CollectorRegistry()
        Gauge("of_rows", "From rows.", registry=registry).set(4)
        return registry.collect()

    forget = figures.add_source(more)
    names = {family.name for family in await figures.families()}
    assert {"of_rows", "camserver_jobs_claimed"} <= names
    forget()
    assert "of_rows" not in {family.name for family in await figures.families()}


@pytest.mark.parametrize("text", ["token", "=x", "a b=c", "x=\x07"])
def test_headers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadSettings, match=r"telemetry\.headers"):
        parse_headers(Secret(text))


def test_no_headers_are_none() -> None:
    assert parse_headers(None) == parse_headers(Secret("")) == {}


def test_without_its_packages_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadSettings, match="opentelemetry-exporter-otlp-proto-http"):
        Telemetry("http://127.0.0.1:4318", {}, "camserver", "worker")


async def test_nothing_of_it_is_imported_while_it_is_off() -> None:
    code = (
        "import sys, json; import camserver.services.worker.service, camserver.base.traces;"
        "print(json.dumps([n for n in sys.modules if n.startswith(('opentelemetry.sdk', 'opentelemetry.exporter', "
        "'requests')) or n in ('camserver.base.telemetry', 'camserver.base.otlp')]))"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
