"""The order of test files that run at the same time: the longest begin first, so that none is left alone at the end.

Files that are not named take below half a minute and come behind, in the order in which they were asked for.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

# By what they take, longest first. `make test PYTEST_ARGS=--durations=50` tells what has changed.
LONGEST = (
    "tests/chaos/test_crash.py",
    "tests/e2e/test_delegation_acceptance.py",
    "tests/e2e/test_delegation_servers.py",
    "tests/e2e/ui/test_first_event.py",
    "tests/services/worker/test_faults.py",
    "tests/e2e/ui/test_live.py",
    "tests/e2e/test_first_look.py",
    "tests/clients/sheets/test_google_sheet.py",
    "tests/e2e/test_rtsp_cameras.py",
    "tests/store/test_migrate.py",
    "tests/services/dispatcher/test_archiving.py",
    "tests/repository/test_setup.py",
    "tests/chaos/test_network.py",
    "tests/media/test_rtsp_foreign.py",
    "tests/services/dispatcher/test_every_fault.py",
    "tests/e2e/ui/test_clip.py",
    "tests/services/dispatcher/test_deaths.py",
    "tests/e2e/test_mqtt.py",
    "tests/services/dispatcher/test_outages.py",
    "tests/services/dispatcher/test_notifying.py",
    "tests/commands/test_seen.py",
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


class Item(Protocol):
    @property
    def nodeid(self) -> str: ...


Each = TypeVar("Each", bound=Item)


def longest_first(items: Sequence[Each]) -> list[Each]:
    place = {path: number for number, path in enumerate(LONGEST)}
    return sorted(items, key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))
