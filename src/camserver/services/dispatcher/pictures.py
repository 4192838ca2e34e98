"""The pictures of jobs: the one to analyze, and the camera's picture before it.

The last pictures are kept in memory for a while: of a camera where something happens, the picture before is mostly
the one that was analyzed last, or where the newest go first, the one that is analyzed next. Objects never change, so
what is kept is never wrong.
"""

import random
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, NotFound, Retry
from camserver.base.log import get_logger
from camserver.clients.analyzer import AnalyzerError
from camserver.domain.jobs import Breaker, ErrorKind
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import Objects
from camserver.store.jobs import ClaimedJob
from camserver.store.questions import Previous
from camserver.wire.analyzer import IMAGE_BYTES_MAX

log = get_logger(__name__)

KEPT_BYTES_MAX = 32_000_000


@dataclass(slots=True)
class Pictures:
    """Where pictures are kept. While that is away, `allowance` says that no job is worth claiming."""

    objects: Objects
    clock: Clock
    breaker: Breaker
    _kept: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0

    def allowance(self) -> int:
        return self.breaker.allowance(self.clock.now_ms())

    def claimed(self, count: int) -> None:
        self.breaker = self.breaker.claimed(self.clock.now_ms(), count)

    async def read_ahead(self, claimed: Sequence[ClaimedJob]) -> None:
        """Reads a claim's pictures at once, which costs less than one by one. What it can't read, `get` tells."""
        keys = dict.fromkeys(key for job in claimed for key in _keys(job) if key not in self._kept)
        try:
            found = await self.objects.get_each(list(keys))
        except Exception:
            # Nothing is lost: each picture is read again by whoever needs it.
            log.exception("read_ahead_broke")
            return
        for key, picture in zip(keys, found, strict=True):
            if picture is not None:
                self._keep(key, picture)

    async def get(self, job: ClaimedJob) -> bytes:
        """The job's picture; AnalyzerError when it can't be read."""
        if job.epoch_id is None:
            raise AnalyzerError(ErrorKind.UNREADABLE_IMAGE, "the frame has no picture")
        key = _key(job, job.epoch_id, job.frame.captured_at, job.frame_uuid)
        kept = self._kept.get(key)
        if kept is not None:
            self.breaker = self.breaker.succeeded()
            return kept
        try:
            picture = await self.objects.get(key)
        except (NotFound, BadInput) as error:
            self.breaker = self.breaker.succeeded()
            raise AnalyzerError(ErrorKind.UNREADABLE_IMAGE, error.message) from None
        except Retry as error:
            # No job's fault, and no use in claiming more for now.
            self.breaker = self.breaker.failed(ErrorKind.UNAVAILABLE, self.clock.now_ms(), random.random())
            raise AnalyzerError(ErrorKind.UNAVAILABLE, error.message) from None
        self.breaker = self.breaker.succeeded()
        self._keep(key, picture)
        return picture

    async def get_previous(self, job: ClaimedJob, previous: Previous) -> bytes | None:
        """The camera's picture before; None where it is gone or too large: the analysis does without."""
        key = _key(job, previous.epoch_id, previous.captured_at, previous.frame_uuid)
        picture = self._kept.get(key)
        if picture is None:
            try:
                picture = await self.objects.get(key)
            except (NotFound, BadInput, Retry) as error:
                log.debug("previous_picture_left_out", why=error.message)
                return None
            self._keep(key, picture)
        return picture if len(picture) <= IMAGE_BYTES_MAX else None

    def _keep(self, key: str, picture: bytes) -> None:
        before = self._kept.pop(key, b"")
        self._kept[key] = picture
        self._kept_bytes += len(picture) - len(before)
        while self._kept_bytes > KEPT_BYTES_MAX:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest)


def _keys(job: ClaimedJob) -> Iterator[str]:
    """Of all pictures that a job needs."""
    if job.epoch_id is not None:
        yield _key(job, job.epoch_id, job.frame.captured_at, job.frame_uuid)
    previous = None if job.background is None else job.background.previous
    if previous is not None:
        yield _key(job, previous.epoch_id, previous.captured_at, previous.frame_uuid)


def _key(job: ClaimedJob, epoch_id: int, captured_at: int, frame_uuid: str) -> str:
    return frame_key(epoch_id, job.frame.tenant_id, job.frame.camera_key, captured_at, frame_uuid, Kind.INFER)
