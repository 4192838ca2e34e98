"""The pictures of jobs: read ahead, kept for a while within a bound, and never the reason why a job fails."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from camserver.base.errors import Unavailable
from camserver.clients.analyzer import AnalyzerError
from camserver.domain.facts import CameraView, FrameFacts
from camserver.domain.jobs import Breaker, ErrorKind, JobPolicy
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher import pictures
from camserver.services.dispatcher.pictures import Pictures
from camserver.store.jobs import ClaimedJob
from camserver.store.questions import Background, Previous
from tests.rig.clock import ManualClock
from tests.store.scenery import NOW_MS

EPOCH = 3


class CountedObjects(LocalObjects):
    """Counts what is read from the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.singly: list[str] = []
        self.together: list[list[str]] = []
        self.is_broken = False

    async def get(self, key: str) -> bytes:
        self.singly.append(key)
        return await super().get(key)

    async def get_each(self, keys: Sequence[str]) -> list[bytes | None]:
        self.together.append(list(keys))
        if self.is_broken:
            raise Unavailable("broken by the test")
        return await super().get_each(keys)


@pytest.fixture
def objects(tmp_path: Path) -> CountedObjects:
    return CountedObjects(tmp_path)


@pytest.fixture
def held(objects: CountedObjects) -> Pictures:
    return Pictures(objects, ManualClock(NOW_MS), Breaker.new(JobPolicy()))


def key(camera: int, number: int) -> str:
    return frame_key(EPOCH, 1, camera, NOW_MS + number, f"uuid-{camera}-{number}", Kind.INFER)


def job(camera: int, number: int) -> ClaimedJob:
    """The camera's look of that number; the one before it is its background."""
    before = Previous(f"uuid-{camera}-{number - 1}", NOW_MS + number - 1, EPOCH)
    return ClaimedJob(
        job_id=number,
        token="token",
        attempt=1,
        created_at=NOW_MS,
        frame_uuid=f"uuid-{camera}-{number}",
        camera_id=f"cam_{camera}",
        epoch_id=EPOCH,
        frame=FrameFacts(number, 1, 1, camera, NOW_MS + number, False, None, 60_000),
        view=CameraView(version=1, open_event=None, incident=None),
        background=Background(number, "UTC", "local", None, before),
    )


async def both(held: Pictures, one: ClaimedJob) -> tuple[bytes, bytes | None]:
    assert one.background is not None
    assert one.background.previous is not None
    return await held.get(one), await held.get_previous(one, one.background.previous)


async def stored(objects: LocalObjects, *places: tuple[int, int]) -> None:
    for camera, number in places:
        await objects.put(key(camera, number), f"{camera}.{number}".encode())


async def test_a_claims_pictures_are_read_together_and_each_once(objects: CountedObjects, held: Pictures) -> None:
    await stored(objects, *((camera, number) for camera in (1, 2) for number in (1, 2, 3)))
    await held.read_ahead([job(1, 3), job(2, 3)])
    assert [await both(held, job(camera, 3)) for camera in (1, 2)] == [(b"1.3", b"1.2"), (b"2.3", b"2.2")]
    # Newest first: what was the picture before is the next one that is asked about.
    await held.read_ahead([job(1, 2), job(2, 2)])
    assert await both(held, job(1, 2)) == (b"1.2", b"1.1")
    assert objects.together == [[key(1, 3), key(1, 2), key(2, 3), key(2, 2)], [key(1, 1), key(2, 1)]]
    assert objects.singly == []


@pytest.mark.parametrize("is_broken", [False, True])
async def test_what_was_not_read_ahead_is_told_by_the_job_that_needs_it(
    objects: CountedObjects, held: Pictures, is_broken: bool
) -> None:
    await stored(objects, (1, 3))
    objects.is_broken = is_broken
    await held.read_ahead([job(1, 3), job(2, 3)])
    assert await both(held, job(1, 3)) == (b"1.3", None)
    with pytest.raises(AnalyzerError) as raised:
        await held.get(job(2, 3))
    assert raised.value.kind is ErrorKind.UNREADABLE_IMAGE


async def test_what_is_kept_has_a_bound(
    objects: CountedObjects, held: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "KEPT_BYTES_MAX", 6)
    await stored(objects, (1, 1), (1, 2), (1, 3))
    await held.read_ahead([job(1, 3), job(1, 2)])
    assert await both(held, job(1, 2)) == (b"1.2", b"1.1")
    assert await both(held, job(1, 3)) == (b"1.3", b"1.2")
    assert held._kept_bytes <= 6
