"""A fake analyzer in a process of its own, seen from the test."""

import json
import sys
from pathlib import Path

import aiohttp

from tests.fakes.analyzer.faults import Fault, Rule
from tests.rig.polling import poll_async
from tests.rig.ports import free_port
from tests.rig.processes import Launcher, Running

TIMEOUT_SEC = 30


class RemoteAnalyzer:
    """Started by `start`; it ends with its launcher. `url` stays the same over `kill` and `restart`."""

    def __init__(self, launcher: Launcher, state_file: Path) -> None:
        self._launcher = launcher
        self._state_file = state_file
        # Ours and not the process's, which may be gone for a while.
        self._ports = (free_port(), free_port())
        self.process: Running | None = None
        self.url = ""
        self.admin_url = ""

    @classmethod
    async def start(cls, launcher: Launcher, state_file: Path) -> "RemoteAnalyzer":
        analyzer = cls(launcher, state_file)
        await analyzer.restart()
        return analyzer

    async def restart(self) -> None:
        """Starts it (again), on the same ports."""
        port, admin_port = self._ports
        argv = [sys.executable, "-m", "tests.fakes.analyzer", "--state-file", str(self._state_file)]
        argv += ["--port", str(port), "--admin-port", str(admin_port)]
        process = self.process = self._launcher.start("analyzer", argv)

        async def announced() -> dict[str, str] | None:
            text = process.stdout_path.read_text()
            if process.exit_code is not None:
                raise RuntimeError(f"the fake analyzer ended with {process.exit_code}:\n{process.output_tail()}")
            return json.loads(text) if text.endswith("\n") else None

        addresses = await poll_async(announced, "the fake analyzer's addresses")
        self.url, self.admin_url = addresses["url"], addresses["admin_url"]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    async def add_fault(self, rule: Rule | Fault) -> None:
        await self._ask("POST", "/faults", (rule if isinstance(rule, Rule) else Rule(rule)).to_json())

    async def heal(self) -> None:
        await self._ask("DELETE", "/faults")

    async def refuse(self) -> None:
        await self._ask("POST", "/refuse")

    async def accept(self) -> None:
        await self._ask("POST", "/accept")

    async def release(self) -> None:
        await self._ask("POST", "/release")

    async def forget_vocabulary(self) -> None:
        await self._ask("POST", "/forget-vocabulary")

    async def forget_requests(self) -> None:
        await self._ask("DELETE", "/requests")

    async def requests(self) -> list[dict[str, object]]:
        """The requests so far, with the fields of `server.Recorded`."""
        answer = await self._ask("GET", "/requests")
        requests = answer["requests"]
        assert isinstance(requests, list)
        return requests

    async def _ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SEC)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, self.admin_url + path, json=body) as answer,
        ):
            answer.raise_for_status()
            data: dict[str, object] = await answer.json()
            return data
