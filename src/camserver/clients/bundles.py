"""Fetches a file from where an operator keeps model bundles: bounded, to disk, and only if it changed.

The same rules as for receivers (`outgoing`): checked addresses, no redirect, nothing unpacked. What the file is worth
is not looked at here.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import aiohttp

from camserver.base.errors import Unavailable
from camserver.clients.outgoing import OutgoingPolicy, checked_connector, checked_host
from camserver.domain.deliveries import DeliveryError

CONNECT_TIMEOUT_SEC: Final = 10.0
# Between two pieces; and in all, for a server that sends drop by drop.
READ_TIMEOUT_SEC: Final = 30.0
TOTAL_TIMEOUT_SEC: Final = 1800.0
PIECE_BYTES: Final = 262_144
TAG_CHARS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Fetched:
    size_bytes: int
    tag: str | None  # the ETag, by which the server knows this content


class BundleClient:
    def __init__(self, allow_loopback: bool) -> None:
        self._policy = OutgoingPolicy(allow_loopback=allow_loopback)
        self._session = aiohttp.ClientSession(
            connector=checked_connector(self._policy),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity", "User-Agent": "camserver"},
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(
                total=TOTAL_TIMEOUT_SEC, connect=CONNECT_TIMEOUT_SEC, sock_read=READ_TIMEOUT_SEC
            ),
        )

    async def close(self) -> None:
        await self._session.close()

    async def fetch(self, url: str, known_tag: str | None, path: Path, bytes_max: int) -> Fetched | None:
        """Writes the file to `path`; None when it is still the one of `known_tag`. Unavailable says what failed."""
        headers = {} if known_tag is None else {"If-None-Match": known_tag}
        host = "the host of analyzer.bundle_url"
        try:
            host = checked_host(url)
            self._policy.check_literal(host)
            async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status == 304 and known_tag is not None:
                    return None
                if answer.status != 200:
                    raise Unavailable(f"{host} answered {answer.status} when asked for a model bundle")
                size_bytes = await _written(answer, path, bytes_max, host)
                tag = answer.headers.get("ETag")
                return Fetched(size_bytes, tag if tag is None or len(tag) <= TAG_CHARS_MAX else None)
        except DeliveryError as error:
            raise Unavailable(f"analyzer.bundle_url can't be asked: {error.message}") from error
        except TimeoutError:
            raise Unavailable(f"{host} did not send the model bundle in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unavailable(
                f"{host}: the model bundle could not be fetched: {type(error).__name__}: {error}"
            ) from None


async def _written(answer: aiohttp.ClientResponse, path: Path, bytes_max: int, host: str) -> int:
    size_bytes = 0
    file: BinaryIO = await asyncio.to_thread(path.open, "wb")
    try:
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            size_bytes += len(piece)
            if size_bytes > bytes_max:
                answer.close()
                raise Unavailable(
                    f"the model bundle at {host} is larger than {bytes_max} bytes (analyzer.bundle_max_bytes)"
                )
            await asyncio.to_thread(file.write, piece)
    finally:
        await asyncio.to_thread(file.close)
    return size_bytes
