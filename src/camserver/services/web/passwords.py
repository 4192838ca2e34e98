"""Passwords: argon2id in threads of their own, few at a time.

A check costs 19 MiB and some tens of milliseconds, so it never runs on the event loop, and a flood of sign-ins is
refused instead of queued without end. Whether a login exists can't be told from how long a check takes: an unknown
one is checked against a hash that nobody has the password of.
"""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from camserver.base.errors import Unavailable

T = TypeVar("T")

MEMORY_KIB = 19 * 1024
PASSES = 2
LANES = 1
THREADS = 2
# Waiting and running together; at some 20 checks a second this is a wait of a few seconds.
WAITING_MAX = 64


class Passwords:
    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._under_way = 0
        self._nobodys_hash = self._hasher.hash(secrets.token_urlsafe(32))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def hash(self, password: str) -> str:
        return await self._in_thread(lambda: self._hasher.hash(password))

    async def matches(self, password: str, stored_hash: str | None) -> bool:
        """Takes as long without a stored hash as with one."""
        against = self._nobodys_hash if stored_hash is None else stored_hash
        found = await self._in_thread(lambda: self._verify(password, against))
        return found and stored_hash is not None

    def is_outdated(self, stored_hash: str) -> bool:
        return self._hasher.check_needs_rehash(stored_hash)

    def _verify(self, password: str, stored_hash: str) -> bool:
        try:
            return self._hasher.verify(stored_hash, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._under_way >= WAITING_MAX:
            raise Unavailable(
                "too many people sign in at this moment; try again in a few seconds",
                reason="sign_in_busy",
                retry_after_sec=5,
            )
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1
