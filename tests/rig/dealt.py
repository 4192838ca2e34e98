"""Which database servers a test above the store runs on in `make test`.

SQL is written in the store alone, and each test of tests/store runs on all three databases. A test of a service runs
on SQLite and on one of the two servers, whichever its name falls to; in `make soak` (TEST_THOROUGH=1), and where a
file is run by hand, on both. All three keep a test whose users of the store race (`two_stores`), a module that says
`EVERY_DATABASE = True`, and a test that names its databases itself (`parametrize("db_kind", ...)`).
"""

from collections.abc import Sequence
from zlib import crc32

import pytest

SERVERS = ("postgres", "mariadb")
ABOVE_THE_STORE = ("tests/services/", "tests/commands/")


def dealt(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those that are left, in their order."""
    return [item for item in items if not _is_of_another_deal(item)]


def server_of(name: str) -> str:
    """The server that a test of this name, without its parameters, runs on."""
    return SERVERS[crc32(name.encode()) % len(SERVERS)]


def _is_of_another_deal(item: pytest.Item) -> bool:
    kind = getattr(getattr(item, "callspec", None), "params", {}).get("db_kind")
    if kind not in SERVERS or not item.nodeid.startswith(ABOVE_THE_STORE) or _wants_every(item):
        return False
    return bool(kind != server_of(item.nodeid.partition("[")[0]))


def _wants_every(item: pytest.Item) -> bool:
    module = item.getparent(pytest.Module)
    if module is not None and getattr(module.obj, "EVERY_DATABASE", False):
        return True
    if "two_stores" in getattr(item, "fixturenames", ()):
        return True
    named = (str(mark.args[0]) for mark in item.iter_markers("parametrize") if mark.args)
    return any("db_kind" in one for one in named)
