"""Errands in the worker: done once, bounded, within their time, and answered until the server has the answer."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from camserver.base.errors import Unavailable
from camserver.base.secrets import Secret
from camserver.services.worker.errand_files import AnswerName, ErrandFiles
from camserver.services.worker.errands import (
    AT_ONCE,
    CLIPS_AT_ONCE,
    CLIPS_WAITING_MAX,
    REFUSING_MAX,
    WAITING_MAX,
    ErrandDone,
    Errands,
    Handler,
)
from camserver.services.worker.upload_client import UploadClient
from camserver.wire.errands import OBJECT_MAX_BYTES, ErrandHeader, ErrandRefused, ErrandUpload, pack
from camserver.wire.worker import Errand
from tests.rig.polling import until
from tests.services.worker.build import FollowingClock
from tests.services.worker.control import TOKEN, ScriptedControl, failed

JPEG = b"\xff\xd8 a picture \xff\xd9"
MP4 = b"\0\0\0\x18ftyp a clip"


def errand(number: int = 1, kind: str = "look", left_ms: int = 30_000) -> Errand:
    return Errand.model_validate({"errand_id": f"errand-{number}", "kind": kind, "left_ms": left_ms})


async def looks(_: Errand) -> ErrandDone:
    return ErrandDone(True, "", {"width": 640}, "image/jpeg", JPEG)


async def cuts(_: Errand) -> ErrandDone:
    return ErrandDone(True, "", {}, "video/mp4", MP4)


class Held:
    """A handler that waits until it may go on, and counts."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.begun = 0
        self.at_once = 0
        self.at_once_max = 0

    async def __call__(self, _: Errand) -> ErrandDone:
        self.begun += 1
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            await self.may_go_on.wait()
        finally:
            self.at_once -= 1
        return ErrandDone(True)


@asynccontextmanager
async def running(
    control: ScriptedControl, clock: FollowingClock, folder: Path, **handlers: Handler
) -> AsyncIterator[Errands]:
    async with aiohttp.ClientSession() as session:
        client = UploadClient(session, control.url, "worker-1", Secret(TOKEN))
        made = Errands(handlers, client, ErrandFiles(folder), clock, jitter=lambda: 1.0)
        await made.open()
        try:
            yield made
        finally:
            await made.close()


def away(times: int, then: Callable[[ErrandUpload], Awaitable[web.StreamResponse]]) -> object:
    """Answers 503 so many times."""
    left = [times]

    async def answer(upload: ErrandUpload) -> web.StreamResponse:
        if left[0] > 0:
            left[0] -= 1
            return failed(503, "unavailable")
        return await then(upload)

    return answer


