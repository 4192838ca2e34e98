"""`camserver up`: the processes of one machine as children that are started again when they die."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from camserver.base import assets, folders, supervise
from camserver.base import log as logs
from camserver.base.errors import CamError
from camserver.clients.ready_probe import is_ready
from camserver.parts import PROCESSES
from camserver.tool_server import cancelled, local_server

if TYPE_CHECKING:
    from camserver.config import Settings

log = logs.get_logger(__name__)

READY_POLL_SEC = 0.2
# Those that are not a command of the process's own name.
COMMANDS = {"scoring": ["scoring", "run"]}


def up(
    settings: "Settings", options: Sequence[str], greet: Callable[[], None], demo: bool
) -> supervise.GaveUp | None:
    """Runs every process of `PROCESSES` as a child until told to stop. `options` go before each command.

    `greet` is called when the server is ready for the first time; with `demo`, after its cameras were added.
    """
    logs.configure("up", settings.log.format, settings.log.level)
    folders.make_usable(settings.server.data_dir, "server.data_dir")
    environ = children_environ(settings, demo)
    commands = [COMMANDS.get(name, [name]) for name in wanted_processes(settings)]
    if demo:
        from camserver.clients.demo_cameras import simulator_options

        footage = assets.find(assets.FOOTAGE, settings.server.data_dir)
        commands.append(["simulate", *simulator_options(footage, settings.demo.port)])
    children = [
        supervise.ChildSpec(command[0], [sys.executable, "-m", "camserver", *options, *command], environ)
        for command in commands
    ]
    return asyncio.run(_supervise(children, settings, greet, demo))


def children_environ(settings: "Settings", demo: bool) -> dict[str, str]:
    """The variables that children get beside the user's own."""
    # The children's stderr is a pipe to us, so what is on our side of it decides how their lines look.
    environ = {**os.environ, "CAMSERVER_LOG_FORMAT": logs.resolve_format(settings.log.format)}
    if logs.colours_wanted():
        environ["FORCE_COLOR"] = "1"
    if demo:
        # The simulated cameras are on this machine.
        environ["CAMSERVER_WORKER_ALLOW_LOOPBACK"] = "true"
    return environ


def wanted_processes(settings: "Settings") -> list[str]:
    """Those of `PROCESSES` that this installation needs. Without an analyzer everything else still works."""
    wanted = list(PROCESSES)
    if settings.store.url.dialect == "sqlite" or not settings.llm.is_configured:
        wanted.remove("scoring")
    chosen = settings.analyzer
    if not chosen.is_own:
        wanted.remove("analyzer")
    elif chosen.needs_own_model and not assets.has_model(settings.server.data_dir):
        log.warning("no analyzer: nothing will be recognized", cause=assets.no_model(settings.server.data_dir))
        wanted.remove("analyzer")
    return wanted


async def _supervise(
    children: Sequence[supervise.ChildSpec], settings: "Settings", greet: Callable[[], None], demo: bool
) -> supervise.GaveUp | None:
    greeting = asyncio.create_task(_greet(settings, greet, demo))
    try:
        return await supervise.Supervisor(children, supervise.RestartPolicy()).run()
    finally:
        await cancelled(greeting)


async def _greet(settings: "Settings", greet: Callable[[], None], demo: bool) -> None:
    while not await is_ready(settings.web.host, settings.web.port):  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(READY_POLL_SEC)
    if demo:
        from camserver.clients.demo_cameras import add_demo_cameras

        server = local_server(settings, settings.web.host, settings.web.port)
        try:
            log.info("demo cameras added", count=await add_demo_cameras(server, settings.demo.port))
        except CamError as error:
            log.warning("no demo cameras", cause=error.message)
    greet()
