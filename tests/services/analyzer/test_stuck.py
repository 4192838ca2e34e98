"""A picture that is worked on for ever: health says so, and the process ends, whatever its threads do."""

import subprocess
import sys

import pytest

from camserver.base.exits import Exit
from camserver.services.analyzer.line import Line
from tests.rig.processes import REPOSITORY
from tests.services.analyzer.rig import RunningAnalyzer

# The line's own threads would keep the interpreter from ending.
STUCK = """
import asyncio, threading
from tests.services.analyzer.test_line_steps import HandClock, crew
from camserver.services.analyzer import service
from camserver.services.analyzer.line import Line, Steps

class Sleepless(HandClock):
    async def sleep(self, seconds):
        await asyncio.sleep(0)
        self.at_ms += 1_000

service.END_WITHIN_SEC = 0.2
begun = threading.Event()

def never_ends(crew, detector):
    begun.set()
    threading.Event().wait()

async def ask(line):
    with line.place() as place:
        await line.run(Steps("standard", lambda crew: crew, never_ends, lambda crew, found: None), place)

async def main():
    clock = Sleepless()
    line = Line(crew(), 1, 1.0, clock)
    try:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask(line))
            await asyncio.to_thread(begun.wait)
            await service.watch(line, clock)
    finally:
        await line.close()

asyncio.run(main())
"""


def test_the_process_ends_and_says_where_it_was() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == Exit.UNEXPECTED
    assert Exit.UNEXPECTED.restart
    assert "worked on for ever" in ended.stdout + ended.stderr
    assert "never_ends" in ended.stderr


async def test_health_says_so(empty: RunningAnalyzer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await empty.ask("GET", "/healthz"))[0] == 200
    monkeypatch.setattr(Line, "stuck_sec", 61.0)
    status, said, response = await empty.ask("GET", "/healthz")
    assert (status, said["error"]) == (503, "unavailable")
    assert "61 s" in said["message"]
    assert "Retry-After" in response.headers
