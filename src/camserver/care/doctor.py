"""`camserver doctor`: one text to attach to a bug: versions, settings, health, checks, ends of logs; and no secret.

Three nets keep secrets out: settings are shown masked; every secret that this machine knows (settings, secret files,
stored camera passwords and receivers' secrets) is looked for by its value and masked; and what looks like one (a
login in an address, a token, a signature) is masked by its shape.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from camserver import __version__
from camserver.base.clock import StoreClock
from camserver.base.credentials import open_sealed
from camserver.base.errors import CamError
from camserver.base.secrets import MASK, Secret, scrub
from camserver.care.backup import secret_files
from camserver.care.checks import run_checks

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.store.check import Reads

LOG_TAIL_BYTES = 200_000
LINES_MAX = 500
COMMAND_TIMEOUT_SEC = 15
SEALED_PAGE = 500
PACKAGES = (
    *("aiohttp", "alembic", "asyncmy", "asyncpg", "av", "cryptography", "fastapi", "numpy", "obstore", "onnxruntime"),
    *("pillow", "pydantic", "sqlalchemy", "uvicorn", "uvloop", "websockets"),
)
# What looks like a secret, with the part that may be shown in front of it.
_SHAPES = (
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@\"']+@", re.IGNORECASE),
    re.compile(r"(?P<kept>\b(?:bearer|basic|digest)\s+)[A-Za-z0-9+/_.=~-]{8,}", re.IGNORECASE),
    re.compile(
        r"(?P<kept>\b[\w-]*(?:password|passwd|secret|token|api_?key|access_?key|sig|signature|cookie|pwd)"
        r"[\"']?\s*[=:]\s*[\"']?)(?!null\b|None\b|true\b|false\b)[^\s\"'&,;}]{4,}",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<kept>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
)


def masked(text: str) -> str:
    """Without what is known to be secret and what looks like it."""
    text = scrub(text)
    for shape in _SHAPES:
        text = shape.sub(lambda found: f"{found['kept']}{MASK}" + ("@" if found[0].endswith("@") else ""), text)
    return text


async def report(settings: "Settings", logs: Sequence[Path], told: Callable[[str], None] = lambda _: None) -> str:
    """The whole text. A part that fails says so in its place."""
    parts: list[str] = [f"camserver doctor, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", ""]
    failures = []
    try:
        await know_secrets(settings)
    except (CamError, OSError) as error:
        failures.append(f"stored passwords can't be read, so they are masked by their shape only ({error})")
    for title, make in (
        ("versions", _versions),
        ("settings", _settings),
        ("server", _server),
        ("checks", _checks),
        ("rows", _rows),
        ("disk", _disk),
        ("processes", _processes),
    ):
        told(title)
        try:
            text = await make(settings)
        except (CamError, OSError, ValueError, subprocess.SubprocessError) as error:
            text = f"failed: {type(error).__name__}: {error}"
        parts += [f"== {title} ==", text.rstrip(), ""]
    told("logs")
    for title, text in await asyncio.to_thread(_logs, logs):
        parts += [f"== log: {title} ==", text.rstrip(), ""]
    return masked("\n".join([*parts, *failures]))


async def know_secrets(settings: "Settings") -> None:
    """Has every secret of this machine known, so that it is masked wherever it stands."""
    from camserver.config.credential_keys import CREDENTIAL_KEY, credential_ring
    from camserver.store import credentials

    for path in secret_files(settings).values():
        text = path.read_text().strip()
        for line in (text, *text.splitlines()):
            Secret(line)
    server = settings.server
    has_key = server.credential_key is not None or server.credential_key_command
    if not has_key and not (server.secrets_dir / CREDENTIAL_KEY).exists():
        return
    ring = credential_ring(server)
    async with _reading(settings) as rows:
        for place in credentials.PLACES if rows is not None else ():
            after = 0
            while rows is not None and (
                kept := await rows.read(credentials.of_other_keys, place, "", after, SEALED_PAGE)
            ):
                after = kept[-1].row_id
                for one in kept:
                    # One that can't be opened here is in no log of this machine either.
                    with contextlib.suppress(CamError):
                        _know(open_sealed(ring, one.tenant_id, one.owner, one.sealed).decode("utf-8", "replace"))


def _know(plain: str) -> None:
    Secret(plain)
    try:
        waiting = [json.loads(plain)]
    except ValueError:
        return
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            Secret(one)


@asynccontextmanager
async def _reading(settings: "Settings") -> AsyncIterator["Reads | None"]:
    """The rows, beside a running server; None where there are none of this program's."""
    from camserver.store import migrate, open_store, sqlite_reader

    url = Secret(settings.store.url.reveal())
    if not (await asyncio.to_thread(migrate.status, url.reveal())).up_to_date:
        yield None
        return
    if settings.store.url.dialect == "sqlite":
        async with sqlite_reader(url, one_moment=False) as reader:
            yield reader
        return
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def _versions(settings: "Settings") -> str:
    from camserver.store.sqlite_tx import LIBRARY_VERSION

    lines = [
        f"camserver {__version__}",
        f"python {sys.version.split()[0]} ({platform.python_implementation()}) at {sys.executable}",
        f"{platform.platform()}, {os.cpu_count()} CPUs",
        f"sqlite {LIBRARY_VERSION}",
        f"database {settings.store.url.dialect}",
    ]
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            lines.append(f"{name} {importlib.metadata.version(name)}")
    return "\n".join(lines)


