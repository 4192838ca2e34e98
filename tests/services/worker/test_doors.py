import asyncio

import pytest

from camserver.domain.devices import Place
from camserver.domain.looks import LookPolicy
from camserver.services.worker.doors import LEARNED_MS, Door, Doors, place_of
from tests.rig.clock import settle
from tests.services.worker.build import FollowingClock

NVR = Place("nvr", "net")


@pytest.fixture
def doors(moved: FollowingClock) -> Doors:
    return Doors(moved, LookPolicy(opening_max=4, opening_subnet_max=2))


@pytest.mark.parametrize(
    ("kind", "url", "named", "expected"),
    [
        ("rtsp", "rtsp://10.0.1.7/ch1", "", Place("10.0.1.7:554", "10.0.1.0/24")),
        ("rtsp", "rtsps://10.0.1.7/ch1", "", Place("10.0.1.7:322", "10.0.1.0/24")),
        ("rtsp", "rtsp://10.0.1.7:8554/ch1", "", Place("10.0.1.7:8554", "10.0.1.0/24")),
        ("rtsp", "rtsp://10.0.1.7/ch1", "recorder", Place("recorder", "10.0.1.0/24")),
        ("rtsp", "rtsp://[2001:db8::1:2]/x", "", Place("2001:db8::1:2:554", "2001:db8::/64")),
        ("rtsp", "rtsp://cam.example/x", "", Place("cam.example:554", "cam.example")),
        ("http", "https://10.0.1.8/shot.jpg", "", Place("10.0.1.8:443", "10.0.1.0/24")),
        ("webcam", "/dev/video0", "", Place("/dev/video0")),
        ("file", "file:///x.jpg", "", Place()),
        ("test", "test://moving", "recorder", Place()),
        ("rtsp", "rtsp://[broken", "", Place(":0")),
    ],
)
def test_where_a_stream_comes_from(kind: str, url: str, named: str, expected: Place) -> None:
    assert place_of(kind, url, named) == expected
    assert expected.is_limited == (kind not in ("file", "test"))


async def entered(*doors: Door) -> list[bool]:
    """Which of them are inside after all of them tried."""
    await settle()
    return [door.is_inside for door in doors]


def enter_all(*doors: Door, is_urgent: bool = False) -> "list[asyncio.Task[bool]]":
    return [asyncio.ensure_future(door.enter(is_urgent)) for door in doors]


async def test_fifty_cameras_that_come_back_at_once_open_two_at_a_time(doors: Doors) -> None:
    cameras = [doors.door(Place(f"cam{number}", "net")) for number in range(50)]
    tasks = enter_all(*cameras)
    order: list[Door] = []
    while len(order) < 50:
        await settle()
        opening = [door for door in cameras if door.is_opening]
        assert len(opening) == 2
        order += opening
        for door in opening:
            door.opened()
    assert order == cameras
    await asyncio.gather(*tasks)
    assert doors.waiting == 0
    assert all(door.is_inside for door in cameras)  # they stay connected; only opening is limited


async def test_a_device_that_bears_one_stream_gets_one(doors: Doors) -> None:
    first, second = doors.door(NVR, 1), doors.door(NVR, 1)
    tasks = enter_all(first, second)
    assert await entered(first, second) == [True, False]
    first.opened()
    assert await entered(first, second) == [True, False]
    first.leave()
    assert await entered(first, second) == [False, True]
    await asyncio.gather(*tasks)


async def test_the_most_careful_camera_speaks_for_its_device(doors: Doors) -> None:
    free, careful = doors.door(NVR), doors.door(NVR, 1)
    enter_all(free, careful)
    assert await entered(free, careful) == [True, False]
    free.remove()
    assert await entered(free, careful) == [False, True]


async def test_a_stream_that_is_only_kept_open_gives_way(doors: Doors) -> None:
    kept, other = doors.door(NVR, 1), doors.door(NVR, 1)
    asked: list[str] = []
    kept.on_asked = lambda: asked.append("kept")
    await kept.enter()
    kept.opened()
    assert asked == []
    (task,) = enter_all(other)
    await settle()
    assert asked == ["kept"]
    assert kept.is_asked_to_leave
    kept.leave()
    await task
    # And the one that gave way waits for its turn like everybody else.
    asked.clear()
    other.on_asked = lambda: asked.append("other")
    (task,) = enter_all(kept)
    await settle()
    assert asked == ["other"]
    other.leave()
    await task


async def test_nobody_is_asked_twice(doors: Doors) -> None:
    kept = [doors.door(NVR, 2) for _ in range(2)]
    asked: list[int] = []
    for number, door in enumerate(kept):
        door.on_asked = lambda number=number: asked.append(number)  # type: ignore[misc]
        await door.enter()
        door.opened()
    tasks = enter_all(doors.door(NVR, 2))
    await settle()
    assert asked == [0]
    tasks += enter_all(doors.door(NVR, 2))
    await settle()
    assert asked == [0, 1]
    for door in kept:
        door.leave()
    await asyncio.gather(*tasks)


