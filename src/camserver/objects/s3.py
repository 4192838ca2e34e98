"""Objects in a bucket of an S3-compatible store.

Such a store answers a put when the object is durable, and readers see a whole object or none; so there are no drafts
here. Waiting is bounded: what does not answer soon is `Unavailable`, and the caller's own patience decides. What the
store says in its answers never reaches a message, because it may repeat what it was sent.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from camserver.base.errors import BadInput, CamError, DataUnusable, NotFound, Unavailable
from camserver.base.log import get_logger
from camserver.objects.interface import Keys, Pictures
from camserver.objects.keys import check_key, check_prefix, check_range

if TYPE_CHECKING:
    from obstore.store import S3Config

    from camserver.base.secrets import Secret

log = get_logger(__name__)

R = TypeVar("R")

# The library's own defaults go on for three minutes, longer than anybody here waits.
CONNECT_TIMEOUT = timedelta(seconds=5)
REQUEST_TIMEOUT = timedelta(seconds=30)
RETRIES_MAX = 3
RETRY_TIMEOUT = timedelta(seconds=20)
BACKOFF_FIRST = timedelta(milliseconds=100)
BACKOFF_MAX = timedelta(seconds=2)
# No writer ever has this epoch, so what a killed start leaves there is nobody's object.
PROBE_PREFIX = "e0/probe-"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Which bucket, and how it is reached. Without keys, those of the environment or the machine's role are used."""

    name: str
    prefix: str = ""
    endpoint: str | None = None  # None = Amazon's of the region
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: "Secret | None" = None
    path_style: bool = True

    @property
    def shown(self) -> str:
        where = f"s3://{self.name}/{self.prefix}".rstrip("/")
        return f"{where} at {self.endpoint}" if self.endpoint else where


class S3Objects:
    def __init__(self, bucket: Bucket) -> None:
        self._where = bucket.shown
        self._store = _open(bucket)

    async def put(self, key: str, data: bytes) -> None:
        check_key(key)
        await self._asked(obstore.put_async(self._store, key, data, use_multipart=False), key)

    async def get(self, key: str) -> bytes:
        check_key(key)
        found = await self._asked(obstore.get_async(self._store, key), key)
        return bytes(await self._asked(found.bytes_async(), key))

    async def get_each(self, keys: Sequence[str]) -> Pictures:
        return list(await asyncio.gather(*(self._get_if_readable(key) for key in keys)))

    async def _get_if_readable(self, key: str) -> bytes | None:
        try:
            return await self.get(key)
        except (NotFound, Unavailable, BadInput):
            return None

    async def get_range(self, key: str, begin: int, length: int) -> bytes:
        check_key(key)
        check_range(begin, length)
        try:
            if length > 0:
                part = obstore.get_range_async(self._store, key, start=begin, length=length)
                return bytes(await self._asked(part, key))
        except Unavailable:
            # A range that begins past the end is an error there.
            if begin < await self._known_size_bytes(key):
                raise
            return b""
        await self._known_size_bytes(key)
        return b""

    async def size_bytes(self, key: str) -> int | None:
        check_key(key)
        try:
            return await self._known_size_bytes(key)
        except NotFound:
            return None

    async def _known_size_bytes(self, key: str) -> int:
        return (await self._asked(obstore.head_async(self._store, key), key))["size"]

    async def delete(self, key: str) -> None:
        check_key(key)
        try:
            await self._asked(obstore.delete_async(self._store, key), key)
        except NotFound:
            return

    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        check_prefix(prefix)
        pages = obstore.list(self._store, prefix, offset=after or None, chunk_size=limit)
        page = await self._asked(_first(pages), prefix)
        return [found["path"] for found in page][:limit]

    async def free_bytes(self) -> int | None:
        return None

    async def check(self) -> None:
        """Writes to the bucket once. DataUnusable when it refuses us; one that is away may come back, and is told."""
        key = f"{PROBE_PREFIX}{secrets.token_hex(8)}"
        try:
            await self.put(key, b"camserver")
            await self.delete(key)
        except Unavailable as error:
            if error.details.get("refused"):
                raise DataUnusable(error.message) from None
            log.warning("object_store_away", why=error.message)

    async def _asked(self, answer: Awaitable[R], key: str) -> R:
        try:
            return await answer
        except (BaseError, OSError, ValueError) as error:
            raise _told(self._where, key, error) from None


def _open(bucket: Bucket) -> S3Store:
    config: S3Config = {"region": bucket.region, "virtual_hosted_style_request": not bucket.path_style}
    if bucket.access_key_id is not None and bucket.secret_access_key is not None:
        config["access_key_id"] = bucket.access_key_id
        config["secret_access_key"] = bucket.secret_access_key.reveal()
    if bucket.endpoint is not None:
        config["endpoint"] = _endpoint(bucket, bucket.endpoint)
    return S3Store(
        bucket.name,
        prefix=bucket.prefix or None,
        config=config,
        client_options={
            "allow_http": bucket.endpoint is not None and bucket.endpoint.startswith("http://"),
            "connect_timeout": CONNECT_TIMEOUT,
            "timeout": REQUEST_TIMEOUT,
        },
        retry_config={
            "max_retries": RETRIES_MAX,
            "retry_timeout": RETRY_TIMEOUT,
            "backoff": {"init_backoff": BACKOFF_FIRST, "max_backoff": BACKOFF_MAX, "base": 2},
        },
    )


def _endpoint(bucket: Bucket, endpoint: str) -> str:
    """The library wants the bucket's own host where the bucket is named by the host."""
    if bucket.path_style:
        return endpoint
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{bucket.name}.{host}"


async def _first(pages: "obstore.ListStream[Sequence[obstore.ObjectMeta]]") -> "Sequence[obstore.ObjectMeta]":
    async for page in pages:
        return page
    return ()


def _told(where: str, key: str, error: Exception) -> CamError:
    said = str(error)
    if isinstance(error, FileNotFoundError):
        # Without its bucket no object is there; taken for missing, every job would be given up.
        if "NoSuchBucket" not in said:
            return NotFound(f"there is no object {key}")
        return Unavailable(
            f"the bucket of {where} does not exist; make it, or check [objects] url and endpoint", refused=True
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return Unavailable(
            f"{where} refuses camserver's keys; check [objects] access_key_id, secret_access_key and what the key "
            "may do (get, put, delete, list)",
            refused=True,
        )
    return Unavailable(f"{where} does not answer as it should; check [objects] endpoint and the store behind it")