async def _settings(settings: "Settings") -> str:
    from camserver.config import describe

    shown = [one for one in describe(settings) if one.source != "default"]
    lines = [f"file: {settings.config_file or 'none'}; what is not listed has its default"]
    lines += [f"{one.section}.{one.key} = {one.text}  ({one.source})" for one in shown]
    return "\n".join([*lines, *(f"warning: {one}" for one in settings.warnings)])


async def _server(settings: "Settings") -> str:
    from camserver.tool_server import local_server

    server = local_server(settings, settings.web.host, settings.web.port)
    if not await server.is_there():
        return "no server answers here"
    lines = [f"ready: {await server.is_ready()}"]
    for path in ("/api/system/status", "/api/workers?limit=500"):
        try:
            lines.append(f"{path}: {json.dumps(await server.get(path), ensure_ascii=False)}")
        except CamError as error:
            lines.append(f"{path}: {error.message}")
    return "\n".join(lines)


async def _checks(settings: "Settings") -> str:
    found = await run_checks(settings, False, False)
    return "\n".join(f"{one.area} {one.level} {one.kind}: {one.message}" for one in found) or "nothing found"


async def _rows(settings: "Settings") -> str:
    from camserver.store import table_sizes

    async with _reading(settings) as rows:
        if rows is None:
            return "the database is not at this program's schema"
        return "\n".join(
            f"{name} {count}" for name, count in (await rows.read(table_sizes.count_all)).items() if count
        )


async def _disk(settings: "Settings") -> str:
    lines = []
    for folder in {settings.server.data_dir, settings.objects.dir, settings.worker.spool_dir}:
        if folder.exists():
            usage = shutil.disk_usage(folder)
            lines.append(f"{folder}: {usage.free // 1_000_000} of {usage.total // 1_000_000} MB free")
    if settings.store.url.path is not None and settings.store.url.path.exists():
        lines.append(f"database file: {settings.store.url.path.stat().st_size // 1_000_000} MB")
    return "\n".join(lines)


async def _processes(_: "Settings") -> str:
    return await asyncio.to_thread(_own_processes)


def _own_processes() -> str:
    """camserver's, by what the system shows everybody; arguments hold no secrets."""
    lines = []
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            # `python -m camserver …` or the script of that name.
            if b"camserver" in words[:4] or any(word.endswith(b"/camserver") for word in words[:3]):
                status = dict(
                    line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line
                )
                shown = b" ".join(words).decode("utf-8", "replace")
                memory = status.get("VmRSS", "").strip()
                lines.append(f"{folder.name} {shown}: {memory}, {status.get('Threads', '').strip()} threads")
    return "\n".join(lines) or "none"


def _logs(files: Sequence[Path]) -> list[tuple[str, str]]:
    found = [(str(path), _tail(path)) for path in files]
    journal = shutil.which("journalctl")
    if not files and journal is not None:
        argv = [journal, "--no-pager", "--output=short-iso", f"--lines={LINES_MAX}", "--unit=cam-*"]
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, errors="replace", timeout=COMMAND_TIMEOUT_SEC, check=False
            )
            found.append(("journalctl -u 'cam-*'", done.stdout or done.stderr))
        except subprocess.TimeoutExpired:
            found.append(("journalctl -u 'cam-*'", "it did not answer in time"))
    return found or [("none", "no log was given with --log, and there is no journal of systemd")]


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - LOG_TAIL_BYTES, 0))
            return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-LINES_MAX:])
    except OSError as error:
        return f"can't be read: {error.strerror}"


def file_name() -> str:
    return f"camserver-doctor-{datetime.fromtimestamp(StoreClock().now_ms() / 1000, UTC):%Y%m%dT%H%M%SZ}.txt"
