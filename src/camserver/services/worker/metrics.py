"""The figures that a worker sends with every heartbeat, by name; the link adds its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.media.ring import Rings
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errands import Errands
from camserver.services.worker.live import Lives
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.services.worker.surroundings import LookCounts
from camserver.services.worker.uploads import Uploader


@dataclass(frozen=True, slots=True)
class Metrics:
    clock: Clock
    cameras: Cameras
    counts: LookCounts
    rings: Rings | None
    spool: Spool
    uploader: Uploader
    reports: Reports
    errands: Errands
    lives: Lives

    def __call__(self) -> Mapping[str, float]:
        return {
            "cameras": len(self.cameras),
            "looks_ok": self.counts.ok,
            "looks_failed": self.counts.failed,
            "looks_given_up": self.counts.given_up,
            "streams_waiting": self.cameras.doors.waiting,
            "streams_waited_long": self.cameras.doors.long_waits,
            "ring_bytes": 0 if self.rings is None else self.rings.used_bytes,
            "spool_looks": self.spool.looks,
            "spool_bytes": self.spool.disk_bytes,
            "spool_in_memory": self.spool.memory_looks,
            "spool_dropped": self.spool.dropped,
            "spool_set_aside": self.spool.set_aside,
            "uploads_recorded": self.uploader.recorded,
            "uploads_refused": self.uploader.refused,
            "uploads_failed": self.uploader.failed,
            "reports_dropped": self.reports.dropped,
            "errands_done": self.errands.done,
            "errands_refused": self.errands.refused,
            "live_pushes": len(self.lives),
            "live_transcodes": self.lives.transcodes,
            "live_shed": self.lives.shed,
            # By the seeds' names (004, section 7.1).
            **self.counts.rates(self.clock.boot_ms()),
            "dropped_frames": self.spool.dropped + self.counts.given_up,
            "ringbuf_seconds": 0.0 if self.rings is None else self.rings.shortest_sec,
        }
