"""Rows a second that are scored, of what the model can take, without being told what that is.

A fake model in a process of its own takes 50 questions at once for 200 ms each, 250 a second, and refuses the rest;
half a per cent of its answers are a 500, some are wrapped in prose or too short. Ours scores a CSV file with all
that belongs to it: journal, cache, sheet. Beside it a bare loop that is told the capacity and does nothing else, and,
where they can be had, a loop around litellm and LangChain's `abatch`. Then capacities by time and by tokens; memory.

`--only capacity`, `--only others` (by time and by tokens) or `--only memory` runs one part.

The peers are installed by name into a folder of their own (`.peers`); with QUICK=1 only if they are there already.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from bench._child import child
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from bench._scoring_peers import NAMES, asked
from tests.rig.processes import REPOSITORY

PLACES, LATENCY_SEC = 50, 0.2
CAPACITY = PLACES / LATENCY_SEC
ROWS = 2_500 if QUICK else 15_000
PEER_ROWS = 1_000 if QUICK else 3_000
CHANCES = {"500": 0.005, "fenced": 0.02, "short": 0.01}
# Rows of two sheets whose memory is compared. Every other one has one of a few texts, and the answers for the others
# are there already, so that the long one takes minutes and not hours: they cost no calls, and all the rest.
FEW, MANY = (2_000, 20_000) if QUICK else (10_000, 1_000_000)
EQUAL = 500
PEERS = REPOSITORY / ".peers"
PEER_PACKAGES = ("litellm", "langchain-openai")
AIM_OF_TOLD, AIM_OF_CAPACITY, REFUSED_MAX, CPU_MAX_SEC, FLAT = 0.95, 0.85, 0.005, 0.5, 0.8


@dataclass(frozen=True, slots=True)
class Model:
    """The fake, as a process."""

    url: str

    def counts(self) -> dict[str, int]:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/counts") as answer:
            found: dict[str, int] = json.load(answer)
            return found

    def forget(self) -> None:
        request = urllib.request.Request(self.url.removesuffix("/v1") + "/counts", method="POST")
        urllib.request.urlopen(request).close()


@contextmanager
def model(*options: str) -> Iterator[Model]:
    argv = [sys.executable, "-m", "tests.fakes.scoring_llm", "--chances", json.dumps(CHANCES), *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        assert process.stdout is not None
        yield Model(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


def ours(url: str, rows: int, equal: int = 0) -> dict[str, Any]:
    with child("_scoring_ours", url=url, rows=rows, equal=equal) as run:
        found: dict[str, Any] = json.loads(run.hear())
    if found["status"] != "completed" or found["written"] != rows:
        raise RuntimeError(f"the run did not score every row: {found}")
    return found


async def told(url: str, rows: int) -> tuple[float, float]:
    """Good answers a second of a client that knows the capacity, and does nothing but ask; and its CPU for each."""
    left = iter(range(rows))

    async def loop(session: aiohttp.ClientSession) -> None:
        for row in left:
            while True:
                body = {"model": "m", "max_tokens": 200, "messages": asked(row)}
                async with session.post(f"{url}/chat/completions", json=body) as answer:
                    said = await answer.read()
                    text = json.loads(said)["choices"][0]["message"]["content"] if answer.status == 200 else ""
                if text.count(",") == len(NAMES) - 1:
                    break

    began, cpu = time.perf_counter(), time.process_time()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(loop(session) for _ in range(PLACES)))
    return rows / (time.perf_counter() - began), (time.process_time() - cpu) / rows


def measure_capacity() -> list[Row]:
    with model("--places", str(PLACES), "--latency-sec", str(LATENCY_SEC)) as fake:
        told_per_sec, told_cpu_sec = uvloop.run(told(fake.url, ROWS // 2))
        found = ours(fake.url, ROWS)
        per_sec = ROWS / found["seconds"]
        share = found["refused"] / found["calls"]
        cpu_sec = found["cpu_sec"] * 1000 / found["calls"]
        say(f"  {per_sec:.0f} rows/s, told {told_per_sec:.0f}, capacity {CAPACITY:.0f}; {found}")
        rows = [
            more_is_better(
                "Rows scored, the capacity not told", per_sec, CAPACITY, "capacity", "rows/s", AIM_OF_CAPACITY
            ),
            more_is_better("The same", per_sec, told_per_sec, "a loop that is told", "rows/s", AIM_OF_TOLD),
            less_is_better(
                "Refused as too many, of all questions", max(share, 1e-6), REFUSED_MAX, "aim", "share", 1.0
            ),
            less_is_better("CPU of 1,000 questions", cpu_sec, CPU_MAX_SEC, "aim", "s", 1.0),
            # How much this machine's load makes of any CPU time.
            less_is_better("The same", cpu_sec, 1000 * told_cpu_sec, "a loop that only asks", "s"),
        ]
        for peer in ("litellm", "langchain"):
            rows += measure_peer(fake, peer, per_sec, cpu_sec)
        return rows


def measure_peer(fake: Model, peer: str, per_sec: float, cpu_sec: float) -> list[Row]:
    python = peers_python()
    if python is None:
        return []
    fake.forget()
    given = json.dumps({"peer": peer, "url": fake.url, "rows": PEER_ROWS})
    try:
        done = subprocess.run(
            [python, "-P", REPOSITORY / "bench" / "_scoring_peers.py"],
            input=given,
            text=True,
            capture_output=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        say(f"  {peer} did not run: {error.stderr[-300:]}")
        return []
    found = json.loads(done.stdout.strip().splitlines()[-1])
    counts = fake.counts()
    say(f"  {peer}: {found}; {counts}")
    return [
        more_is_better("Rows scored", per_sec, found["good"] / found["seconds"], peer, "rows/s"),
        less_is_better("CPU of 1,000 questions", cpu_sec, found["cpu_sec"] * 1000 / counts["calls"], peer, "s"),
        figure(f"Refused as too many, {peer}", counts["refused"] / counts["calls"], "share"),
    ]


def peers_python() -> Path | None:
    python = PEERS / "bin" / "python"
    if (PEERS / "ready").exists():
        return python
    if QUICK:
        return None
    try:
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEER_PACKAGES], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        say(f"  no peers: {' and '.join(PEER_PACKAGES)} can't be installed")
        return None
    (PEERS / "ready").touch()
    return python


def measure_other_capacities() -> list[Row]:
    rows: list[Row] = []
    for name, options, per_sec in (
        ("by time", ("--per-sec", "150", "--burst", "30"), 150.0),
        ("by tokens, told in headers", ("--tokens-per-sec", "36000", "--burst", "7200", "--tells"), 150.0),
    ):
        count = ROWS // 3
        with model(*options, "--latency-sec", str(LATENCY_SEC)) as fake:
            found = ours(fake.url, count)
        say(f"  {name}: {found}")
        # Of what was asked: answers that are asked for again took their part of the capacity, too.
        asked_per_sec = (found["calls"] - found["refused"]) / found["seconds"]
        share = max(found["refused"] / found["calls"], 1e-6)
        rows += [
            more_is_better(f"Capacity {name}, used", asked_per_sec, per_sec, "capacity", "calls/s", AIM_OF_CAPACITY),
            less_is_better(f"Capacity {name}, refused", share, REFUSED_MAX, "aim", "share", None if QUICK else 1.0),
        ]
    return rows


def measure_memory() -> list[Row]:
    with model("--places", "1000", "--latency-sec", "0.01", "--jitter-sec", "0") as fake:
        few = ours(fake.url, FEW, EQUAL)
        many = ours(fake.url, MANY, EQUAL)
    say(f"  {FEW:,} rows: {few}\n  {MANY:,} rows: {many}")
    return [
        less_is_better(
            f"Memory, {MANY:,} rows, nearly all answered before or equal",
            many["memory_mb"],
            few["memory_mb"],
            f"{FEW:,} rows",
            "MB",
            FLAT,
        ),
        figure("Rows a second that cost no call", MANY / many["seconds"], "rows/s"),
    ]


PARTS = {"capacity": measure_capacity, "others": measure_other_capacities, "memory": measure_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows a second, refusals, CPU and memory of scoring a sheet.")
    parser.add_argument("--only", choices=list(PARTS), help="run one part")
    only = parser.parse_args().only
    report("scoring", [row for name, part in PARTS.items() if only in (None, name) for row in part()])


if __name__ == "__main__":
    main()
