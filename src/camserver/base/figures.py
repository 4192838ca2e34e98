"""Figures of this process for Prometheus: counted where things happen, told at `/metrics`.

Counting costs about a microsecond and waits for nobody. Labels are few and from closed lists; no camera, person or
path is one, so the number of series has a bound. Figures of the whole installation come from rows (store/figures.py),
told by web. docs/ref/metrics.md lists all of them; a test holds the two together.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

CONTENT_TYPE = CONTENT_TYPE_LATEST
# A second series for each that says when it began; the start of the process says the same.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


def _counter(name: str, what: str, *labels: str) -> Counter:
    return Counter(f"camserver_{name}", what, labels, registry=REGISTRY)


def _histogram(name: str, what: str, *labels: str) -> Histogram:
    return Histogram(f"camserver_{name}", what, labels, buckets=_SECONDS, registry=REGISTRY)


def begin_at_zero(counter: Counter, *values: str) -> None:
    """Of a counter with one label: told before anything was counted. Prometheus takes what a series begins with for
    nothing that happened, so the first trouble of its kind would raise no alert."""
    for value in values:
        counter.labels(value)


# Control
assign_attempts = _counter("assign_attempts", "Leases that this process tried to take for its workers.")
assign_success = _counter("assign_success", "Leases that it took.")
assign_moves = _counter("assign_moves", "Cameras whose holder was asked to let go for another worker.")
reclaims = _counter("reclaims", "Leases that ended: soft, asked back or let go; hard, ran out.", "kind")
heartbeats = _counter("heartbeats", "Heartbeats heard from workers.")
heartbeats_missing = _counter("heartbeats_missing", "Workers found silent for longer than they may be.")
start_timeouts = _counter("start_timeouts", "Cameras that did not start in time.")
workers_connected = Gauge("camserver_workers_connected", "Workers whose socket this process has.", registry=REGISTRY)
frames_recorded = _counter("frames_recorded", "Looks recorded, by whether they were live or late.", "kind")

# Dispatcher
jobs_claimed = _counter("jobs_claimed", "Jobs that this dispatcher claimed.")
jobs_done = _counter("jobs_done", "Jobs whose outcome it wrote.")
job_failures = _counter("job_failures", "Attempts of jobs that failed, by kind of error.", "kind")
fences_lost = _counter("fences_lost", "Jobs and deliveries that somebody else had taken over meanwhile.", "what")
analysis_seconds = _histogram("analysis_seconds", "How long an analyzer took for one picture.")
deliveries = _counter("deliveries", "Attempts of deliveries, by kind and how they ended.", "kind", "outcome")

begin_at_zero(reclaims, "soft", "hard")
begin_at_zero(frames_recorded, "live", "late")
begin_at_zero(fences_lost, "job", "delivery")

# Telemetry (base/telemetry.py)
telemetry_exports = _counter("telemetry_exports", "Batches for the collector of telemetry.", "signal", "outcome")
telemetry_spans_dropped = _counter("telemetry_spans_dropped", "Spans dropped: the collector was slow or away.")

# Web
http_requests = _counter("http_requests", "Requests to web, by method and class of status.", "method", "status")
http_seconds = _histogram("http_request_seconds", "How long web took for a request.", "method")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "SOCKET"})


def count_request(method: str, status: int | None, duration_sec: float) -> None:
    """Sockets are counted and not timed: they last as long as somebody looks."""
    requests, seconds = _of_requests(method if method in _METHODS else "other", status and status // 100)
    requests.inc()
    if seconds is not None:
        seconds.observe(duration_sec)


@lru_cache(maxsize=128)
def _of_requests(method: str, hundreds: int | None) -> tuple[Counter, Histogram | None]:
    """Looked up once: finding them by their labels takes longer than counting."""
    requests = http_requests.labels(method, "none" if hundreds is None else f"{hundreds}xx")
    return requests, None if method == "SOCKET" else http_seconds.labels(method)


def own_text() -> bytes:
    """What this process counted, in Prometheus' text format."""
    return generate_latest(REGISTRY)


# Whatever else this process knows: where web is in it, the figures of the installation.
_sources: list[Callable[[], Awaitable[Iterable[Metric]]]] = []


def add_source(source: Callable[[], Awaitable[Iterable[Metric]]]) -> Callable[[], None]:
    """Its figures are told with those of this process, until what this answers is called."""
    _sources.append(source)
    return lambda: _sources.remove(source)


async def families() -> list[Metric]:
    """Everything that this process can tell, as it is now."""
    return [*REGISTRY.collect(), *[one for source in list(_sources) for one in await source()]]
