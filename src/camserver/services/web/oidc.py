"""Signing in with a provider, as the browser sees it: away to the provider, and back with a code.

A sign-in that is under way lives in the browser alone, as a short-lived signed cookie: its state, where to go
afterwards, and until when. Nonce and PKCE verifier follow from the state by the server's key, so that the cookie
tells nobody what the provider must be shown. Nothing is kept here, so any of several web processes can take the
answer.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.oidc import Client, OidcProvider
from camserver.config import Settings
from camserver.domain.oidc import FLOW_TTL_MS, Claimed, Failure, OidcRefused, claimed, refused, safe_target

log = get_logger(__name__)

CALLBACK = "/api/oidc/callback"
SIGNED_OUT = "/sign-in"
CODE_MAX_CHARS = 4096
# The ID token, by which the provider knows whom to sign out without asking. Browsers keep cookies of 4 kB; with a
# longer token the cookie only says that somebody came in by the provider.
HINT_MAX_CHARS = 3_000
NO_HINT = "-"


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that is under way."""

    state: str
    target: str
    expires_at: int


# Sign-ins that one browser may have under way, in as many tabs. A cookie holds 4,096 bytes at most.
FLOWS_MAX = 4
COOKIE_MAX_CHARS = 3_500
_BETWEEN = "~"


class Flows:
    """Makes and reads the cookie of a browser's sign-ins under way, the newest first."""

    def __init__(self, key: Secret) -> None:
        self._key = key.reveal().encode()

    def begin(self, target: str, now_ms: int) -> Flow:
        return Flow(secrets.token_urlsafe(32), safe_target(target), now_ms + FLOW_TTL_MS)

    def with_one(self, cookie: str, flow: Flow, now_ms: int) -> str:
        """The cookie with one more; the oldest goes where there are too many."""
        return self._cookie([flow, *self._all(cookie, now_ms)])

    def without(self, cookie: str, flow: Flow, now_ms: int) -> str:
        return self._cookie([one for one in self._all(cookie, now_ms) if one.state != flow.state])

    def find(self, cookie: str, state: str, now_ms: int) -> Flow | None:
        """None when it is not one of this browser's, or too old."""
        return next((one for one in self._all(cookie, now_ms) if one.state == state), None)

    def _all(self, cookie: str, now_ms: int) -> list[Flow]:
        found = [self._read(one, now_ms) for one in cookie.split(_BETWEEN)[:FLOWS_MAX]]
        return [one for one in found if one is not None]

    def _cookie(self, flows: Sequence[Flow]) -> str:
        written = ""
        for flow in flows[:FLOWS_MAX]:
            longer = f"{written}{_BETWEEN}{self._written(flow)}" if written else self._written(flow)
            if len(longer) > COOKIE_MAX_CHARS:
                break
            written = longer
        return written

    def _written(self, flow: Flow) -> str:
        text = f"{flow.state}.{flow.expires_at}.{_b64(flow.target.encode())}"
        return f"{text}.{self._derived('cookie', text)}"

    def _read(self, written: str, now_ms: int) -> Flow | None:
        text, _, signature = written.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._derived("cookie", text).encode()):
            return None
        state, expires_at, target = text.split(".")
        flow = Flow(state, safe_target(base64.urlsafe_b64decode(target + "==").decode()), int(expires_at))
        return flow if now_ms < flow.expires_at else None

    def nonce(self, flow: Flow) -> str:
        return self._derived("nonce", flow.state)

    def verifier(self, flow: Flow) -> str:
        return self._derived("verifier", flow.state)

    def _derived(self, use: str, text: str) -> str:
        return _b64(hmac.digest(self._key, f"oidc {use}|{text}".encode(), hashlib.sha256))


class OidcSignIn:
    """The configured provider. Connections are kept open between requests; `close` lets them go."""

    def __init__(self, settings: Settings, session_key: Secret, public_url: str, clock: Clock) -> None:
        self.settings = settings.oidc
        self.flows = Flows(session_key)
        self.redirect_uri = public_url + CALLBACK
        self.signed_out_uri = public_url + SIGNED_OUT
        client = Client(self.settings.client_id, self.settings.client_secret)
        self._provider = OidcProvider(self.settings.issuer or "", client, clock, self.settings.allow_loopback)

    async def close(self) -> None:
        await self._provider.close()

    async def prepare(self) -> None:
        """Asks the provider for its description ahead of whoever needs it first. One that is away is asked again by
        the next sign-in."""
        try:
            await self._provider.endpoints()
        except OidcRefused as error:
            log.warning("the provider for signing in does not answer", cause=error.message)

    async def address_for(self, flow: Flow) -> str:
        """Where the browser goes to sign in."""
        endpoints = await self._provider.endpoints()
        return _with_query(endpoints.authorization, self._asked(flow))

    def _asked(self, flow: Flow) -> dict[str, str]:
        challenge = hashlib.sha256(self.flows.verifier(flow).encode()).digest()
        return {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            "state": flow.state,
            "nonce": self.flows.nonce(flow),
            "code_challenge": _b64(challenge),
            "code_challenge_method": "S256",
        }

    async def who_came_back(self, flow: Flow, code: str, issuer: str | None) -> tuple[Claimed, str]:
        """Who the provider says it is, and the hint by which it knows them again when they sign out."""
        # Providers that say who they are in the answer say it so that answers of another one are noticed (RFC 9207).
        if issuer is not None and issuer != self._provider.issuer:
            raise refused(Failure.FLOW, "the answer names another issuer")
        if not code or len(code) > CODE_MAX_CHARS:
            raise refused(Failure.REFUSED, "the provider's answer holds no code")
        claims, id_token = await self._provider.claims_for(
            code, self.flows.verifier(flow), self.redirect_uri, self.flows.nonce(flow)
        )
        who = claimed(claims, self._provider.issuer, self.settings.login_claim, self.settings.groups_claim)
        return who, id_token if len(id_token) <= HINT_MAX_CHARS else NO_HINT

    def sign_out_address(self, hint: str) -> str | None:
        """Where somebody who came in with that hint signs out at the provider; None where nobody is led there.

        Signing out here does not wait for the provider: what is known of it counts, however old that is.
        """
        if not self.settings.sign_out_there or not hint or len(hint) > HINT_MAX_CHARS:
            return None
        known = self._provider.known_endpoints
        if known is None:
            log.warning("somebody is not led to sign out at the provider, which was not heard since the start")
            return None
        if known.end_session is None:
            return None
        asked = {"client_id": self.settings.client_id, "post_logout_redirect_uri": self.signed_out_uri}
        return _with_query(known.end_session, asked if hint == NO_HINT else {"id_token_hint": hint, **asked})


def _with_query(address: str, asked: dict[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"


def _b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
