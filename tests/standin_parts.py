"""A program that runs stand-in services through `parts.serve`, for tests that signal it.

    python -m tests.standin_parts FOLDER NAME...

Each NAME is one of the services below. It logs JSON lines to stderr; settings come from the environment.
"""

import asyncio
import os
import sys
from pathlib import Path

from camserver import parts
from camserver.base.errors import StoreUnavailable
from camserver.base.log import get_logger
from camserver.config import load
from camserver.parts import Part, Resources

log = get_logger(__name__)


async def steady(given: Resources) -> None:
    """Finds the store furnished, and says when it had its time to end."""
    from camserver.store import first_start

    given.ready.set("steady")
    tenant_id = await given.store.read(first_start.lock_home)
    log.info("steady is ready", tenant_id=tenant_id, folder=str(given.objects.root))
    try:
        await asyncio.Event().wait()
    finally:
        log.info("steady ended tidily")


async def lonely(given: Resources) -> None:
    """Needs no store, so nothing of it may have been loaded."""
    loaded = sorted(name for name in sys.modules if name.startswith("camserver.store"))
    log.info("lonely is ready", loaded=loaded)
    await asyncio.Event().wait()


async def listening(given: Resources) -> None:
    """Has its socket already."""
    log.info("listening is ready", port=given.sockets["web"].getsockname()[1])
    await asyncio.Event().wait()


async def hanging(given: Resources) -> None:
    """Does not let itself be cancelled."""
    log.info("hanging is ready")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            log.info("hanging was asked to end")


async def crashing(given: Resources) -> None:
    raise ZeroDivisionError("by hand")


async def without_database(given: Resources) -> None:
    raise StoreUnavailable("the database is away")


async def ending(given: Resources) -> None:
    return


STANDINS = {
    part.name: part
    for part in (
        Part("steady", "stays", steady, True, False),
        Part("lonely", "stays", lonely, False, False),
        Part("hanging", "hangs", hanging, False, False),
        Part("crashing", "crashes", crashing, False, False),
        Part("without_database", "fails", without_database, False, False),
        Part("ending", "ends", ending, False, False),
        Part("web", "listens", listening, False, True),
    )
}


def main() -> None:
    from camserver.commands.root import Commands

    folder, *names = sys.argv[1:]
    parts.PARTS = STANDINS
    parts.STOP_DEADLINE_SEC = 1.0 if "hanging" in names else 300.0
    root = Commands("standin", callback=lambda: None, invoke_without_command=True)
    settings = load(None, os.environ, Path(folder))

    @root.command("run")
    def run() -> None:
        parts.serve("standin", names, settings)

    root.main(["run"])


if __name__ == "__main__":
    main()
