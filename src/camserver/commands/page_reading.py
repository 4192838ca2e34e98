"""Lists that the API answers page by page, read as far as a command was asked to show."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from camserver.base.errors import Unavailable

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

PAGE = 200
PAGES_MAX = 1_000
LIMIT_MAX = 2_000


async def read_newest(
    server: "LocalServer", path: str, name: str, query: list[tuple[str, str]], limit: int
) -> dict[str, Any]:
    """Up to `limit` of a list, newest first, under its name; `next_before` is None where there are no more."""
    found: list[Any] = []
    before: str | None = None
    while len(found) < limit:
        asked = [("limit", str(min(PAGE, limit - len(found)))), *query]
        page = await server.get(f"{path}?{urlencode(asked if before is None else [*asked, ('before', before)])}")
        found += page[name]
        before = page["next_before"]
        if before is None:
            break
    return {name: found, "next_before": before}


async def read_all(server: "LocalServer", path: str, name: str) -> list[dict[str, Any]]:
    """The whole of a list that pages lead through by `after`."""
    found: list[dict[str, Any]] = []
    query = ""
    for _ in range(PAGES_MAX):
        page = await server.get(f"{path}{query}")
        found += page[name]
        if page["next_after"] is None:
            return found
        query = f"?{urlencode({'after': page['next_after']})}"
    raise Unavailable(f"the list at {path} does not end")


async def check_cameras(server: "LocalServer", camera_ids: tuple[str, ...]) -> None:
    """NotFound that names a camera which is not there; for lists that are empty, and may be so for that."""
    for camera_id in camera_ids:
        await server.get(f"/api/cameras/{quote(camera_id, safe='')}")
