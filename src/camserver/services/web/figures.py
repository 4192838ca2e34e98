"""What `/metrics` tells: the figures of this process, and those of the installation from rows, in Prometheus' format.

Rows are read at most every few seconds, whoever asks how often; availability, which reads many, every few minutes. A
database that is away leaves the figures of the process, and says so by one of its own.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from camserver import __version__
from camserver.base import figures as own
from camserver.base.errors import CamError
from camserver.base.log import get_logger
from camserver.store import Dialect
from camserver.store import figures as rows
from camserver.store.figures import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client import Metric

    from camserver.base.clock import Clock
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store import Store

log = get_logger(__name__)

ROWS_EVERY_SEC = 5.0
AVAILABILITY_EVERY_SEC = 300.0
# What each figure from rows means; a test holds the names against docs/ref/metrics.md.
MEANINGS = {
    "up": "1 while the database answers web.",
    "build_info": "1, with the version and the database.",
    "cameras": "Cameras that are switched on, by health.",
    "camera_sessions": "Cameras by the state of their session.",
    "camera_availability_ratio": "Share of business hours in which cameras were available ([availability]).",
    "camera_availability_objective_ratio": "What that share shall be.",
    "cameras_below_objective": "Cameras that were available less than that.",
    "leases_active": "Leases that hold now.",
    "events_open": "Events and camera issues that are open.",
    "workers_silent": "Workers of the last week that send no heartbeat.",
    "jobs_waiting": "Jobs that are not finished, by status.",
    "jobs_oldest_seconds": "Age of the oldest of these.",
    "jobs_dead": "Jobs that were given up and not looked at yet.",
    "deliveries_waiting": "Deliveries that are not finished, by status.",
    "deliveries_oldest_seconds": "Age of the oldest of these.",
    "deliveries_dead": "Deliveries that were given up.",
    "analyzer_state": "1, with the state of each analyzer as its dispatcher finds it.",
    "analyzer_in_flight": "Questions under way at it.",
    "analyzer_concurrency": "Questions that it is asked at once.",
    "analyzer_latency_seconds": "How long it takes for one, smoothed.",
    "streamer_up": "1 while a streamer reports.",
    "streamer_overloaded": "1 while it refuses viewings for its load.",
    "streamer_cpu_ratio": "CPU of its machine.",
    "admission_viewings": "Live views that are admitted.",
    "admission_units": "Units that it may carry.",
    "admission_units_used": "Units that these take.",
    "admission_requests_total": "Views that were asked for, since it was first started.",
    "admission_rejections_total": "Views that were refused.",
    "kept_bytes": "What pictures and clips take, by class.",
    "kept_pictures": "How many they are.",
    "kept_day_bytes": "Of these, from the last 24 hours.",
    "garbage_objects": "Objects that wait to be deleted.",
    "objects_free_bytes": "Room left where pictures are kept, where that is known.",
    "objects_floor_bytes": "Room below which old pictures go before their time.",
    "scoring_runs": "Runs of scoring, by status.",
    "scoring_calls": "Questions that they asked.",
    "scoring_refused": "Of these, refused as too many (429).",
    "scoring_reused": "Questions that were not asked, since the same was answered before.",
    "scoring_busy_seconds": "How long processes worked on them, all together.",
    "scoring_cost_usd": "What these cost.",
    "scoring_limit": "Questions that running ones may have in flight, as found out.",
    "scoring_write_delay_seconds": "How long a sheet took for what it was last given, the slowest of running ones.",
    "worker_up": "1 while a worker sends heartbeats.",
    "worker_state": "1, with the worker's state.",
    "worker_cameras_held": "Cameras that it holds.",
}
# What workers say of themselves in heartbeats has names of theirs.
WORKER_PREFIX = "worker_"


@dataclass(slots=True)
class InstallationFigures:
    store: "Store"
    objects: "Objects"
    clock: "Clock"
    settings: "Settings"
    _samples: tuple[Sample, ...] = ()
    _read_at: float = 0.0
    _availability: tuple[Sample, ...] = ()
    _availability_at: float = 0.0
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(await self._told())
        return own.own_text() + generate_latest(registry)

    async def families(self) -> "Iterable[Metric]":
        """For the telemetry of this process."""
        return (await self._told()).collect()

    async def _told(self) -> "_Told":
        async with self._reading:
            await self._refresh()
        return _Told(self._samples + self._availability)

    async def _refresh(self) -> None:
        """One reader at a time; others get what it read."""
        now = time.monotonic()
        if self._read_at and now - self._read_at < ROWS_EVERY_SEC:
            return
        dialect = self.store.dialect
        fixed = [
            Sample("build_info", 1.0, (("database", _name(dialect)), ("version", __version__))),
            Sample("camera_availability_objective_ratio", self.settings.availability.objective),
            Sample("objects_floor_bytes", float(self.settings.retention.free_min_bytes)),
        ]
        policy = self.settings.leases
        missed_ms = policy.missed_heartbeats * policy.heartbeat_sec * 1000
        try:
            read = await self.store.read(rows.read, self.clock.now_ms(), missed_ms)
            if not self._availability_at or now - self._availability_at >= AVAILABILITY_EVERY_SEC:
                await self._read_availability()
                self._availability_at = now
            free_bytes = await self.objects.free_bytes()
        except (CamError, OSError) as error:
            log.warning("figures can't be read", cause=str(error))
            self._samples = (*fixed, Sample("up", 0.0))
        else:
            room = () if free_bytes is None else (Sample("objects_free_bytes", float(free_bytes)),)
            self._samples = (*fixed, Sample("up", 1.0), *room, *read)
        self._read_at = now

    async def _read_availability(self) -> None:
        policy = self.settings.availability
        share, short = await self.store.read(rows.availability, policy, self.clock.now_ms())
        told = [Sample("cameras_below_objective", float(short))]
        if share.ratio is not None:
            told.append(Sample("camera_availability_ratio", share.ratio))
        self._availability = tuple(told)


def _name(dialect: Dialect) -> str:
    return dialect.value


class _Told(Collector):
    """Samples as Prometheus' library wants them, those of a name together."""

    def __init__(self, samples: "Sequence[Sample]") -> None:
        self._samples = samples

    def collect(self) -> "Iterable[Metric]":
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for sample in self._samples:
            if sample.name not in families:
                kind = CounterMetricFamily if sample.name.endswith("_total") else GaugeMetricFamily
                meaning = MEANINGS.get(sample.name, "What a worker says of itself in heartbeats.")
                labels = [name for name, _ in sample.labels]
                families[sample.name] = kind(f"camserver_{sample.name}", meaning, labels=labels)
            families[sample.name].add_metric([value for _, value in sample.labels], sample.value)
        return families.values()
