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


class RequestHeaders(Headers):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        # Of several of one name the first counts, as with Starlette's.
        self._by_name = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw)}

    def __getitem__(self, key: str) -> str:
        return self._by_name[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._by_name

    def get(self, key: str, default: Any = None) -> Any:
        return self._by_name.get(key.lower(), default)


class ReadRequest(Request):
    @property
    def headers(self) -> Headers:
        found: Headers = self.scope[HEADERS]
        return found

    async def body(self) -> bytes:
        found: bytes = self.scope[BODY]
        return found
