"""What a request handler works with: the service's resources and the one call it answers."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import Request
from starlette.requests import HTTPConnection

from camserver.base.addresses import peer_host
from camserver.base.bells import Bells
from camserver.base.clock import Clock
from camserver.base.errors import Bug
from camserver.base.ready import Ready
from camserver.config import Secrets, Settings
from camserver.domain.people import Principal
from camserver.objects.local import Objects
from camserver.services.web.admission_desk import AdmissionDesk
from camserver.services.web.archive_files import ArchiveFiles
from camserver.services.web.drawings import Drawings
from camserver.services.web.feeds import Feeds
from camserver.services.web.figures import InstallationFigures
from camserver.services.web.kept_bytes import KeptBytes
from camserver.services.web.languages import language_of
from camserver.services.web.messages import Language
from camserver.services.web.note_desk import NoteDesk
from camserver.services.web.oidc import OidcSignIn
from camserver.services.web.passwords import Passwords
from camserver.services.web.places import Places
from camserver.services.web.playable import PlayableFilms
from camserver.services.web.recent_looks import RecentLooks
from camserver.services.web.remembered import Remembered
from camserver.services.web.throttle import Devices, Rate, Throttle
from camserver.services.web.thumbnails import Thumbnails
from camserver.services.web.waits import Waits
from camserver.store import ScopedStore, Store
from camserver.store.first_start import Home
from camserver.store.sessions import SignedIn

# Cases that are sent at once; each reads as fast as its reader takes it.
EXPORTS_MAX = 4
# Links that somebody may have made in a minute: a page of a list makes some tens.
LINKS_MAX, LINKS_SPAN_MS = 600, 60_000
# Some hundred pictures of analyses: those of the last looks at a wall.
RECENT_PICTURES_MAX_BYTES, RECENT_PICTURE_MAX_BYTES = 24_000_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Web:
    """Made once, when the service starts."""

    store: Store
    objects: Objects
    clock: Clock
    settings: Settings
    secrets: Secrets
    ready: Ready
    bells: Bells
    home: Home  # the tenant that the local admin token acts in
    public_url: str  # without a slash at its end
    passwords: Passwords
    throttle: Throttle
    devices: Devices
    feeds: Feeds
    desk: AdmissionDesk
    notes: NoteDesk
    archive_files: ArchiveFiles
    oidc: OidcSignIn | None  # None: no provider is configured
    drawings: Drawings
    thumbnails: Thumbnails
    playable_films: PlayableFilms
    figures: InstallationFigures
    remembered: Remembered
    waits: Waits = field(default_factory=Waits)
    links_made: Rate = field(default_factory=lambda: Rate(LINKS_MAX, LINKS_SPAN_MS))
    exports: Places = field(default_factory=lambda: Places(EXPORTS_MAX))
    looks: RecentLooks = field(default_factory=RecentLooks)
    recent_pictures: KeptBytes[str] = field(
        default_factory=lambda: KeptBytes(RECENT_PICTURES_MAX_BYTES, RECENT_PICTURE_MAX_BYTES)
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One request by somebody who may make it."""

    web: Web
    request: HTTPConnection  # or a WebSocket
    caller: Principal | None  # None on public routes
    signed_in: SignedIn | None  # None on public routes and for the local admin token
    now_ms: int
    once: ScopedStore | None = None  # of a request with an Idempotency-Key: its first write carries the key

    @property
    def principal(self) -> Principal:
        if self.caller is None:
            raise Bug(f"the public route {self.request.url.path} asks who calls")
        return self.caller

    @property
    def store(self) -> ScopedStore:
        """The store in the caller's name."""
        if self.once is not None:
            return self.once
        return self.web.store.as_(self.principal)

    @property
    def address(self) -> str:
        return address_of(self.request)

    @property
    def language(self) -> Language:
        return language_of(self.request)


def address_of(request: HTTPConnection) -> str:
    """Who is at the other end; behind a trusted proxy (web.trusted_proxies), whom the proxy names."""
    return peer_host(request.client.host) if request.client else ""


class _OfRequest:
    """Marks the parameter that a handler's call is given as; see `with_call`."""


TheCall = Annotated[Call, _OfRequest()]


def with_call(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A handler for FastAPI, which gives out requests: its parameters of the type TheCall get the request's call.

    As a dependency the call would be solved anew for each request, which takes longer than looking up who calls.
    """
    signature = inspect.signature(handler)
    names = [name for name, one in signature.parameters.items() if one.annotation == TheCall]
    if not names:
        return handler
    parameters = [
        one.replace(annotation=Request) if name in names else one for name, one in signature.parameters.items()
    ]

    @functools.wraps(handler)
    async def handle(**values: Any) -> Any:
        for name in names:
            values[name] = values[name].state.call
        return await handler(**values)

    handle.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by FastAPI
    _WITH_CALL[handle] = handler
    return handle


# What `with_call` made, and of what.
_WITH_CALL: WeakKeyDictionary[Callable[..., Any], Callable[..., Awaitable[Any]]] = WeakKeyDictionary()


def without_request(handler: Callable[..., Any]) -> Callable[..., Any] | None:
    """The handler that takes its call where this one takes a request; None when this one wants no call."""
    return _WITH_CALL.get(handler)
