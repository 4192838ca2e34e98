"""Carries out a fault on one request."""

import asyncio
import json
import socket
import struct

from aiohttp import web

from tests.fakes.analyzer.faults import ERROR_NAMES, Fault, FaultKind, broken

CHUNK_BYTES = 256 * 1024
Body = dict[str, object]


async def misbehave(
    fault: Fault,
    request: web.Request,
    status: int,
    body: Body,
    *,
    released: asyncio.Event,
    closing: asyncio.Event,
) -> tuple[web.StreamResponse, bool]:
    """The response, and whether it was or will be sent whole. `status` and `body` are the right answer."""
    match fault.kind:
        case FaultKind.SLOW:
            await _first_of(closing, seconds=fault.seconds)
            return web.json_response(body, status=status), True
        case FaultKind.HOLD:
            await _first_of(closing, released)
            return web.json_response(body, status=status), True
        case FaultKind.RESET:
            reset(request.transport)
            return web.Response(), False
        case FaultKind.CUT_OFF:
            return await _cut_off(request, status, body), False
        case FaultKind.STATUS:
            return _error(fault), True
        case FaultKind.MALFORMED:
            return web.Response(text=json.dumps(body)[:-7], content_type="application/json"), True
        case FaultKind.BREAK:
            return web.json_response(broken(body, fault.breach)), True
        case FaultKind.HUGE:
            return await _huge(request, body, fault.body_bytes)
        case FaultKind.REDIRECT:
            return web.Response(status=fault.status, headers={"Location": fault.location}), True


def reset(transport: asyncio.BaseTransport | None) -> None:
    """Ends a connection with RST, as a crashed process's machine would."""
    if not isinstance(transport, asyncio.Transport):
        return  # gone already
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.fileno() != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _error(fault: Fault) -> web.Response:
    error = {"error": ERROR_NAMES.get(fault.status, "error"), "message": f"told to answer {fault.status}"}
    headers = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
    return web.json_response(error, status=fault.status, headers=headers)


async def _cut_off(request: web.Request, status: int, body: Body) -> web.StreamResponse:
    payload = json.dumps(body).encode()
    response = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
    response.content_length = len(payload)
    await response.prepare(request)
    await response.write(payload[: len(payload) // 2])
    if request.transport is not None:
        request.transport.close()  # flushes the half that was written, unlike a reset
    return response


async def _huge(request: web.Request, body: Body, body_bytes: int) -> tuple[web.StreamResponse, bool]:
    head = json.dumps({**body, "warnings": ["@"]}).encode()
    before, after = head.split(b"@")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    left_bytes = max(0, body_bytes - len(before) - len(after))
    try:
        await response.write(before)
        while left_bytes:
            piece_bytes = min(left_bytes, CHUNK_BYTES)
            await response.write(b"x" * piece_bytes)
            left_bytes -= piece_bytes
        await response.write(after)
    except ConnectionError:
        return response, False  # the caller had enough: what a good caller does
    return response, True


async def _first_of(*events: asyncio.Event, seconds: float | None = None) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    _, pending = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in pending:
        wait.cancel()
