"""A request as the edge has read it: its headers by name, and its body, which is there in one piece.

Starlette's own looks through all headers for each that is asked for, some ten times a request, and hands the body on
by messages.
"""

from typing import Any, Final, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

V = TypeVar("V")

# Where a scope has them.
HEADERS: Final = "camserver.headers"
BODY: Final = "camserver.body"


class _AsSent(dict[str, bytes]):
    """Names as they stand in a scope. They are those that the program asks for, which are few."""

    def __missing__(self, name: str) -> bytes:
        self[name] = sent = name.lower().encode("latin-1")
        return sent


_as_sent = _AsSent()


class RequestHeaders(Headers):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        # Of several of one name the first counts, as with Starlette's.
        self._by_name: dict[bytes, bytes] = dict(reversed(scope["headers"]))

    def __getitem__(self, key: str) -> str:
        return self._by_name[_as_sent[key]].decode("latin-1")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _as_sent[key] in self._by_name

    def get(self, key: str, default: Any = None) -> Any:
        found = self._by_name.get(_as_sent[key])
        return default if found is None else found.decode("latin-1")


class ReadRequest(Request):
    @property
    def headers(self) -> Headers:
        found: Headers = self.scope[HEADERS]
        return found

    async def body(self) -> bytes:
        found: bytes = self.scope[BODY]
        return found