async def test_somebody_who_waits_goes_before_the_patrol(doors: Doors) -> None:
    holder, patrol, person = (doors.door(NVR, 1) for _ in range(3))
    await holder.enter()
    tasks = enter_all(patrol) + enter_all(person, is_urgent=True)
    await settle()
    holder.leave()
    assert await entered(patrol, person) == [False, True]
    person.leave()
    await asyncio.gather(*tasks)


async def test_whoever_gives_up_leaves_no_place_taken(doors: Doors) -> None:
    holder, quitter, next_one = (doors.door(NVR, 1) for _ in range(3))
    await holder.enter()
    quitting, waiting = enter_all(quitter, next_one)
    await settle()
    quitting.cancel()
    await settle()
    holder.leave()
    await waiting
    assert not quitter.is_inside
    # Also when it gives up at the very moment it is let in.
    (late,) = enter_all(quitter)
    await settle()
    next_one.leave()
    late.cancel()
    await settle()
    assert not quitter.is_inside
    await holder.enter()


async def test_files_and_generated_pictures_wait_for_nobody(doors: Doors) -> None:
    free = [doors.door(Place()) for _ in range(10)]
    for door in free:
        await door.enter()
    assert doors.waiting == 0


async def test_a_long_wait_is_counted(doors: Doors, moved: FollowingClock) -> None:
    holder, other = doors.door(NVR, 1), doors.door(NVR, 1)
    await holder.enter()
    (task,) = enter_all(other)
    await moved.advance(60_000)
    holder.leave()
    await task
    assert doors.long_waits == 1


async def test_what_a_device_seems_to_bear_is_believed_for_an_hour(doors: Doors, moved: FollowingClock) -> None:
    first, second = doors.door(NVR), doors.door(NVR)
    assert not first.suspect()  # nothing else is open there
    await first.enter()
    first.opened()
    assert second.suspect()
    assert not second.suspect()  # not again so soon
    (task,) = enter_all(second)
    assert await entered(second) == [False]
    first.leave()
    await task
    second.opened()
    second.settle(has_helped=True)
    (task,) = enter_all(first)
    assert await entered(first) == [False]
    await moved.advance(LEARNED_MS)
    doors.changed()
    assert await entered(first) == [True]
    await task


async def test_a_device_that_was_not_the_cause_is_not_throttled(doors: Doors) -> None:
    first, second = doors.door(NVR), doors.door(NVR)
    await first.enter()
    assert second.suspect()
    (task,) = enter_all(second)
    assert await entered(second) == [False]
    second.settle(has_helped=False)
    await task
    assert await entered(first, second) == [True, True]


async def test_who_watches_does_not_give_way_and_looks_are_told_instead_of_waiting(doors: Doors) -> None:
    watched, looked_at = doors.door(NVR, 1), doors.door(NVR, 1)
    asked: list[str] = []
    watched.on_asked = lambda: asked.append("watched")
    await watched.enter(is_urgent=True)
    watched.watched()
    assert looked_at.is_taken_by_live
    assert not watched.is_taken_by_live, "it is inside itself"
    waiting = enter_all(looked_at)
    assert await entered(looked_at) == [False]
    assert asked == []
    # Nobody watches any more: it is asked like any other that is only kept open.
    watched.unwatched()
    assert asked == ["watched"]
    watched.leave()
    assert await entered(looked_at) == [True]
    assert not looked_at.is_taken_by_live
    await asyncio.gather(*waiting)


async def test_a_look_that_waits_is_turned_away_when_somebody_begins_to_watch(doors: Doors) -> None:
    """It asked before anybody watched, and would wait for as long as they do."""
    watched, looked_at, asked_for = (doors.door(NVR, 1) for _ in range(3))
    await watched.enter(is_urgent=True)
    (look,) = enter_all(looked_at)
    (person,) = enter_all(asked_for, is_urgent=True)
    await settle()
    watched.watched()
    assert not await look
    assert not looked_at.is_inside
    assert not person.done(), "a person waits on"
    watched.unwatched()
    watched.leave()
    assert await person


async def test_who_wants_to_watch_has_a_look_give_way(doors: Doors) -> None:
    looked_at, watched = doors.door(NVR, 1), doors.door(NVR, 1)
    looked_at.on_asked = looked_at.leave
    await looked_at.enter()
    looked_at.opened()
    await watched.enter(is_urgent=True)
    assert (looked_at.is_inside, watched.is_inside) == (False, True)
