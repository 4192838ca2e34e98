"""The parts camserver is made of, and what each of them gets: the first file to read.

    service      gets                                      its process under `camserver up`
    control      store, objects, its listening sockets     server
    dispatcher   store, objects                            server
    web          store, objects, its listening socket      server
    streamer     its listening socket, and the store       streamer
                 where several processes may open it
    scoring      store, objects                            server on SQLite, else scoring
    worker       nothing more                              worker
    analyzer     its listening socket                      analyzer

and all of them the clock, the settings and the readiness board. `PARTS` below is that table as code,
`PROCESSES` says which parts share a process. This module builds the resources, runs the chosen parts on one
event loop and takes everything down again; `processes.py` starts all processes as children. What a service does
is in `services/<name>/service.py`, whose `run(...)` runs until it is cancelled; it is imported only in the
process that runs it, so a worker never loads the store.
"""

import asyncio
import contextlib
import faulthandler
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base import clock as clocks
from camserver.base import folders, ports
from camserver.base import log as logs
from camserver.base.bells import Bells
from camserver.base.clock import StoreClock
from camserver.base.collecting import collect_seldom
from camserver.base.errors import Bug, CamError, Fatal
from camserver.base.ready import Ready

if TYPE_CHECKING:
    from camserver.base.secrets import Secret
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store.core import Store

log = logs.get_logger(__name__)

# A process that was told to stop and hangs ends itself then and says where it hung. The supervisor's patience
# is longer, because its kill would say nothing.
STOP_DEADLINE_SEC = 8.0
# A database that does not answer for so long is not waited for by a process that was told to stop.
STOP_STORE_SEC = 5.0
# Files and sockets that a process may hold, as the systemd units say, too.
OPEN_FILES = 65_536


@dataclass(slots=True)
class Resources:
    """What parts are built from. A part takes from here what its `run(...)` asks for, and nothing else."""

    settings: "Settings"
    clock: StoreClock
    ready: Ready
    bells: Bells = field(default_factory=Bells)
    # By the name of the part that listens on it.
    sockets: dict[str, socket.socket] = field(default_factory=dict)
    _store: "Store | None" = None
    _web_store: "Store | None" = None
    _objects: "Objects | None" = None

    @property
    def store(self) -> "Store":
        if self._store is None:
            raise Bug("a part asks for the store but is not marked with needs_store in parts.PARTS")
        return self._store

    @property
    def web_store(self) -> "Store":
        """The store as web uses it: where `web.store_url` is set, with a belt around each tenant."""
        return self._web_store or self.store

    def hurry(self) -> None:
        """The process was told to stop."""
        for store in (self._store, self._web_store):
            if store is not None:
                store.hurry(STOP_STORE_SEC)

    @property
    def objects(self) -> "Objects":
        if self._objects is None:
            raise Bug("a part asks for the objects but is not marked with needs_store in parts.PARTS")
        return self._objects


async def _control(given: Resources) -> None:
    from camserver.services.control import service

    sock, tls_sock = given.sockets["control"], given.sockets.get("control.tls")
    await service.run(
        given.store, given.objects, given.clock, given.settings, given.ready, sock, tls_sock, given.bells
    )


async def _dispatcher(given: Resources) -> None:
    from camserver.services.dispatcher import service

    await service.run(given.store, given.objects, given.clock, given.settings, given.ready)


async def _web(given: Resources) -> None:
    from camserver.services.web import service

    sock = given.sockets["web"]
    await service.run(given.web_store, given.objects, given.clock, given.settings, given.ready, sock, given.bells)


async def _streamer(given: Resources) -> None:
    from camserver.services.streamer import service

    sock, tls_sock = given.sockets["streamer"], given.sockets.get("streamer.tls")
    await service.run(given.clock, given.settings, given.ready, sock, given._store, tls_sock)


async def _scoring(given: Resources) -> None:
    from camserver.services.scoring import service

    await service.run(given.store, given.objects, given.clock, given.settings, given.ready)


async def _worker(given: Resources) -> None:
    from camserver.services.worker import service

    await service.run(given.clock, given.settings, given.ready)


async def _analyzer(given: Resources) -> None:
    from camserver.services.analyzer import service

    # Looks, uploads and pages come first. It counts for the whole process, so it is set where processes are made.
    os.nice(given.settings.analyzer.nice)
    await service.run(given.clock, given.settings, given.ready, given.sockets["analyzer"])


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    purpose: str
    start: Callable[[Resources], Awaitable[None]]
    needs_store: bool
    # It listens on host and port of the settings' section of its name.
    listens: bool
    # It opens the store where other processes may have it open as well; else it asks the server.
    shares_store: bool = False

    def opens_store(self, settings: "Settings") -> bool:
        return self.needs_store or (self.shares_store and settings.store.url.dialect != "sqlite")


PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        Part("control", "the workers' side: registration, leases, frames in", _control, True, True),
        Part("dispatcher", "jobs: claim, ask the analyzer, decide, apply", _dispatcher, True, False),
        Part("web", "API, pages, signed media and the change feed", _web, True, True),
        Part("streamer", "shows live video to browsers", _streamer, False, True, shares_store=True),
        Part("scoring", "scores sheets and events by a language model", _scoring, True, False),
        Part("worker", "holds cameras, looks at them and sends what it sees", _worker, False, False),
        Part("analyzer", "says what a picture shows", _analyzer, False, True),
    )
}

# The processes of `camserver up`: each is a command of that name that runs these parts.
PROCESSES: Mapping[str, Sequence[str]] = {
    "server": ("control", "dispatcher", "web"),
    "scoring": ("scoring",),
    "streamer": ("streamer",),
    "worker": ("worker",),
    "analyzer": ("analyzer",),
}


def with_scoring(names: Sequence[str], settings: "Settings") -> Sequence[str]:
    """On SQLite, whose file one process owns, the server itself scores, once a model is configured."""
    is_alone = settings.store.url.dialect == "sqlite" and settings.llm.is_configured
    return (*names, "scoring") if is_alone and "web" in names else names


def serve(process: str, names: Sequence[str], settings: "Settings") -> None:
    """Runs the named parts in this process until SIGTERM or SIGINT, or until one of them fails."""
    import uvloop

    logs.configure(process, settings.log.format, settings.log.level)
    # A core file would hold the passwords of cameras; tracebacks tell more, and without them.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hold_open_many()
    for warning in settings.warnings:
        log.warning("about the settings", warning=warning)
    try:
        uvloop.run(_run([PARTS[name] for name in with_scoring(names, settings)], settings))
    except CamError:
        raise
    except Exception as error:
        log.exception("unexpected error")
        raise Fatal(f"{process} failed ({type(error).__name__}); the log above holds the traceback") from error
    finally:
        faulthandler.cancel_dump_traceback_later()


def hold_open_many() -> None:
    """A shell gives 1,024 files and sockets, which the pages of some hundred people are. The hard limit stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run(parts: Sequence[Part], settings: "Settings") -> None:
    on_stop: list[Callable[[], None]] = []
    _stop_on_signals(on_stop)
    try:
        async with _resources(parts, settings) as given:
            on_stop.append(given.hurry)
            collect_seldom()
            await run_parts(parts, given)
    except asyncio.CancelledError:
        log.info("stopped")


def _stop_on_signals(on_stop: Sequence[Callable[[], None]] = ()) -> None:
    """The first SIGTERM or SIGINT cancels the calling task, and calls whatever is in `on_stop` by then.

    Settings are read at start only, so SIGHUP is moot.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def stop(number: signal.Signals) -> None:
        if not task.cancelling():
            log.info("stopping", signal=number.name)
            faulthandler.dump_traceback_later(STOP_DEADLINE_SEC, exit=True)
            for call in on_stop:
                call()
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    loop.add_signal_handler(
        signal.SIGHUP, lambda: log.info("SIGHUP ignored: restart camserver to read changed settings")
    )


@asynccontextmanager
async def _resources(parts: Sequence[Part], settings: "Settings") -> AsyncIterator[Resources]:
    """Folder and ports first, then the store; closed in the opposite order, after the parts have ended."""
    folders.make_usable(settings.server.data_dir, "server.data_dir")
    given = Resources(settings, StoreClock(), Ready())
    async with AsyncExitStack() as stack:
        for part in parts:
            given.ready.expect(part.name)
            if part.listens:
                where = getattr(settings, part.name)
                sock = ports.listen(where.host, where.port, f"{part.name}.port")
                stack.callback(sock.close)
                given.sockets[part.name] = sock
            if part.name == "control" and settings.control.tls_port is not None:
                sock = ports.listen(settings.control.tls_host, settings.control.tls_port, "control.tls_port")
                stack.callback(sock.close)
                given.sockets["control.tls"] = sock
            if part.name == "streamer" and settings.streamer.tls_port is not None:
                sock = ports.listen(settings.streamer.tls_host, settings.streamer.tls_port, "streamer.tls_port")
                stack.callback(sock.close)
                given.sockets["streamer.tls"] = sock
        await _tell_figures(parts, settings, given.clock, stack)
        if any(part.opens_store(settings) for part in parts):
            await add_store(given, stack)
        if any(part.name == "web" for part in parts):
            await add_web_store(given, stack)
        yield given


# Ports of figures, from `metrics.port` on: those that run on one machine have one each.
_FIGURES_AT = {"streamer": 1, "worker": 2, "analyzer": 3}


