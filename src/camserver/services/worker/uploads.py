"""Sends looks from the spool to the server, a few at a time, until each is recorded or refused for good.

Lanes take turns of preference: the newest looks of each camera first on one, the backlog oldest first on the other;
a lane with nothing of its own helps the other. When the server is away all lanes pause together, longer each time;
a look on which the server fails rests alone and the others go on.
"""

import asyncio
import random
from collections.abc import Callable

from camserver.base import traces
from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.jobs import backoff_ms
from camserver.services.worker.backlog import Entry
from camserver.services.worker.look_traces import LookTraces
from camserver.services.worker.reports import Reports
from camserver.services.worker.spool import Spool
from camserver.services.worker.upload_client import Away, Outcome, Stuck, UploadClient
from camserver.services.worker.waiting import event_within
from camserver.wire.looks import LookRefused, LookUpload, Recorded, pack
from camserver.wire.worker import Kinds

log = get_logger(__name__)

AWAY_BASE_SEC = 1.0
AWAY_CAP_SEC = 60.0
STUCK_BASE_SEC = 5.0
STUCK_CAP_SEC = 300.0
# Without any event; only a bound, nothing depends on it.
IDLE_SEC = 60.0


class Uploader:
    def __init__(
        self,
        spool: Spool,
        client: UploadClient,
        clock: Clock,
        reports: Reports,
        boot_id: str,
        in_flight_max: int,
        jitter: Callable[[], float] = random.random,
        look_traces: LookTraces | None = None,
    ) -> None:
        self._spool = spool
        self._client = client
        self._clock = clock
        self._reports = reports
        self._boot_id = boot_id
        self._in_flight_max = in_flight_max
        self._jitter = jitter
        self._traces = look_traces or LookTraces()
        self._away_count = 0
        self._pause_until_boot_ms = 0
        self._try_now = asyncio.Event()
        self.recorded = 0
        self.refused = 0
        self.failed = 0

    async def run(self) -> None:
        """Sends for ever."""
        async with asyncio.TaskGroup() as lanes:
            for number in range(self._in_flight_max):
                lanes.create_task(self._lane(number))

    def try_now(self) -> None:
        """The server is there again: ends a pause."""
        self._pause_until_boot_ms = 0
        self._try_now.set()

    async def _lane(self, number: int) -> None:
        # One lane alone must do both in turn, or the backlog would wait for ever behind busy cameras.
        fresh_first = number % 2 == 0
        while True:
            await self._until_pause_over()
            entry = self._spool.take(self._clock.boot_ms(), fresh_first)
            if entry is None:
                await self._until_something_waits()
                continue
            await self._send(entry)
            if self._in_flight_max == 1:
                fresh_first = not fresh_first

    async def _until_pause_over(self) -> None:
        while (left_ms := self._pause_until_boot_ms - self._clock.boot_ms()) > 0:
            self._try_now.clear()
            await event_within(self._clock, left_ms / 1000, self._try_now)

    async def _until_something_waits(self) -> None:
        self._spool.came.clear()
        wake_boot_ms = self._spool.next_wake_boot_ms()
        pause_sec = IDLE_SEC
        if wake_boot_ms is not None:
            pause_sec = min(pause_sec, max(wake_boot_ms - self._clock.boot_ms(), 1) / 1000)
        await event_within(self._clock, pause_sec, self._spool.came)

    async def _send(self, entry: Entry) -> None:
        settled = False
        try:
            look = await self._spool.load(entry)
            if look is None:
                self._report_refused(entry, "its file is damaged")
                settled = True
                return
            sent_ns = traces.now_ns()
            outcome = await self._client.send(self._body(look))
            if isinstance(outcome, Recorded):
                self._traces.recorded(entry.name, outcome, sent_ns, entry.attempts)
            settled = await self._settle(entry, outcome)
        finally:
            if not settled:
                self._spool.give_back(entry)

    def _body(self, look: LookUpload) -> bytes:
        """The upload as of now: a look of this boot is dated with what is known of the server's time by now."""
        header = look.header
        boot_ms = self._clock.boot_ms()
        changes: dict[str, int] = {"sent_boot_ms": boot_ms}
        if header.boot_id == self._boot_id:
            changes["captured_at"] = max(self._clock.now_ms() - (boot_ms - header.boot_ms), 0)
        return pack(header.model_copy(update=changes), look.infer, look.full)

    async def _settle(self, entry: Entry, outcome: Outcome) -> bool:
        """Acts on the answer. False when the look must be sent again."""
        if isinstance(outcome, Recorded):
            self._away_count = 0
            self.recorded += 1
            # What was acknowledged must never be lost: at debug this is the worker's own account of it.
            frame_uuid, trace_id = outcome.frame_uuid, traces.trace_id_of(outcome.frame_uuid)
            log.debug(
                "look_recorded", **_ids(entry), frame_uuid=frame_uuid, trace_id=trace_id, standing=outcome.standing
            )
            await self._spool.acknowledged(entry)
            return True
        if isinstance(outcome, LookRefused):
            self._away_count = 0
            await self._spool.refused(entry)
            self._report_refused(entry, outcome.reason)
            return True
        self.failed += 1
        if isinstance(outcome, Stuck):
            entry.attempts += 1
            pause_ms = backoff_ms(entry.attempts, self._jitter(), STUCK_BASE_SEC, STUCK_CAP_SEC)
            entry.not_before_boot_ms = self._clock.boot_ms() + pause_ms
            log.warning("the server fails on a look", **_ids(entry), cause=outcome.reason, pause_ms=pause_ms)
        else:
            self._pause(outcome)
        return False

    def _pause(self, away: Away) -> None:
        """All lanes wait. Lanes that fail together count as one failure."""
        now = self._clock.boot_ms()
        if self._pause_until_boot_ms > now:
            return
        self._away_count += 1
        pause_ms = backoff_ms(self._away_count, self._jitter(), AWAY_BASE_SEC, AWAY_CAP_SEC)
        pause_ms = max(pause_ms, round(away.retry_after_sec * 1000))
        self._pause_until_boot_ms = now + pause_ms
        log.warning("uploads pause", cause=away.reason, pause_ms=pause_ms, waiting=self._spool.looks)

    def _report_refused(self, entry: Entry, reason: str) -> None:
        self.refused += 1
        name = entry.name
        log.error("look refused for good and set aside", **_ids(entry), reason=reason)
        self._reports.add(Kinds.LOOK_REFUSED, name.camera_id, name.generation, seq=name.seq, reason=reason[:255])


def _ids(entry: Entry) -> dict[str, str | int]:
    name = entry.name
    return {"camera_id": name.camera_id, "generation": name.generation, "seq": name.seq}
