"""Runs an upgrade in a process of its own, and dies by kill -9 at a chosen moment of it.

    python -m tests.store.upgrading MIGRATIONS URL [MOMENT]

A moment is `before:name` or `after:name` of a step of the upgrade, or `inside` for the middle of the migration.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from camserver.store import dumps, migrate, sqlite_schema

# Steps of an upgrade of SQLite, as (object, name of its attribute).
STEPS: dict[str, tuple[Any, str]] = {
    "backup": (migrate, "_back_up"),
    "copy": (dumps, "copy_sqlite"),
    "migrations": (migrate, "_on_sqlite"),
    "fold": (dumps, "fold_log_in"),
    "replace": (Path, "replace"),
}
MOMENTS = [
    "inside",
    "after:backup",
    "after:copy",
    "after:migrations",
    "before:fold",
    "before:replace",
    "after:replace",
]


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(step: Callable[..., Any], when: str) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            die()
        result = step(*args, **kwargs)
        die()
        return result

    return wrapped


def main(migrations: str, url: str, moment: str = "") -> None:
    sqlite_schema.MIGRATIONS = Path(migrations)
    before = migrate.status(url)
    if moment == "inside":
        os.environ["CAMSERVER_TEST_DIE"] = "1"
    elif moment:
        when, _, name = moment.partition(":")
        owner, attribute = STEPS[name]
        setattr(owner, attribute, _dying(getattr(owner, attribute), when))
        migrate.status = lambda _: before  # type: ignore[assignment]  # it was asked above
    migrate.upgrade(url, Path(migrations).parent / "backups")


if __name__ == "__main__":
    main(*sys.argv[1:])
