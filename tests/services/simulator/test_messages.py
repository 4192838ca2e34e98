import asyncio

import pytest

from camserver.base.errors import BadInput
from camserver.services.simulator.messages import LINE_MAX_BYTES, Request, answer, read_request


async def read(data: bytes) -> Request | None:
    reader = asyncio.StreamReader(limit=LINE_MAX_BYTES)
    reader.feed_data(data)
    reader.feed_eof()
    return await read_request(reader)


async def test_a_request() -> None:
    request = await read(b"DESCRIBE rtsp://h/cam RTSP/1.0\r\nCSeq: 3\r\nAccept:  application/sdp \r\n\r\n")
    assert request == Request("DESCRIBE", "rtsp://h/cam", {"cseq": "3", "accept": "application/sdp"})


async def test_reception_reports_and_bodies_are_passed_over() -> None:
    data = b"$\x01\x00\x04abcd\r\nGET_PARAMETER * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 3\r\n\r\nxyz"
    reader = asyncio.StreamReader()
    reader.feed_data(data + b"OPTIONS * RTSP/1.0\r\n\r\n")
    reader.feed_eof()
    methods = []
    while (request := await read_request(reader)) is not None:
        methods.append(request.method)
    assert methods == ["GET_PARAMETER", "OPTIONS"]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"hello\r\n\r\n",
        b"OPTIONS * RTSP/1.0\r\nno colon\r\n\r\n",
        b"OPTIONS * RTSP/1.0\r\nContent-Length: 99999999\r\n\r\n",
        b"OPTIONS * RTSP/1.0\r\nContent-Length: -1\r\n\r\n",
        b"OPTIONS * RTSP/1.0\r\n" + b"".join(b"h%d: x\r\n" % number for number in range(100)) + b"\r\n",
        b"OPTIONS " + b"x" * 10_000 + b" RTSP/1.0\r\n\r\n",
    ],
)
async def test_what_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        await read(data)


@pytest.mark.parametrize("data", [b"OPTIONS * RT", b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n", b"$\x00\x00\x09abc"])
async def test_cut_off_requests_end_as_such(data: bytes) -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        await read(data)


async def test_the_end() -> None:
    assert await read(b"") is None


def test_answers() -> None:
    request = Request("OPTIONS", "*", {"cseq": "9"})
    assert answer(request, 200, {"Public": "A"}) == b"RTSP/1.0 200 OK\r\nCSeq: 9\r\nPublic: A\r\n\r\n"
    assert answer(request, 461).startswith(b"RTSP/1.0 461 Unsupported Transport\r\n")
    assert answer(request, 200, None, b"body").endswith(b"Content-Length: 4\r\n\r\nbody")
