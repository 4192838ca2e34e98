"""What services know of the place where pictures and clips live. A folder and a bucket both are one."""

from collections.abc import Sequence
from typing import Protocol

# `list` is also the name of a method below, where the annotation would mean that.
Keys = list[str]
Pictures = list[bytes | None]


class Objects(Protocol):
    """Where pictures live."""

    async def put(self, key: str, data: bytes) -> None:
        """Stores an object durably; the same key again replaces it."""

    async def get(self, key: str) -> bytes:
        """The object's bytes; NotFound when there is none."""

    async def get_each(self, keys: Sequence[str]) -> Pictures:
        """Several at once, in their order; None for one that can't be read now: `get` says why."""

    async def get_range(self, key: str, begin: int, length: int) -> bytes:
        """Up to `length` bytes from `begin` on, fewer at the object's end; NotFound when there is no object."""

    async def size_bytes(self, key: str) -> int | None:
        """How large the object is; None when there is none."""

    async def delete(self, key: str) -> None:
        """Removes an object; removing one that is not there is fine."""

    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        """Up to `limit` keys below `prefix` that sort after `after`, in order. A prefix is whole and ends in `/`."""

    async def free_bytes(self) -> int | None:
        """Room left, where that can be known."""
