"""The door of a TLS port: connections of strangers, who have not said anything yet, are bounded in time and number.

A stranger is whoever is in the middle of the handshake or has sent no whole request head; without a certificate it
stays one until it leaves. Each has a fixed time to speak. When there are too many, of one address or in all, the one
that came first gives way: somebody who has something to say does so at once, and gets in even while others fill the
door. What is served, and to whom, is decided behind it.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from camserver.base.log import get_logger

log = get_logger(__name__)

ACCEPT_AT_ONCE = 64
# After this process ran out of file descriptors or memory for another connection.
ACCEPT_PAUSE_SEC = 1.0
LOG_EVERY_SEC = 60.0


@dataclass(frozen=True, slots=True)
class DoorPolicy:
    arrival_sec: float  # for the handshake and the first request together
    strangers_max: int
    address_strangers_max: int


class Stranger:
    """A connection at the door, as the protocol that serves it sees it."""

    def __init__(self, door: "Door", sock: socket.socket, address: str) -> None:
        self._door = door
        self._sock = sock
        self._deadline: asyncio.TimerHandle | None = None
        self.address = address

    def must_speak_by(self, deadline: asyncio.TimerHandle) -> None:
        self._deadline = deadline

    def spoke(self, is_known: bool) -> None:
        """A whole request head came. `is_known`: with a certificate, so that it is no stranger any more."""
        self._stop_clock()
        if is_known:
            self.left()

    def left(self) -> None:
        """It is gone, or known. May be said again."""
        self._stop_clock()
        self._door.forget(self)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def turn_away(self) -> None:
        """Ends the connection, whatever state it is in; whoever serves it sees its end."""
        self.left()
        with contextlib.suppress(OSError):  # it has ended meanwhile
            self._sock.shutdown(socket.SHUT_RDWR)


class Door:
    """Accepts on a listening socket. It is closed like a server of asyncio."""

    def __init__(
        self,
        sock: socket.socket,
        tls: ssl.SSLContext,
        policy: DoorPolicy,
        serve: Callable[[Stranger], asyncio.Protocol],
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._tls = tls
        self._policy = policy
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        # In the order of their coming.
        self._strangers: OrderedDict[Stranger, None] = OrderedDict()
        self._by_address: dict[str, OrderedDict[Stranger, None]] = {}
        self._shakes: set[asyncio.Task[None]] = set()
        self._turned_away = {"silent": 0, "crowded": 0}
        self._told: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._is_open = True
        self._watch()

    # As a server ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove_reader(self._sock.fileno())
        for timer in (self._pause, self._told):
            if timer is not None:
                timer.cancel()
        for shake in self._shakes:
            shake.cancel()

    async def wait_closed(self) -> None:
        if self._shakes:
            await asyncio.wait(self._shakes)

    def _watch(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no further connection can be accepted for now", cause=str(error))
                self._loop.remove_reader(self._sock.fileno())
                self._pause = self._loop.call_later(ACCEPT_PAUSE_SEC, self._watch)
                return
            sock.setblocking(False)
            shake = self._loop.create_task(self._shake_hands(sock, self._receive(sock, address[0])))
            self._shakes.add(shake)
            shake.add_done_callback(self._shakes.discard)

    async def _shake_hands(self, sock: socket.socket, stranger: Stranger) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._serve(stranger),
                sock,
                ssl=self._tls,
                # The door's own clock is the shorter one; the event loop wants a number, too.
                ssl_handshake_timeout=self._policy.arrival_sec * 2,
            )
        except (OSError, ssl.SSLError) as error:
            log.debug("a handshake failed", address=stranger.address, cause=str(error))
            stranger.left()
            sock.close()
        except asyncio.CancelledError:
            stranger.turn_away()
            sock.close()
            raise

    # Strangers ------------------------------------------------------------------------------------------------

    def _receive(self, sock: socket.socket, address: str) -> Stranger:
        beside = self._by_address.get(address, ())
        if len(beside) >= self._policy.address_strangers_max:
            self._turn_away(next(iter(beside)), "crowded")
        elif len(self._strangers) >= self._policy.strangers_max:
            self._turn_away(next(iter(self._strangers)), "crowded")
        stranger = Stranger(self, sock, address)
        stranger.must_speak_by(self._loop.call_later(self._policy.arrival_sec, self._turn_away, stranger, "silent"))
        self._strangers[stranger] = None
        self._by_address.setdefault(address, OrderedDict())[stranger] = None
        return stranger

    def forget(self, stranger: Stranger) -> None:
        self._strangers.pop(stranger, None)
        beside = self._by_address.get(stranger.address)
        if beside is not None:
            beside.pop(stranger, None)
            if not beside:
                del self._by_address[stranger.address]

    def _turn_away(self, stranger: Stranger, why: str) -> None:
        stranger.turn_away()
        self._turned_away[why] += 1
        if self._told is None:
            self._tell(stranger.address)

    def _tell(self, address: str | None = None) -> None:
        """At once, and then at most once a minute for all that came meanwhile."""
        self._told = None
        if not any(self._turned_away.values()):
            return
        log.warning(
            "connections that said nothing were turned away",
            **self._turned_away,
            waiting=len(self._strangers),
            **({} if address is None else {"address": address}),
        )
        self._turned_away = dict.fromkeys(self._turned_away, 0)
        self._told = self._loop.call_later(LOG_EVERY_SEC, self._tell)