async def _tell_figures(
    parts: Sequence[Part], settings: "Settings", clock: StoreClock, stack: AsyncExitStack
) -> None:
    """Where a collector or a port is set, this process tells its figures there."""
    if settings.telemetry.endpoint is not None:
        from camserver.base import telemetry

        process = parts[0].name if len(parts) == 1 else "server"
        await stack.enter_async_context(telemetry.running(settings.telemetry, process, clock))
    if settings.metrics.port is None:
        return
    from camserver.base import figures_port

    port = settings.metrics.port + _FIGURES_AT.get(parts[0].name, 0)
    sock = stack.enter_context(ports.listen(settings.metrics.host, port, "metrics.port"))
    telling = asyncio.create_task(figures_port.serve(sock, settings.metrics.token))
    stack.callback(telling.cancel)


async def add_store(given: Resources, stack: AsyncExitStack) -> None:
    from camserver.objects.opening import open_objects
    from camserver.store import open_store
    from camserver.store.first_start import prepare_store

    chosen = given.settings.store
    store = await open_store(
        chosen.url.reveal(),
        pool_size=chosen.pool_size,
        acquire_timeout_sec=chosen.acquire_timeout_sec,
        sqlite_readers=chosen.sqlite_readers,
        backup_dir=backup_folder(given.settings),
    )
    stack.push_async_callback(store.close)
    given._store = store
    given._objects = await open_objects(given.settings.objects)
    # Before any part starts: no lease is ever judged by a wall clock that is wrong.
    if await clocks.sync(given.clock, store.database_time_ms):
        following = asyncio.create_task(clocks.follow(given.clock, store.database_time_ms))
        stack.callback(following.cancel)
    # Parts start together; none may meet a database without tenant, site and vocabulary.
    await prepare_store(store, given.settings.vocabulary.schema_version, given.clock.now_ms())


async def add_web_store(given: Resources, stack: AsyncExitStack) -> None:
    chosen = given.settings.store
    if given.settings.web.store_url is not None:
        from camserver.store.belt import belted

        given._web_store = await stack.enter_async_context(
            belted(
                given.store,
                given.settings.web.store_url,
                pool_size=chosen.pool_size,
                acquire_timeout_sec=chosen.acquire_timeout_sec,
            )
        )


def backup_folder(settings: "Settings") -> Path:
    """Where the database is copied to before an upgrade."""
    return settings.server.data_dir / "backups"


async def run_parts(parts: Sequence[Part], given: Resources) -> None:
    """Runs the parts until cancelled; the first that fails, or ends, ends all and is what is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(_run_one(part, given), name=part.name)
    except BaseExceptionGroup as failed:
        raise _most_telling(failed) from failed


async def _run_one(part: Part, given: Resources) -> None:
    with logs.as_service(part.name):
        log.info("service starts", purpose=part.purpose)
        try:
            await part.start(given)
        except CamError as error:
            log.error("service failed", code=error.code, cause=error.message)
            raise
        except Exception as error:
            log.exception("service failed")
            raise Fatal(
                f"the service {part.name} failed ({type(error).__name__}); the log above holds the traceback"
            ) from error
        finally:
            given.ready.clear(part.name, "stopped")
        raise Bug(f"the service {part.name} ended by itself; it must run until it is cancelled")


def _most_telling(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of several failures the one that names what to do, else the first."""
    leaves = list(_leaves(failed))
    return next((leaf for leaf in leaves if isinstance(leaf, CamError)), leaves[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Sequence[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found


def simulate(
    settings: "Settings",
    cameras: Sequence[str],
    offline: Sequence[str],
    address: tuple[str, int],
    login: "tuple[str, Secret] | None",
    greet: Callable[[Sequence[str]], None],
) -> None:
    """Runs the camera simulator in this process until SIGTERM or SIGINT. `greet` is told the addresses."""
    from camserver.services.simulator import service
    from camserver.services.simulator.asked import parse_cameras
    from camserver.services.simulator.digest import Login

    logs.configure("simulator", settings.log.format, settings.log.level)
    asked = parse_cameras(cameras, offline)
    cache_dir = settings.server.data_dir / "simulator"

    async def work() -> None:
        _stop_on_signals()
        with _listen_for_simulator(*address) as sock, contextlib.suppress(asyncio.CancelledError):
            await service.run(asked, sock, Login(*login) if login else None, cache_dir, StoreClock(), greet)

    try:
        asyncio.run(work())
    finally:
        faulthandler.cancel_dump_traceback_later()


def _listen_for_simulator(host: str, port: int) -> socket.socket:
    try:
        return ports.listen(host, port, "demo.port")
    except CamError as error:
        # Of `camserver simulate` itself the port is no setting.
        raise type(error)(f"{error.message}; for `camserver simulate` itself: with --host and --port") from None