async def test_an_errand_is_done_and_answered_once(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    async with running(control, moved, tmp_path, look=looks) as made:
        for _ in range(3):
            made.take(errand())
        answer = await control.until_errand("errand-1")
        assert (answer.header.ok, answer.header.result, answer.body) == (True, {"width": 640}, JPEG)
        made.take(errand())
        made.take(errand(2))
        await control.until_errand("errand-2")
        assert [one.header.errand_id for one in control.errands] == ["errand-1", "errand-2"]


async def test_what_goes_wrong_is_said_in_the_answer(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    async def refuses(_: Errand) -> ErrandDone:
        raise Unavailable("the camera's door is closed")

    async def breaks(_: Errand) -> ErrandDone:
        raise RuntimeError("a secret of the program")

    async def exaggerates(_: Errand) -> ErrandDone:
        return ErrandDone(True, "", {}, "video/mp4", bytes(OBJECT_MAX_BYTES + 1))

    async with running(control, moved, tmp_path, look=refuses, explain=breaks, clip=exaggerates) as made:
        made.take(errand(1, "look"))
        made.take(errand(2, "explain"))
        made.take(errand(3, "clip"))
        made.take(errand(4, "probe"))
        said = {number: (await control.until_errand(f"errand-{number}")).header.message for number in range(1, 5)}
    assert said[1] == "the camera's door is closed"
    assert said[2] == "the worker failed at it; its log says why"
    assert said[3] == "the answer is too large to be sent"
    assert said[4] == "this worker does not know how to do that; install a newer version"
    assert not any(one.header.ok for one in control.errands)


async def test_a_few_at_once_some_wait_and_the_rest_is_refused(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    held = Held()
    most = AT_ONCE + WAITING_MAX
    async with running(control, moved, tmp_path, look=held) as made:
        for number in range(most + REFUSING_MAX + 5):
            made.take(errand(number))
        refused = await control.until_errand(f"errand-{most}")
        assert (refused.header.ok, "busy" in refused.header.message) == (False, True)
        await until(lambda: len(control.errands) == REFUSING_MAX, "the refusals")
        assert (held.begun, held.at_once_max, made.refused) == (AT_ONCE, AT_ONCE, REFUSING_MAX + 5)
        held.may_go_on.set()
        await control.until_errand(f"errand-{most - 1}")
        assert held.at_once_max == AT_ONCE
        # There is room again, also for one that was not even refused.
        made.take(errand(most + REFUSING_MAX + 4))
        assert (await control.until_errand(f"errand-{most + REFUSING_MAX + 4}")).header.ok
        made.take(errand(1000))
        assert (await control.until_errand("errand-1000")).header.ok


async def test_clips_have_places_of_their_own(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    held = Held()
    most = CLIPS_AT_ONCE + CLIPS_WAITING_MAX
    async with running(control, moved, tmp_path, clip=held, look=looks) as made:
        for number in range(most + 1):
            made.take(errand(number, "clip"))
        refused = await control.until_errand(f"errand-{most}")
        assert (refused.header.ok, refused.header.result) == (False, {"reason": "busy"})
        assert held.begun == CLIPS_AT_ONCE
        # Who asks for a picture does not wait for them.
        made.take(errand(1000))
        assert (await control.until_errand("errand-1000")).header.ok
        held.may_go_on.set()
        await until(lambda: len(control.errands) == most + 2, "all are answered")


async def test_many_answers_on_disk_leave_the_places_free(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    files = ErrandFiles(tmp_path)
    files.open()
    for number in range(AT_ONCE + WAITING_MAX + 1):
        files.write(AnswerName(moved.now_ms() + 60_000, f"errand-{number}"), body(f"errand-{number}"))
    may_go_on = asyncio.Event()

    async def slow(upload: ErrandUpload) -> web.StreamResponse:
        await may_go_on.wait()
        return await control.record_errand(upload)

    control.answer_errand = slow
    held = Held()
    async with running(control, moved, tmp_path, look=held) as made:
        made.take(errand(1000))
        await until(lambda: held.begun == 1, "the errand is begun")
        held.may_go_on.set()
        may_go_on.set()
        assert (await control.until_errand("errand-1000")).header.ok
        await until(lambda: not left_in(tmp_path), "all files are gone")


async def test_an_answer_is_sent_until_it_is_taken(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    control.answer_errand = away(2, control.record_errand)  # type: ignore[assignment]  # it answers errands
    async with running(control, moved, tmp_path, look=looks) as made:
        made.take(errand())
        for count, pause_ms in ((1, 500), (2, 1000)):
            await control.until_errand("errand-1", count)
            await moved.until_sleeping(2)
            await moved.advance(pause_ms)
        await control.until_errand("errand-1", 3)
        await until(lambda: moved.sleeping == 0, "nothing waits any more")


async def test_nothing_is_done_or_sent_when_its_time_is_over(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    held = Held()
    control.answer_errand = away(10**6, control.record_errand)  # type: ignore[assignment]  # it answers errands
    async with running(control, moved, tmp_path, look=held, explain=looks) as made:
        made.take(errand(1, "look"))
        made.take(errand(2, "explain"))
        made.take(errand(3, "look", left_ms=0))
        await control.until_errand("errand-2")
        await moved.until_sleeping(2)
        await moved.advance(31_000)
        await until(lambda: held.at_once == 0, "the handler was ended")
        await until(lambda: moved.sleeping == 0, "nothing waits any more")
        assert {one.header.errand_id for one in control.errands} == {"errand-2"}


async def test_a_refused_answer_is_let_go(control: ScriptedControl, moved: FollowingClock, tmp_path: Path) -> None:
    async def refuse(_: ErrandUpload) -> web.StreamResponse:
        return web.Response(text=ErrandRefused(reason="it is over", server_time=0).model_dump_json())

    control.answer_errand = refuse
    async with running(control, moved, tmp_path, clip=cuts) as made:
        made.take(errand(1, "clip"))
        await control.until_errand("errand-1")
        await until(lambda: not left_in(tmp_path), "its file is gone")


async def test_a_clip_outlives_the_process_that_made_it(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    control.answer_errand = away(1, control.record_errand)  # type: ignore[assignment]  # it answers errands
    async with running(control, moved, tmp_path, clip=cuts, look=looks) as made:
        made.take(errand(1, "clip"))
        await control.until_errand("errand-1")
        await moved.until_sleeping(2)
    assert len(left_in(tmp_path)) == 1
    async with running(control, moved, tmp_path) as again:
        answer = await control.until_errand("errand-1", 2)
        assert (answer.header.ok, answer.body) == (True, MP4)
        # The server may ask once more; it is the same errand.
        again.take(errand(1, "clip"))
        await until(lambda: not left_in(tmp_path), "its file is gone")
    assert len(control.errands) == 2


async def test_a_clip_that_nobody_waits_for_any_more_is_not_sent_after_a_restart(
    control: ScriptedControl, moved: FollowingClock, tmp_path: Path
) -> None:
    files = ErrandFiles(tmp_path)
    files.open()
    files.write(AnswerName(moved.now_ms() - 1, "errand-1"), pack(ErrandHeader(errand_id="errand-1", ok=True)))
    async with running(control, moved, tmp_path):
        await until(lambda: not left_in(tmp_path), "its file is gone")
    assert control.errands == []


# Files


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def body(errand_id: str, data: bytes = MP4) -> bytes:
    header = ErrandHeader(errand_id=errand_id, ok=True, content_type="video/mp4", bytes=len(data))
    return pack(header, data)


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    files = ErrandFiles(tmp_path / "errands")
    assert files.open() == ()
    name = AnswerName(5, "errand-1")
    files.write(name, body("errand-1"))
    assert files.read(name) == body("errand-1")
    path = tmp_path / "errands" / name.file_name
    assert path.stat().st_mode & 0o077 == 0
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-5] + b"x" + whole[-4:]):
        path.write_bytes(damaged)
        assert files.read(name) is None
        assert not path.exists()
    (tmp_path / "errands" / "000000000000007_errand-2.errand.tmp").write_bytes(b"half")
    (tmp_path / "errands" / "notes.txt").write_bytes(b"a person's")
    assert files.open() == ()
    assert [one.name for one in (tmp_path / "errands").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("bounds", [{"files_max": 2}, {"bytes_max": 2 * len(body("errand-1")) + 60}])
def test_files_are_bounded_and_the_oldest_go_first(tmp_path: Path, bounds: dict[str, int]) -> None:
    files = ErrandFiles(tmp_path, **bounds)
    files.open()
    names = [AnswerName(number, f"errand-{number}") for number in (1, 2, 3)]
    for name in names:
        files.write(name, body(name.errand_id))
    assert files.open() == tuple(names[1:])


def test_answers_leave_the_disk_s_floor_free(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path)
    files = ErrandFiles(tmp_path / "errands", free_floor_bytes=2 * free.f_bavail * free.f_frsize)
    files.open()
    with pytest.raises(OSError, match="less would be free"):
        files.write(AnswerName(1, "a"), b"body")
    assert list((tmp_path / "errands").iterdir()) == []
