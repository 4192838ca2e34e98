"""An OpenID Connect provider: its description, its keys, and codes turned into ID tokens.

Its address comes from the settings; what its description names is held to https and to the rules of outgoing
requests. Description and keys are kept for an hour. An unknown key makes the keys be fetched again, though not more
often than every few seconds, so that made-up tokens can't make us a burden to it. Every failure is OidcRefused.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote_plus, urlsplit

from camserver.base.addresses import is_protected
from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.oidc_keys import PublicKey, checked_claims, find_key, key_id_of, keys_of
from camserver.clients.outgoing import Answered, OutgoingHttp, OutgoingPolicy
from camserver.domain.deliveries import DeliveryError
from camserver.domain.oidc import Claims, Failure, OidcRefused, refused

log = get_logger(__name__)

T = TypeVar("T")

WELL_KNOWN: Final = "/.well-known/openid-configuration"
KEEP_MS: Final = 3_600_000
# How soon something is asked for again: after a failure, and because of an unknown key.
PAUSE_MS: Final = 10_000
TIMEOUT_SEC: Final = 10.0
DOCUMENT_MAX_BYTES: Final = 262_144
URL_MAX_CHARS: Final = 2048


@dataclass(frozen=True, slots=True)
class Client:
    """What we are at the provider. Without a secret, a public client."""

    client_id: str
    secret: Secret | None


@dataclass(frozen=True, slots=True)
class Endpoints:
    authorization: str
    token: str
    keys: str
    secret_in_body: bool  # the provider takes it there and not in a header
    end_session: str | None  # where people sign out, if there is such a place


def endpoints_of(document: Any, issuer: str, allow_loopback: bool) -> Endpoints:
    """What the provider's description says; OidcRefused when it is another's or names places that are not safe."""
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise refused(Failure.AWAY, "the provider's description names another issuer; check [oidc] issuer")
    methods = document.get("token_endpoint_auth_methods_supported")
    in_body = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
    return Endpoints(
        authorization=_usable(document, "authorization_endpoint", allow_loopback),
        token=_usable(document, "token_endpoint", allow_loopback),
        keys=_usable(document, "jwks_uri", allow_loopback),
        secret_in_body=in_body,
        end_session=_end_session(document, allow_loopback),
    )


def _end_session(document: Mapping[str, Any], allow_loopback: bool) -> str | None:
    """Not every provider has one, and one that can't be used must keep nobody from signing in."""
    if "end_session_endpoint" not in document:
        return None
    try:
        return _usable(document, "end_session_endpoint", allow_loopback)
    except OidcRefused as error:
        log.warning("people can't be led to sign out at the provider", cause=error.message)
        return None


def _usable(document: Mapping[str, Any], name: str, allow_loopback: bool) -> str:
    url = document.get(name)
    if (
        not isinstance(url, str)
        or len(url) > URL_MAX_CHARS
        or not url.isascii()
        or not url.isprintable()
        or not is_protected(url, allow_loopback)
        or urlsplit(url).fragment
    ):
        raise refused(Failure.AWAY, f"the provider's description has no {name} that may be used")
    return url


