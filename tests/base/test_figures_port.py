"""The port of figures: answers one question, to whoever may ask it."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from camserver.base import figures, figures_port
from camserver.base.secrets import Secret
from tests.rig.ports import LOOPBACK, listening_socket, port_of

TOKEN = Secret("a-token-for-prometheus")


@pytest.fixture(params=[None, TOKEN], ids=["open", "token"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, Secret | None]]:
    sock = listening_socket()
    task = asyncio.create_task(figures_port.serve(sock, request.param))
    yield f"http://{LOOPBACK}:{port_of(sock)}", request.param
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    sock.close()


async def test_it_tells_figures_and_nothing_else(served: tuple[str, Secret | None]) -> None:
    url, token = served
    headers = {} if token is None else {"Authorization": f"Bearer {token.reveal()}"}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/metrics", headers=headers) as answer:
            assert answer.status == 200
            assert answer.headers["content-type"] == figures.CONTENT_TYPE
            assert "camserver_jobs_done_total" in await answer.text()
        for method, path, given, expected in (
            ("GET", "/", headers, 404),
            ("POST", "/metrics", headers, 405),
            ("GET", "/metrics", {"Authorization": "Bearer wrong"}, 401 if token else 200),
            ("GET", "/metrics", {}, 401 if token else 200),
        ):
            async with session.request(method, url + path, headers=given) as answer:
                assert answer.status == expected


async def test_nonsense_ends_only_its_own_connection(served: tuple[str, Secret | None]) -> None:
    url, _ = served
    port = int(url.rpartition(":")[2])
    for nonsense in (b"\0" * 20_000, b"no request\r\n\r\n", b""):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(nonsense)
        if not nonsense:
            writer.write_eof()
        await reader.read()
        writer.close()
    async with aiohttp.ClientSession() as session, session.get(f"{url}/other") as answer:
        assert answer.status == 404
