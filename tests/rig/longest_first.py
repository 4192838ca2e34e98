"""The order of test files that run at the same time: long ones begin first, so that none is left alone at the end.

The long ones start real processes and wait for them, for leases and for time-outs. So they are spread among the
others, which keep the cores busy meanwhile. Files that are not named take below half a minute; they keep the order in
which they were asked for.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

# By what they take, longest first. `make test PYTEST_ARGS=--durations=50` tells what has changed.
LONGEST = (
    "tests/e2e/test_delegation_acceptance.py",
    "tests/e2e/test_delegation_servers.py",
    "tests/chaos/test_crash.py",
    "tests/repository/test_checks_beside.py",
    "tests/services/worker/test_faults.py",
    "tests/e2e/ui/test_first_event.py",
    "tests/e2e/ui/test_live.py",
    "tests/e2e/test_first_look.py",
    "tests/repository/test_setup.py",
    "tests/e2e/test_rtsp_cameras.py",
    "tests/store/test_migrate.py",
    "tests/services/dispatcher/test_archiving.py",
    "tests/chaos/test_network.py",
    "tests/media/test_rtsp_foreign.py",
    "tests/services/dispatcher/test_every_fault.py",
    "tests/e2e/ui/test_journey.py",
    "tests/services/dispatcher/test_deaths.py",
    "tests/e2e/test_mqtt.py",
    "tests/services/dispatcher/test_outages.py",
    "tests/services/dispatcher/test_notifying.py",
    "tests/commands/test_seen.py",
    "tests/docs/test_commands.py",
    "tests/chaos/test_retention_crash.py",
    "tests/services/dispatcher/test_retaining.py",
    "tests/repository/test_project_assets.py",
    "tests/services/dispatcher/test_reviewing.py",
    "tests/services/streamer/test_path.py",
    "tests/store/test_servers.py",
    "tests/e2e/test_clips.py",
    "tests/objects/test_s3.py",
    "tests/e2e/test_buckets.py",
)
# The part of the others that they are spread over: the rest evens out what is left at the end.
SPREAD_OVER = 0.75


class Item(Protocol):
    @property
    def nodeid(self) -> str: ...


Each = TypeVar("Each", bound=Item)


def longest_first(items: Sequence[Each]) -> list[Each]:
    files: dict[str, list[Each]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    long = [path for path in LONGEST if path in files]
    short = [path for path in files if path not in LONGEST]
    between = int(len(short) * SPREAD_OVER / max(len(long), 1))
    order: list[str] = []
    for number, path in enumerate(long):
        order += [path, *short[number * between : (number + 1) * between]]
    order += short[len(long) * between :]
    return [item for path in order for item in files[path]]
