"""Walks through many pages take their time where other programs run beside them."""

from pathlib import Path

import pytest

TIMEOUT_SEC = 2400
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_SEC))
