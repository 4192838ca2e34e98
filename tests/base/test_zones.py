from datetime import UTC, datetime

import pytest

from camserver.base.zones import zone_of


def test_a_zone_by_its_name() -> None:
    assert (
        datetime(2026, 1, 1, tzinfo=zone_of("Asia/Tokyo")).utcoffset()
        == datetime(2026, 1, 1, tzinfo=zone_of("Etc/GMT-9")).utcoffset()
    )


@pytest.mark.parametrize("name", ["", "Nowhere/City", "../../etc/passwd", "/etc/localtime", "a\0b", "x" * 500])
def test_one_that_is_not_known_is_utc(name: str) -> None:
    assert zone_of(name) is UTC
