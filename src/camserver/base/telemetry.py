"""Traces and figures to an OpenTelemetry collector (OTLP over HTTP), from a thread of its own.

What is to be sent waits in bounded places: spans in a queue that drops the newest when it is full, figures in one
place that holds only the latest. So a collector that is slow or away costs what is told and nothing else; a log line
says so once, and figures count it. The libraries are imported only where it is switched on.

Spans are made here from steps that are over, as the SDK's exporter takes them; the SDK's own pipeline would want each
step to be begun and ended in one process, under an id that it draws itself.
"""

import asyncio
import importlib.util
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from camserver.base import figures, traces
from camserver.base.clock import Clock
from camserver.base.errors import BadSettings
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.base.traces import Span

if TYPE_CHECKING:
    from prometheus_client import Metric

log = get_logger(__name__)

WAITING_MAX: Final = 2_048
BATCH_MAX: Final = 512
# How long spans wait for others to be sent with them.
LINGER_SEC: Final = 5.0
# A batch that was not taken until then, with what retries fit in, is given up.
SEND_SEC: Final = 10.0
# What is left when the process stops has so long.
CLOSE_SEC: Final = 2.0
_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def parse_headers(text: Secret | None) -> Mapping[str, str]:
    """`name=value,name=value`, as other OpenTelemetry programs take them."""
    found: dict[str, str] = {}
    for pair in (text.reveal() if text else "").split(","):
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not pair.strip():
            continue
        if not sign or not name or not value.isprintable() or not all(c.isalnum() or c in "-_." for c in name):
            raise BadSettings("telemetry.headers must be name=value pairs, separated by commas")
        # A collector may say a value back to us, without the others.
        found[name.lower()] = Secret(value).reveal()
    return found


class Telemetry:
    """Sends until closed. `add` and `tell` may be called from any thread and return at once."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], service_name: str, process: str) -> None:
        require_packages()
        from camserver.base import otlp

        self._wire = otlp.Wire(endpoint.rstrip("/"), headers, service_name, process, _instance(), SEND_SEC)
        self._spans: deque[Span] = deque()
        self._figures: Sequence[Metric] | None = None
        self._wake = threading.Condition()
        self._closing = False
        self._away: set[str] = set()
        self._complaints = _Complaints()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        library = logging.getLogger("opentelemetry")
        library.addHandler(self._complaints)
        library.propagate = False
        self._thread.start()

    def add(self, span: Span) -> None:
        with self._wake:
            if self._closing or len(self._spans) >= WAITING_MAX:
                figures.telemetry_spans_dropped.inc()
                return
            self._spans.append(span)
            if len(self._spans) >= BATCH_MAX:
                self._wake.notify()

    def tell(self, families: "Iterable[Metric]") -> None:
        """Figures as they are now; whatever still waits is older and goes."""
        with self._wake:
            self._figures = list(families)
            self._wake.notify()

    def close(self) -> None:
        """Sends what is left, if that is quick."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(CLOSE_SEC / 2)
        if self._thread.is_alive():
            self._wire.stop()
            self._thread.join(CLOSE_SEC / 2)
        library = logging.getLogger("opentelemetry")
        library.removeHandler(self._complaints)
        library.propagate = True

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._closing and not self._figures and len(self._spans) < BATCH_MAX:
                    self._wake.wait(LINGER_SEC)
                batch = [self._spans.popleft() for _ in range(min(BATCH_MAX, len(self._spans)))]
                told, self._figures = self._figures, None
                is_last = self._closing and not self._spans
            if batch and not self._sent("traces", lambda batch=batch: self._wire.send_spans(batch)):  # type: ignore[misc]
                figures.telemetry_spans_dropped.inc(len(batch))
            if told is not None:
                self._sent("metrics", lambda told=told: self._wire.send_figures(told))  # type: ignore[misc]
            if is_last:
                return

    def _sent(self, what: str, send: Callable[[], bool]) -> bool:
        """Whether the collector took it. Nothing that goes wrong ends the thread."""
        try:
            is_taken = send()
        except Exception as error:
            is_taken = False
            self._complaints.newest = f"{type(error).__name__}: {error}"
        figures.telemetry_exports.labels(what, "sent" if is_taken else "failed").inc()
        if is_taken and what in self._away:
            self._away.discard(what)
            log.info("the telemetry collector is back", signal=what)
        elif not is_taken and what not in self._away:
            self._away.add(what)
            log.warning(
                "the telemetry collector does not take what it is sent", signal=what, cause=self._complaints.newest
            )
        return is_taken


class _Complaints(logging.Handler):
    """Hears what the library would log with every try, for the one line that is logged."""

    newest = "no reason given"

    def emit(self, record: logging.LogRecord) -> None:
        self.newest = record.getMessage()[:500]


def require_packages() -> None:
    """BadSettings when the libraries are missing: an installation may leave out what it does not use."""
    for name in _PACKAGES:
        try:
            is_there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            raise BadSettings(
                f"telemetry.endpoint is set, but the package {name} is not installed; install "
                "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http, or remove the setting"
            )


def _instance() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


class Wanted(Protocol):
    """What is to be told to whom: the section of the settings."""

    @property
    def endpoint(self) -> str | None: ...
    @property
    def headers(self) -> Secret | None: ...
    @property
    def sample_ratio(self) -> float: ...
    @property
    def service_name(self) -> str: ...
    @property
    def metrics_every_sec(self) -> int: ...


@asynccontextmanager
async def running(wanted: Wanted, process: str, clock: Clock) -> AsyncIterator[None]:
    """Tells traces and figures of this process as long as it is open; without an endpoint, does nothing."""
    if wanted.endpoint is None:
        yield
        return
    telemetry = Telemetry(wanted.endpoint, parse_headers(wanted.headers), wanted.service_name, process)
    telemetry.start()
    if wanted.sample_ratio > 0:
        traces.switch_on(telemetry, wanted.sample_ratio, lambda: clock.now_ms() - clock.boot_ms())
    telling = asyncio.create_task(_tell_figures(telemetry, wanted.metrics_every_sec, clock))
    log.info("telemetry goes to a collector", endpoint=wanted.endpoint, sample_ratio=wanted.sample_ratio)
    try:
        yield
    finally:
        telling.cancel()
        traces.switch_off()
        await asyncio.to_thread(telemetry.close)


async def _tell_figures(telemetry: Telemetry, every_sec: float, clock: Clock) -> None:
    while True:
        await clock.sleep(every_sec)
        telemetry.tell(await figures.families())
