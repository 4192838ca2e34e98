"""The real provider program: the npm package oidc-provider, a devDependency of the UI."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.rig.guarded import GUARD
from tests.rig.polling import TIMEOUT_SEC
from tests.rig.processes import REPOSITORY

MODULES = REPOSITORY / "ui" / "node_modules"
SCRIPT = REPOSITORY / "tests" / "rig" / "oidc_provider.mjs"
SECRET = "s:cret +%/x, 32 characters or more"


def node() -> str:
    """The Node that builds the UI; skips the test where it or the provider is missing, a failure under CI."""
    asked = [sys.executable, str(REPOSITORY / "tools" / "node_programs.py")]
    found = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=TIMEOUT_SEC)
    if found.returncode == 0 and (MODULES / "oidc-provider").is_dir():
        return str(Path(found.stdout.strip()) / "node")
    lacking = "Node or its package oidc-provider is not there; get them by: make ui-test"
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(lacking)
    pytest.skip(lacking)


@asynccontextmanager
async def provider(program: str, port: int, redirect: str) -> AsyncIterator[None]:
    guarded = [sys.executable, "-I", "-S", str(GUARD), "exec", str(os.getpid()), "--", program]
    process = await asyncio.create_subprocess_exec(
        *guarded,
        *(str(SCRIPT), str(MODULES), str(port), SECRET, redirect),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(TIMEOUT_SEC):
            assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        await process.wait()
