"""The limit of an upload: the same HTTP server, a file that is synced and renamed, one row. Nothing is checked.

Run as a program: python -m bench._ingest_bare URL FOLDER PORT
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from camserver.base.secrets import Secret
from camserver.store.mariadb import connect_arguments

Insert = Callable[[int, int], Awaitable[None]]
CREATE = "CREATE TABLE looks (look_id BIGINT PRIMARY KEY, size_bytes INT NOT NULL)"


async def _inserter(url: str) -> Insert:
    match urlsplit(url).scheme:
        case "sqlite":
            return _sqlite(urlsplit(url).path)
        case "postgresql":
            return await _postgres(url)
        case _:
            return await _mariadb(url)


def _sqlite(path: str) -> Insert:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(CREATE)
    lock = asyncio.Lock()

    async def insert(number: int, size_bytes: int) -> None:
        async with lock:
            await asyncio.to_thread(connection.execute, "INSERT INTO looks VALUES (?, ?)", (number, size_bytes))

    return insert


async def _postgres(url: str) -> Insert:
    pool = await asyncpg.create_pool(url, min_size=10, max_size=10)
    await pool.execute(CREATE)

    async def insert(number: int, size_bytes: int) -> None:
        await pool.execute("INSERT INTO looks VALUES ($1, $2)", number, size_bytes)

    return insert


async def _mariadb(url: str) -> Insert:
    arguments: dict[str, Any] = {"minsize": 10, "maxsize": 10, **connect_arguments(Secret(url))}
    pool = await asyncmy.create_pool(**arguments)
    async with pool.acquire() as connection:
        await connection.cursor().execute(CREATE)

    async def insert(number: int, size_bytes: int) -> None:
        async with pool.acquire() as connection:
            await connection.cursor().execute("INSERT INTO looks VALUES (%s, %s)", (number, size_bytes))

    return insert


def _write(folder: Path, number: int, body: bytes) -> None:
    draft, path = folder / f"{number}.draft", folder / f"{number}.jpg"
    with draft.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


async def main(url: str, folder: Path, port: int) -> None:
    insert = await _inserter(url)
    numbers = count(1)

    async def look(request: Request) -> Response:
        body = await request.body()
        number = next(numbers)
        await asyncio.to_thread(_write, folder, number, body)
        await insert(number, len(body))
        return Response(b"ok")

    async def healthz(_: Request) -> Response:
        return Response(b"ok")

    app = Starlette(routes=[Route("/looks", look, methods=["POST"]), Route("/healthz", healthz)])
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
