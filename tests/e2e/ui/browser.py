"""Runs the browser tests of ui/e2e with Playwright and the machine's Chromium."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

REPOSITORY = Path(__file__).parents[3]
UI = REPOSITORY / "ui"
PLAYWRIGHT = UI / "node_modules" / ".bin" / "playwright"
BUILT = REPOSITORY / "src" / "camserver" / "services" / "web" / "ui_dist" / "index.html"
# Far above what any machine needs; pytest's own limit for this folder (conftest.py) is above it.
TIMEOUT_SEC = 1500
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def missing() -> str | None:
    """What a test in a browser lacks here, and how to get it; None when all is there."""
    if chromium() is None:
        return "there is no Chromium; install it by: apt install chromium"
    if not PLAYWRIGHT.exists() or not BUILT.exists():
        return "the UI or its test tools are not there; make them by: make ui-test"
    return None


def require_browser() -> None:
    """Skips the test that can't run; on the build machine that is a failure."""
    lacking = missing()
    if lacking is None:
        return
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(lacking)
    pytest.skip(lacking)


def node_folder() -> str:
    """The Node that built the UI."""
    asked = [sys.executable, str(REPOSITORY / "tools" / "node_programs.py")]
    return subprocess.run(asked, check=True, capture_output=True, text=True, timeout=TIMEOUT_SEC).stdout.strip()


async def play(spec: str, address: Mapping[str, str], timeout_sec: float = TIMEOUT_SEC) -> None:
    """Plays one file of ui/e2e; AssertionError with what Playwright said when it fails or does not end."""
    path = os.pathsep.join([node_folder(), os.environ["PATH"]])
    with TemporaryFile() as said:
        process = await asyncio.create_subprocess_exec(
            str(PLAYWRIGHT),
            "test",
            spec,
            cwd=UI,
            env={**os.environ, "PATH": path, "CAMSERVER_CHROMIUM": chromium() or "", "FORCE_COLOR": "0", **address},
            stdout=said,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(timeout_sec):
                await process.wait()
        except TimeoutError:
            pytest.fail(f"{spec} did not end within {timeout_sec:g} s; until then:\n{_read(said)}", pytrace=False)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        assert process.returncode == 0, _read(said)


def _read(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")
