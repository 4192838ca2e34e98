"""Newer bundles from a real server that lies in every way it can."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web

from camserver.base.errors import CamError, Conflict, ModelUnusable, Unavailable
from camserver.config import Settings
from camserver.services.analyzer.models.installed import Pointer
from camserver.services.analyzer.models.loading import installed_models
from camserver.services.analyzer.models.updating import Outcome, Update, Updating, pause_sec
from tests.rig.clock import ManualClock
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, listening_socket, port_of
from tests.services.analyzer.models.made import KEY, OTHER_KEY, PUBLIC, Made, seeing
from tests.services.analyzer.models.running import capabilities, install, model_of, started, use
from tests.services.analyzer.rig import settings_in

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Shelf:
    """A server with one bundle, and the requests that it got."""

    url: str = ""
    content: bytes = b""
    tag: str | None = '"1"'
    answer: Answer | None = None
    asked: list[web.Request] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.answer is not None:
            return await self.answer(request)
        headers = {} if self.tag is None else {"ETag": self.tag}
        if self.tag is not None and request.headers.get("If-None-Match") == self.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.content, headers=headers)


@asynccontextmanager
async def open_shelf() -> AsyncIterator[Shelf]:
    shelf = Shelf()
    app = web.Application()
    app.router.add_get("/model.zip", shelf.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    sock = listening_socket()
    shelf.url = f"http://{LOOPBACK}:{port_of(sock)}/model.zip"
    await web.SockSite(runner, sock).start()
    try:
        yield shelf
    finally:
        await runner.cleanup()


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    async with open_shelf() as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path, shelf: Shelf) -> Settings:
    changed = settings_in(tmp_path / "data", bundle_url=shelf.url, model_keys=(PUBLIC,), bundle_max_bytes=1_000_000)
    return replace(changed, deliveries=replace(changed.deliveries, allow_loopback=True))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def signed(version: str = "1.0", name: str = "yard", score: float = 0.9) -> Made:
    return Made(name, version, files={"model.onnx": seeing(score)}, key=KEY)


async def look(settings: Settings) -> Update:
    return await Updating(settings, ManualClock()).look()


def left_over(settings: Settings) -> list[str]:
    folder = settings.server.data_dir / "models"
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


async def test_a_newer_bundle_is_taken_into_use_and_not_fetched_again(settings: Settings, shelf: Shelf) -> None:
    shelf.content = signed().zipped()
    pointer = Pointer("yard", "1.0")
    assert await look(settings) == Update(Outcome.IN_USE, pointer)
    assert installed_models(settings).active() == pointer
    assert (await look(settings)).outcome is Outcome.UNCHANGED
    assert [request.headers.get("If-None-Match") for request in shelf.asked] == [None, '"1"']
    assert left_over(settings) == []


async def test_a_model_that_was_removed_is_fetched_again(settings: Settings, shelf: Shelf, tmp_path: Path) -> None:
    pointer = install(settings, signed(), tmp_path)
    shelf.content = signed().zipped()
    assert (await look(settings)).outcome is Outcome.UNCHANGED
    installed_models(settings).remove(pointer)
    assert await look(settings) == Update(Outcome.IN_USE, pointer)


async def test_a_server_without_tags_is_asked_in_full_and_the_same_is_unchanged(
    settings: Settings, shelf: Shelf
) -> None:
    shelf.content, shelf.tag = signed().zipped(), None
    assert (await look(settings)).outcome is Outcome.IN_USE
    assert (await look(settings)).outcome is Outcome.UNCHANGED


async def test_the_newest_two_versions_are_kept(settings: Settings, shelf: Shelf, tmp_path: Path) -> None:
    for version in ("1", "2"):
        use(settings, install(settings, signed(version), tmp_path))
    shelf.content = signed("3").zipped()
    await look(settings)
    assert [str(one) for one in installed_models(settings).all()] == ["yard 3", "yard 2"]


async def test_a_choice_by_hand_stays(settings: Settings, shelf: Shelf, tmp_path: Path) -> None:
    own = install(settings, signed(name="own"), tmp_path)
    use(settings, own)
    shelf.content = signed().zipped()
    assert await look(settings) == Update(Outcome.INSTALLED, Pointer("yard", "1.0"))
    assert installed_models(settings).active() == own


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(bytes(65_536))
    except ConnectionError:
        return response


async def cut_off(request: web.Request) -> web.StreamResponse:
    content = signed().zipped()
    response = web.StreamResponse(headers={"Content-Length": str(len(content))})
    await response.prepare(request)
    await response.write(content[:-100])
    assert request.transport is not None
    request.transport.close()
    return response


def answering(status: int, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return answer


def sending(content: bytes) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, headers={"ETag": '"x"'})

    return answer


_CHANGED = replace(signed("2.0"), signature=signed("2.0", score=0.8).contents()["model.sig"])


@pytest.mark.parametrize(
    ("answer", "kind", "cause"),
    [
        (sending(Made(version="2.0").zipped()), ModelUnusable, "not signed"),
        (sending(Made(version="2.0", key=OTHER_KEY).zipped()), ModelUnusable, "signed by none"),
        (sending(_CHANGED.zipped()), ModelUnusable, "signed by none"),
        (
            sending(Made(version="2.0", hashes={"model.onnx": "0" * 64}, key=KEY).zipped()),
            ModelUnusable,
            "sha256",
        ),
        (sending(signed("2.0").zipped()[:-50]), ModelUnusable, "whole zip"),
        (sending(signed("0.9").zipped()), ModelUnusable, "older than yard 1.0"),
        (sending(signed("1.0", score=0.5).zipped()), Conflict, "another model yard 1.0"),
        (sending(Made(version="2.0", files={"model.onnx": b"x"}, key=KEY).zipped()), ModelUnusable, "can't be used"),
        (sending(b"<html>"), ModelUnusable, "whole zip"),
        (endless, Unavailable, "larger than 1000000 bytes"),
        (cut_off, Unavailable, "could not be fetched"),
        (answering(302, Location="http://192.0.2.1/"), Unavailable, "answered 302"),
        (answering(304), Unavailable, "answered 304"),
        (answering(500), Unavailable, "answered 500"),
    ],
)
async def test_a_lie_changes_nothing(
    settings: Settings, shelf: Shelf, tmp_path: Path, answer: Answer, kind: type[CamError], cause: str
) -> None:
    use(settings, before := install(settings, signed(), tmp_path))
    shelf.answer = answer
    for _ in range(2):  # nor is it remembered as seen
        with pytest.raises(kind) as refused:
            await look(settings)
        assert cause in refused.value.message
    models = installed_models(settings)
    assert (models.active(), models.all()) == (before, [before])
    assert left_over(settings) == []


async def test_what_unpacks_to_too_much_is_refused(settings: Settings, shelf: Shelf) -> None:
    shelf.content = Made(files={"model.onnx": seeing(0.9), "big.bin": bytes(1_000_000)}, key=KEY).zipped()
    with pytest.raises(ModelUnusable, match="larger than 1000000 bytes"):
        await look(settings)


async def test_what_is_wrong_is_told_of_the_address_and_not_of_a_passing_file(
    settings: Settings, shelf: Shelf
) -> None:
    shelf.content = b"no zip"
    with_secret = replace(settings, analyzer=replace(settings.analyzer, bundle_url=f"{shelf.url}?token=secret"))
    with pytest.raises(ModelUnusable, match="can't be used") as refused:
        await look(with_secret)
    assert f"the model bundle {shelf.url} can't be used" in refused.value.message
    assert "secret" not in refused.value.message


async def test_addresses_of_this_machine_are_refused_unless_allowed(settings: Settings, shelf: Shelf) -> None:
    shelf.content = signed().zipped()
    closed = replace(settings, deliveries=replace(settings.deliveries, allow_loopback=False))
    with pytest.raises(Unavailable, match="allow_loopback"):
        await look(closed)
    assert shelf.asked == []


async def test_without_keys_nothing_is_fetched(settings: Settings, shelf: Shelf) -> None:
    with pytest.raises(ModelUnusable, match="model_keys"):
        await look(replace(settings, analyzer=replace(settings.analyzer, model_keys=())))
    assert shelf.asked == []


async def test_the_running_analyzer_looks_warns_and_swaps(
    settings: Settings, shelf: Shelf, clock: ManualClock, tmp_path: Path
) -> None:
    use(settings, install(settings, signed(), tmp_path))
    shelf.content = Made(version="2.0").zipped()
    async with started(settings, clock) as analyzer:

        async def warned() -> bool:
            return "not signed" in " ".join((await capabilities(analyzer)).get("warnings") or ())

        await poll_async(warned, "a warning about the bundle")
        assert await model_of(analyzer) == "yard 1.0"
        shelf.content, shelf.tag = signed("2.0").zipped(), '"2"'
        await clock.until_sleeping(3)
        await clock.advance(24 * 3_600_000)

        async def swapped() -> bool:
            await clock.advance(2_000)
            return await model_of(analyzer) == "yard 2.0"

        await poll_async(swapped, "the newer model is in force")
        assert "warnings" not in await capabilities(analyzer)


async def test_stopping_does_not_wait_for_a_server_that_sends_nothing(
    settings: Settings, shelf: Shelf, clock: ManualClock, tmp_path: Path
) -> None:
    use(settings, install(settings, signed(), tmp_path))
    asked, hang = asyncio.Event(), asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        asked.set()
        await hang.wait()
        return web.Response()

    shelf.answer = silent
    async with started(settings, clock):
        await asyncio.wait_for(asked.wait(), 60)
    hang.set()
    assert left_over(settings) == []


def test_a_server_that_is_away_is_looked_for_again_soon_and_then_less_often() -> None:
    full = [pause_sec(24, failures, 0.0) for failures in range(14)]
    assert full[:4] == [86_400, 60, 120, 240]
    assert full[1:] == sorted(full[1:])
    assert full[-1] == 86_400
    assert pause_sec(0.1, 9, 0.0) == pytest.approx(360)
    assert pause_sec(24, 1000, 1.0) == pytest.approx(86_400 * 0.7)
