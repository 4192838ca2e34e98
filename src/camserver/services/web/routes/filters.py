"""What lists of events and incidents are narrowed by, as it stands in an address, and what names a time zone."""

from typing import Annotated

from fastapi import Query

from camserver.base.errors import BadInput
from camserver.base.zones import is_zone
from camserver.wire import api

VALUES_MAX = 50

CameraIds = Annotated[
    list[Annotated[str, Query(pattern=api.CAMERA_ID_PATTERN)]], Query(alias="camera_id", max_length=VALUES_MAX)
]
# As vocabularies write them: MariaDB takes a blank behind a text for nothing, and the others do not.
PrimaryEvents = Annotated[
    list[Annotated[str, Query(pattern=r"^[a-z][a-z0-9_]{0,31}$")]],
    Query(alias="primary_event", max_length=VALUES_MAX),
]
TagIds = Annotated[
    list[Annotated[str, Query(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$", max_length=64)]],
    Query(alias="tag", max_length=VALUES_MAX),
]
SiteNames = Annotated[
    list[Annotated[str, Query(min_length=1, max_length=128)]], Query(alias="site", max_length=VALUES_MAX)
]
SeverityMin = Annotated[int, Query(ge=0, le=3)]
From = Annotated[int | None, Query(alias="from", ge=0, lt=2**62, description="UTC epoch ms, included")]
To = Annotated[int | None, Query(alias="to", ge=0, lt=2**62, description="UTC epoch ms, not included")]
SiteName = Annotated[str | None, Query(min_length=1, max_length=128, description="Only of the site of this name.")]
Cursor = Annotated[str | None, Query(max_length=64)]


def check_times(from_ms: int | None, to_ms: int | None, names: tuple[str, str] = ("from", "to")) -> None:
    """BadInput when nothing can lie between the two, which are called `names`."""
    if from_ms is not None and to_ms is not None and from_ms >= to_ms:
        raise BadInput(f"`{names[0]}` must be before `{names[1]}`", reason="times_order", fields=list(names))


def check_zone(timezone: str | None) -> None:
    """BadInput when there is no such time zone; None is nothing to check."""
    if timezone is not None and not is_zone(timezone):
        raise BadInput(
            f"there is no time zone {timezone!r}; use an IANA name such as Asia/Tokyo",
            reason="no_zone",
            zone=timezone,
        )
