"""Spans and figures in OpenTelemetry's shapes, and the exporters that send them. Imported only where that is on.

Figures are counted once, by Prometheus' library (base/figures.py); here they are put into the other shape, so both
ways of reading them tell the same numbers.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as OtlpMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from prometheus_client import Metric
from prometheus_client.samples import Sample

from camserver import __version__
from camserver.base.traces import SERVICE_OF, Span, Step

_SCOPE = InstrumentationScope("camserver", __version__)
_FLAGS = TraceFlags(TraceFlags.SAMPLED)
_KINDS = {Step.SEND: SpanKind.CLIENT, Step.RECORD: SpanKind.SERVER, Step.DELIVER: SpanKind.CLIENT}
_CUMULATIVE = AggregationTemporality.CUMULATIVE


class Wire:
    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        service_name: str,
        process: str,
        instance: str,
        timeout_sec: float,
    ) -> None:
        self._traces = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", headers=headers, timeout=timeout_sec)
        self._metrics = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", headers=headers, timeout=timeout_sec)
        self._started_ns = time.time_ns()
        self._resources = {
            service: Resource(_values(service_name, service, instance)) for service in {*SERVICE_OF.values(), process}
        }
        self._process = process

    def send_spans(self, spans: Sequence[Span]) -> bool:
        told = [span_told(span, self._resources[SERVICE_OF[span.step]]) for span in spans]
        return self._traces.export(told) is SpanExportResult.SUCCESS

    def send_figures(self, families: Iterable[Metric]) -> bool:
        now_ns = time.time_ns()
        metrics = [one for family in families if (one := metric_told(family, self._started_ns, now_ns)) is not None]
        scope = ScopeMetrics(_SCOPE, metrics, "")
        data = MetricsData([ResourceMetrics(self._resources[self._process], [scope], "")])
        return self._metrics.export(data) is MetricExportResult.SUCCESS

    def stop(self) -> None:
        """Ends what is under way; nothing is sent any more."""
        self._traces.shutdown()  # type: ignore[no-untyped-call]  # it has no types
        self._metrics.shutdown()


def _values(service_name: str, service: str, instance: str) -> dict[str, str | bool | int | float]:
    return {
        "service.namespace": service_name,
        "service.name": f"{service_name}-{service}",
        "service.version": __version__,
        "service.instance.id": instance,
    }


def span_told(span: Span, resource: Resource) -> ReadableSpan:
    parent = None if span.parent_id is None else SpanContext(span.trace_id, span.parent_id, True, _FLAGS)
    return ReadableSpan(
        span.step.value,
        SpanContext(span.trace_id, span.span_id, False, _FLAGS),
        parent,
        resource,
        attributes={f"camserver.{name}": value for name, value in span.ids.items()},
        kind=_KINDS.get(span.step, SpanKind.INTERNAL),
        status=Status(StatusCode.UNSET) if span.failed is None else Status(StatusCode.ERROR, span.failed),
        start_time=span.started_ns,
        end_time=span.ended_ns,
        instrumentation_scope=_SCOPE,
    )


def metric_told(family: Metric, started_ns: int, now_ns: int) -> OtlpMetric | None:
    """A family of Prometheus' as one metric; None when there is nothing in it, or of a kind that we don't have."""
    data: Sum | Gauge | Histogram
    if family.type == "histogram":
        points = _histogram_points(family.samples, family.name, started_ns, now_ns)
        data = Histogram(points, _CUMULATIVE)
        return OtlpMetric(family.name, family.documentation, family.unit, data) if points else None
    numbers = [_number(sample, started_ns, now_ns) for sample in family.samples if not _is_beginning(sample)]
    if not numbers:
        return None
    if family.type == "counter":
        return OtlpMetric(f"{family.name}_total", family.documentation, family.unit, Sum(numbers, _CUMULATIVE, True))
    if family.type in ("gauge", "info", "unknown"):
        name = f"{family.name}_info" if family.type == "info" else family.name
        return OtlpMetric(name, family.documentation, family.unit, Gauge(numbers))
    return None


def _is_beginning(sample: Sample) -> bool:
    return sample.name.endswith("_created")


def _number(sample: Sample, started_ns: int, now_ns: int) -> NumberDataPoint:
    return NumberDataPoint(dict(sample.labels), started_ns, now_ns, sample.value)


def _histogram_points(
    samples: Iterable[Sample], name: str, started_ns: int, now_ns: int
) -> Sequence[HistogramDataPoint]:
    """Prometheus counts up to each bound, OpenTelemetry between two."""
    bounds: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        key = tuple(sorted((label, value) for label, value in sample.labels.items() if label != "le"))
        if sample.name == f"{name}_bucket":
            bounds.setdefault(key, []).append((float(sample.labels["le"]), round(sample.value)))
        elif sample.name == f"{name}_sum":
            sums[key] = sample.value
    unknown: Any = None  # the smallest and the largest, which nobody kept
    points = []
    for key, pairs in bounds.items():
        counted = [count for _, count in sorted(pairs)]
        between = [count - before for count, before in zip(counted, [0, *counted], strict=False)]
        edges = [bound for bound, _ in sorted(pairs)][:-1]
        points.append(
            HistogramDataPoint(
                dict(key), started_ns, now_ns, counted[-1], sums.get(key, 0.0), between, edges, unknown, unknown
            )
        )
    return points
