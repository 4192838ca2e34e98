"""Callers that take their time, and several who put a vocabulary: they hold a place for so long and no longer."""

import asyncio
from contextlib import closing
from pathlib import Path

from tests.rig.polling import poll_async
from tests.services.analyzer.rig import DOCUMENT, RunningAnalyzer, running_analyzer

HEAD = "{} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nContent-Type: {}\r\n\r\n--b"
FORM = "multipart/form-data; boundary=b"
PATIENCE_SEC = 0.5
BODY = {"schema_version": DOCUMENT["schema_version"], "schema": DOCUMENT}


async def begin(
    analyzer: RunningAnalyzer, request: str, kind: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A request whose body never comes to its end."""
    host, port = analyzer.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(HEAD.format(request, kind).encode())
    await writer.drain()
    return reader, writer


async def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path, analyze_timeout_sec=PATIENCE_SEC) as analyzer:
        for request in ("POST /v1/analyze", "PUT /v1/schema"):
            reader, writer = await begin(analyzer, request, FORM)
            with closing(writer):
                async with asyncio.timeout(60):
                    answer = await reader.read()  # until the connection is closed: more of the body may follow
            assert answer.startswith(b"HTTP/1.1 503"), answer
            assert b"retry-after" in answer.lower()
            assert b"did not arrive within 0.5 s" in answer
        # And its place is free again.
        await analyzer.put_vocabulary()
        assert (await analyzer.analyze())[0] == 200


async def test_only_a_few_vocabularies_are_put_at_once(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path, analyze_timeout_sec=60) as analyzer:
        slow = [await begin(analyzer, "PUT /v1/schema", "application/json") for _ in range(4)]

        async def refused() -> bool:
            status, said, response = await analyzer.ask("PUT", "/v1/schema", json=BODY)
            assert (status, said.get("error")) in ((200, None), (429, "overloaded"))
            return status == 429 and int(response.headers["Retry-After"]) >= 1

        await poll_async(refused, "all of them are being read")
        for _, writer in slow:
            writer.transport.abort()

        async def accepted() -> bool:
            return (await analyzer.ask("PUT", "/v1/schema", json=BODY))[0] == 200

        await poll_async(accepted, "room for one more")