class Kept(Generic[T]):
    """Something fetched once for all who want it, kept for a while. So is a failure: whoever waited meanwhile gets
    it, and does not begin to wait for one more."""

    def __init__(self, fetch: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value: T | None = None
        self._fetched_ms = 0
        self._failure: OidcRefused | None = None
        self._failed_ms = 0

    async def get(self) -> T:
        return await self._newer_than(KEEP_MS)

    async def again(self) -> T:
        """Fetched anew, unless that was done a moment ago."""
        return await self._newer_than(PAUSE_MS)

    @property
    def known(self) -> T | None:
        """What was fetched last, however long ago; nobody waits for it."""
        return self._value

    async def _newer_than(self, age_ms: int) -> T:
        async with self._lock:
            now_ms = self._clock.boot_ms()
            if self._value is not None and now_ms - self._fetched_ms < age_ms:
                return self._value
            if self._failure is not None and now_ms - self._failed_ms < PAUSE_MS:
                raise refused(self._failure.failure, self._failure.message)
            try:
                self._value = await self._fetch()
            except OidcRefused as error:
                # Counted from its end: one that took as long as the pause would be forgotten when it is known, and
                # each of those who waited for it would wait as long again, one after the other.
                self._failure, self._failed_ms = error, self._clock.boot_ms()
                raise
            self._fetched_ms, self._failure = now_ms, None
            return self._value


class OidcProvider:
    """Connections are kept open between requests; `close` lets them go."""

    def __init__(self, issuer: str, client: Client, clock: Clock, allow_loopback: bool) -> None:
        self.issuer = issuer
        self._client = client
        self._clock = clock
        self._allow_loopback = allow_loopback
        self._http = OutgoingHttp(OutgoingPolicy(allow_loopback=allow_loopback), TIMEOUT_SEC)
        self._endpoints = Kept(self._fetch_endpoints, clock)
        self._keys = Kept(self._fetch_keys, clock)

    async def close(self) -> None:
        await self._http.close()

    async def endpoints(self) -> Endpoints:
        return await self._endpoints.get()

    @property
    def known_endpoints(self) -> Endpoints | None:
        """Without asking the provider; None when it was never heard."""
        return self._endpoints.known

    async def claims_for(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> tuple[Claims, str]:
        """What the provider says about the person whose code this is, checked, and the ID token that said it."""
        id_token = await self._exchange(code, verifier, redirect_uri)
        key = await self._key_for(id_token)
        now_ms = self._clock.now_ms()
        return checked_claims(id_token, key, self.issuer, self._client.client_id, nonce, now_ms), id_token

    async def _key_for(self, id_token: str) -> PublicKey:
        key_id = key_id_of(id_token)
        key = find_key(await self._keys.get(), key_id) or find_key(await self._keys.again(), key_id)
        if key is None:
            raise refused(Failure.TOKEN, "the ID token is signed with a key that the provider does not announce")
        return key

    async def _exchange(self, code: str, verifier: str, redirect_uri: str) -> str:
        endpoints, client = await self.endpoints(), self._client
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Accept": "application/json"}
        if client.secret is None or endpoints.secret_in_body:
            form["client_id"] = client.client_id
        if client.secret is not None and endpoints.secret_in_body:
            form["client_secret"] = client.secret.reveal()
        elif client.secret is not None:
            # Each part is encoded as in a form first (RFC 6749, 2.3.1).
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret.reveal())}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        answer = await self._ask("POST", endpoints.token, headers=headers, data=form)
        if 400 <= answer.status < 500:
            raise refused(Failure.REFUSED, f"the provider refused the code: {answer.status} {answer.quoted!r}")
        document = self._json(answer, "token endpoint")
        id_token = document.get("id_token") if isinstance(document, dict) else None
        if not isinstance(id_token, str):
            raise refused(Failure.TOKEN, "the provider's answer holds no ID token")
        return id_token

    async def _fetch_endpoints(self) -> Endpoints:
        answer = await self._ask("GET", self.issuer.rstrip("/") + WELL_KNOWN)
        return endpoints_of(self._json(answer, "description"), self.issuer, self._allow_loopback)

    async def _fetch_keys(self) -> tuple[PublicKey, ...]:
        endpoints = await self.endpoints()
        return keys_of(self._json(await self._ask("GET", endpoints.keys), "keys"))

    async def _ask(self, method: str, url: str, **options: Any) -> Answered:
        try:
            return await self._http.request(method, url, answer_max_bytes=DOCUMENT_MAX_BYTES, **options)
        except DeliveryError as error:
            raise refused(Failure.AWAY, f"the provider can't be asked: {error.message}") from None

    def _json(self, answer: Answered, what: str) -> Any:
        if not answer.ok:
            raise refused(Failure.AWAY, answer.trouble(f"the provider's {what}").message)
        document = answer.json()
        if document is None:
            raise refused(Failure.AWAY, f"the provider's {what} is no JSON of at most {DOCUMENT_MAX_BYTES} bytes")
        return document
