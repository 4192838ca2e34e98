"""Time zones of sites by their IANA name."""

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from camserver.base.log import get_logger

log = get_logger(__name__)


def is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A site's time zone. One that this machine does not know is reported, and its times are told in UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        log.warning("time_zone_unknown", timezone=name)
        return UTC
