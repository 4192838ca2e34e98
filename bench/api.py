"""What a request costs beside a bare FastAPI route, and what telling 500 browsers of 50 changes a second costs.

    make bench-api                          each route for 12 turns of a second, the feed for 32 s
    QUICK=1 make bench-api                  5 turns of 0.3 s, 8 s
    BENCH_ARGS=feed make bench-api          one part of it: routes or feed

The web service is a process of its own on SQLite with 200 cameras; people are signed in, half of them hold one site.
The bare routes run on uvicorn with uvloop and httptools, as one would begin, and answer with the same JSON and bytes,
without looking who asks and without a store. Counted is the CPU of the server's processes alone (the store's writer
among them), never that of the clients, which are other processes. Ours and the bare route are asked in turns, a
second each, so that what else the machine does falls on both; what counts is the middle one of the turns' ratios. The
aim is three times the bare route, and half a core.
"""

import asyncio
import base64
import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import psutil
import uvloop

from bench._api_server import CHANGES_PER_SEC
from bench._child import Child, child
from bench._cpu import cpu_seconds
from bench._report import QUICK, Row, figure, less_is_better, report, say
from tests.rig.ports import free_port

PARTS = ("routes", "feed")
TURNS = 5 if QUICK else 12
TURN_SEC = 0.3 if QUICK else 1.0
WARM_SEC = 0.3 if QUICK else 1.0
# So many changes that each of the 200 cameras has as many: what is expected at each browser is then known.
FEED_SEC = 8 if QUICK else 32
LOOKS = 4_000 if QUICK else 20_000
# Connections that a browser opens to one server.
LANES = 6
BROWSERS = 500
# So many that nobody of them comes near the number of links that one may have made in a minute.
PEOPLE = 200
BROWSER_PROCESSES = 2
AIM_TIMES = 3.0
AIM_CORES = 0.5
BARE = "a bare route"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, in the name of one after the other of those with these headers."""

    method: str
    path: str
    headers: Sequence[dict[str, str]] = ({},)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """What is asked of ours, and where the same is at the bare server."""

    name: str
    ours: Request
    bare: str


class Asking:
    """Asks one server for one thing, on a few connections at once, as a browser does."""

    def __init__(self, http: aiohttp.ClientSession, url: str, asked: Request, pid: int) -> None:
        self._http = http
        self._address = url + asked.path
        self._asked = asked
        self._pid = pid
        self._callers = itertools.cycle(asked.headers)

    async def turn(self, seconds: float) -> float:
        """CPU milliseconds of the server a request."""
        until, before = time.perf_counter() + seconds, cpu_seconds(self._pid)
        done = sum(await asyncio.gather(*(self._lane(until) for _ in range(LANES))))
        return (cpu_seconds(self._pid) - before) / done * 1000

    async def _lane(self, until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            async with self._http.request(
                self._asked.method, self._address, headers=next(self._callers), data=self._asked.body
            ) as got:
                await got.read()
                if got.status != 200:
                    raise RuntimeError(f"{self._asked.path} answered {got.status}: {await got.text()}")
            count += 1
        return count


async def in_turns(ours: Asking, bare: Asking) -> tuple[float, float]:
    """CPU milliseconds of both: of the turn whose ratio is the middle one."""
    for one in (ours, bare):
        await one.turn(WARM_SEC)
    turns = [(await ours.turn(TURN_SEC), await bare.turn(TURN_SEC)) for _ in range(TURNS)]
    return sorted(turns, key=lambda turn: turn[0] / turn[1])[len(turns) // 2]


async def fetch(url: str, asked: Request) -> bytes:
    async with (
        aiohttp.ClientSession() as http,
        http.request(asked.method, url + asked.path, headers=asked.headers[0], data=asked.body) as got,
    ):
        return await got.read()


async def asked_of(url: str, made: dict[str, Any]) -> list[Route]:
    # Every second one holds one site of four and does not see all.
    tokens = made["tokens"][0::2]
    signed_in = [{"Cookie": f"camserver_session={token}"} for token in tokens]
    writing = [
        {**cookie, "X-CSRF-Token": token, "Content-Type": "application/json"}
        for cookie, token in zip(signed_in, tokens, strict=True)
    ]
    link = Request(
        "POST", "/api/media/link", writing, json.dumps({"frame_uuid": made["frame"], "kind": "infer"}).encode()
    )
    address = json.loads(await fetch(url, link))["url"]
    return [
        Route("who is signed in, and 50 cameras", Request("GET", "/api/cameras?limit=50", signed_in), "cameras"),
        Route("one event", Request("GET", f"/api/events/{made['event']}", signed_in), "event"),
        Route("the first page of a search", Request("GET", "/api/search?limit=50", signed_in), "search"),
        Route("a picture by its link", Request("GET", address[len(url) :]), "picture"),
        Route("a link to the newest picture, noted in the audit log", link, "link"),
    ]


async def measure_routes(url: str, server: Child, made: dict[str, Any]) -> list[Row]:
    routes = await asked_of(url, made)
    answers = {route.bare: await fetch(url, route.ours) for route in routes}
    told = {name: answer.decode() for name, answer in answers.items() if name != "picture"}
    told["picture"] = base64.b64encode(answers["picture"]).decode()
    port, rows = free_port(), []
    async with aiohttp.ClientSession() as http:
        with child("_api_bare", port=port, **told) as bare:
            bare.hear()
            for route in routes:
                headers = {} if route.ours.body is None else {"Content-Type": "application/json"}
                beside = Request(route.ours.method, f"/{route.bare}", [headers], route.ours.body)
                ours, limit = await in_turns(
                    Asking(http, url, route.ours, server.pid),
                    Asking(http, f"http://127.0.0.1:{port}", beside, bare.pid),
                )
                say(f"{route.name}: {ours:.3f} ms, bare {limit:.3f} ms, {ours / limit:.2f} times")
                rows.append(less_is_better(f"{route.name}, CPU", ours, limit, BARE, "ms", aim=1 / AIM_TIMES))
            bare.tell()
    return rows


def measure_feed(url: str, server: Child, made: dict[str, Any]) -> list[Row]:
    count, each = CHANGES_PER_SEC * FEED_SEC, BROWSERS // BROWSER_PROCESSES
    clients = [
        Child("_api_browsers", {"url": url, "browsers": each, "tokens": made["tokens"]})
        for _ in range(BROWSER_PROCESSES)
    ]
    try:
        for one in clients:
            one.hear()
        web = psutil.Process(server.pid)
        rss_mb = web.memory_info().rss / 1e6
        before, all_before, clients_before = own_cpu(web), cpu_seconds(server.pid), cpu_of(clients)
        server.tell(f"changes {count}")
        server.hear()
        told = messages = closed = 0
        for one in clients:
            # Half of the people reach all four sites, the others one of them.
            one.tell(str(int(each * count * (1 + 1 / 4) / 2)))
        for one in clients:
            got = json.loads(one.hear())
            told, messages, closed = told + got[0], messages + got[1], closed + got[2]
        # What it took is the time in which so many changes happen, also where a busy machine took longer.
        own, everything = own_cpu(web) - before, cpu_seconds(server.pid) - all_before
        of_clients = (cpu_of(clients) - clients_before) / FEED_SEC
    finally:
        for one in clients:
            one.close()
    if closed or told < BROWSERS * count * 0.99 * (1 + 1 / 4) / 2:
        raise RuntimeError(f"{told} changes were told in {messages} messages and {closed} browsers were cut off")
    name = f"{BROWSERS} browsers, {CHANGES_PER_SEC} changes/s"
    return [
        less_is_better(f"{name}, web", own / FEED_SEC, AIM_CORES, "aim", "cores", aim=1.0),
        figure(f"{name}, the store's writer", (everything - own) / FEED_SEC, "cores"),
        figure(f"{name}, the browsers", of_clients, "cores"),
        figure(f"{name}, messages sent", messages / FEED_SEC, "1/s"),
        figure(f"{name}, CPU of web a message", own / messages * 1e6, "us"),
        figure(f"{name}, memory of web", rss_mb, "MB"),
    ]


def own_cpu(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def cpu_of(children: Sequence[Child]) -> float:
    return sum(cpu_seconds(one.pid) for one in children)


def measured(parts: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    with TemporaryDirectory(prefix="camserver-bench-") as folder:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        with child("_api_server", folder=str(Path(folder)), port=port, looks=LOOKS, people=PEOPLE) as server:
            made = json.loads(server.hear())
            if "routes" in parts:
                rows += uvloop.run(measure_routes(url, server, made))
            if "feed" in parts:
                rows += measure_feed(url, server, made)
    return rows


def main() -> None:
    parts = sys.argv[1:] or PARTS
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    report("api", measured(parts))


if __name__ == "__main__":
    main()
