"""A collector as an HTTP server on loopback, in threads of its own: OTLP as protobuf, at /v1/traces and /v1/metrics.

`status` other than 200 refuses; `held` keeps answers back until it is set, as one that is slow does. What is refused
is not remembered.
"""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.rig.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class GotSpan:
    name: str
    service: str
    trace_id: str
    span_id: str
    parent_id: str  # "": none
    attributes: dict[str, Any]
    started_ns: int
    ended_ns: int
    is_error: bool


@dataclass(slots=True)
class FakeCollector:
    url: str = ""
    status: int = 200
    held: threading.Event = field(default_factory=threading.Event)
    asked: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[GotSpan] = field(default_factory=list)
    # By name: what the newest message said, each point with its attributes.
    metrics: dict[str, list[tuple[dict[str, Any], Any]]] = field(default_factory=dict)
    resources: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            self.asked += 1
            self.headers.append(headers)
        self.held.wait(60)
        if self.status != 200:
            return self.status
        with self._lock:
            if path == "/v1/traces":
                self._take_traces(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                self._take_metrics(ExportMetricsServiceRequest.FromString(body))
            else:
                return 404
        return 200

    def _take_traces(self, request: Any) -> None:
        for one in request.resource_spans:
            resource = _plain(one.resource.attributes)
            self.resources.append(resource)
            for scope in one.scope_spans:
                self.spans += [_span(span, resource) for span in scope.spans]

    def _take_metrics(self, request: Any) -> None:
        for one in request.resource_metrics:
            self.resources.append(_plain(one.resource.attributes))
            for metric in (metric for scope in one.scope_metrics for metric in scope.metrics):
                data = getattr(metric, metric.WhichOneof("data"))
                self.metrics[metric.name] = [(_plain(point.attributes), point) for point in data.data_points]


def _span(span: Any, resource: dict[str, Any]) -> GotSpan:
    return GotSpan(
        span.name,
        resource["service.name"],
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _plain(span.attributes),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == 2,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting(status: int = 200, is_held: bool = False) -> Iterator[FakeCollector]:
    fake = FakeCollector(status=status)
    if not is_held:
        fake.held.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                self.send_response(fake.take(self.path, headers, body))
                self.send_header("Content-Length", "0")
                self.end_headers()
            except ConnectionError:
                pass  # whoever asked has gone

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    fake.url = f"http://{LOOPBACK}:{server.server_address[1]}"
    try:
        yield fake
    finally:
        fake.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
