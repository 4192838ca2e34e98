"""The fake provider as an HTTP server on loopback.

It holds clients to what a real one does (redirect address, PKCE, secret, a code works once) and signs with RSA keys
of its own. `lie` makes it wrong in one way, `faults` make endpoints misbehave.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.rig.clock import ManualClock
from tests.rig.ports import LOOPBACK, listening_socket, port_of

CLIENT_ID = "camserver"
# With letters that must be encoded before they go into a header.
CLIENT_SECRET = "s:cret +%/é"


class Lie(StrEnum):
    ISSUER = "issuer"
    AUDIENCE = "audience"
    TWO_AUDIENCES = "two_audiences"
    PARTY = "party"
    NONCE = "nonce"
    NO_NONCE = "no_nonce"
    EXPIRED = "expired"
    NO_EXPIRY = "no_expiry"
    FUTURE = "future"
    UNSIGNED = "unsigned"
    PUBLIC_KEY_AS_SECRET = "public_key_as_secret"
    CLIENT_SECRET_AS_KEY = "client_secret_as_key"
    OTHER_KEY = "other_key"
    UNKNOWN_KEY = "unknown_key"
    NO_KEY_ID = "no_key_id"  # while there are two keys
    CHANGED = "changed"  # after it was signed
    NO_SUBJECT = "no_subject"
    BLANK_SUBJECT = "blank_subject"
    NO_TOKEN = "no_token"
    GARBAGE = "garbage"
    CRITICAL = "critical"  # a header that nobody knows, and that must be understood


class Fault(StrEnum):
    BROKEN = "broken"  # 500
    HUGE = "huge"
    REDIRECT = "redirect"
    NO_JSON = "no_json"
    CUT = "cut"
    HOLD = "hold"  # until `released`
    FOREIGN = "foreign"  # a description of another issuer
    UNSAFE = "unsafe"  # a description that names a place without TLS


@cache
def made_key(name: str) -> rsa.RSAPrivateKey:
    """Made once a process: it takes a while."""
    return rsa.generate_private_key(65537, 2048)


def b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def jwk(name: str, **more: str) -> dict[str, str]:
    numbers = made_key(name).public_key().public_numbers()
    return {
        "kty": "RSA",
        "kid": name,
        "use": "sig",
        "alg": "RS256",
        "n": b64(numbers.n.to_bytes(256, "big")),
        "e": b64(numbers.e.to_bytes(3, "big")),
        **more,
    }


def sign(claims: Mapping[str, Any], key_name: str, header: Mapping[str, Any] | None = None) -> str:
    header = {"alg": "RS256", "typ": "JWT", "kid": key_name, **(header or {})}
    header = {name: value for name, value in header.items() if value is not None}
    text = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    if header["alg"] == "none":
        return f"{text}."
    if header["alg"] == "HS256":
        secret = CLIENT_SECRET.encode() if header.get("by") == "client" else public_pem(made_key(key_name))
        return f"{text}.{b64(hmac.digest(secret, text.encode(), hashlib.sha256))}"
    signature = made_key(key_name).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{b64(signature)}"


@dataclass(slots=True)
class FakeProvider:
    """`async with FakeProvider(clock) as provider:`. `person` are the claims of whoever signs in next."""

    clock: ManualClock
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "248289761001", "preferred_username": "guard"})
    key: str = "first"
    announced: list[str] = field(default_factory=lambda: ["first"])
    lie: Lie | None = None
    faults: dict[str, Fault] = field(default_factory=dict)  # by the last part of the path
    with_secret: bool = True
    secret_in_body: bool = False
    more: dict[str, str] = field(default_factory=dict)  # in its description
    asked: list[str] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _runner: web.AppRunner | None = None
    _port: int = 0

    @property
    def issuer(self) -> str:
        return f"http://{LOOPBACK}:{self._port}/realms/main"

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a server that trusts it."""
        found = {"ISSUER": self.issuer, "CLIENT_ID": CLIENT_ID, "ALLOW_LOOPBACK": "true"}
        if self.with_secret:
            found["CLIENT_SECRET"] = CLIENT_SECRET
        return {f"CAMSERVER_OIDC_{name}": value for name, value in found.items()}

    async def __aenter__(self) -> "FakeProvider":
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        sock = listening_socket()
        self._port = port_of(sock)
        await web.SockSite(self._runner, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        self.released.set()
        await self._runner.cleanup()

    def answer_to(self, authorization_address: str) -> str:
        """What the browser is led to once the person has signed in; what the client asked for is checked."""
        address = urlsplit(authorization_address)
        asked = dict(parse_qsl(address.query, strict_parsing=True))
        assert f"{address.scheme}://{address.netloc}{address.path}" == f"{self.issuer}/authorize"
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        assert asked["redirect_uri"].endswith("/api/oidc/callback")
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return "/api/oidc/callback?" + urlencode({"code": code, "state": asked["state"], "iss": self.issuer})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        self.asked.append(name)
        fault = self.faults.get(name)
        if fault is Fault.HOLD:
            self.held.set()
            await self.released.wait()
        plain = {
            Fault.BROKEN: web.Response(status=500, text="<script>alert(1)</script>"),
            Fault.HUGE: web.Response(text=json.dumps({"filling": "x" * 1_000_000})),
            Fault.REDIRECT: web.Response(status=302, headers={"Location": f"{self.issuer}/elsewhere"}),
            Fault.NO_JSON: web.Response(text="<html>"),
        }
        if fault in plain:
            return plain[fault]
        if fault is Fault.CUT:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if name == "openid-configuration":
            return web.json_response(self._description(fault))
        if name == "keys":
            return web.json_response({"keys": [{"kty": "oct", "k": "AAAA"}, *(jwk(one) for one in self.announced)]})
        return self._token(request, dict(parse_qsl(await request.text())))

    def _description(self, fault: Fault | None) -> dict[str, Any]:
        base = self.issuer
        return {
            "issuer": "https://id.example" if fault is Fault.FOREIGN else base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": "http://id.example/token" if fault is Fault.UNSAFE else f"{base}/token",
            "jwks_uri": f"{base}/keys",
            **self.more,
            "token_endpoint_auth_methods_supported": [
                "client_secret_post" if self.secret_in_body else "client_secret_basic"
            ],
        }

    def _token(self, request: web.Request, form: dict[str, str]) -> web.Response:
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        fits = (
            asked is not None
            and form["redirect_uri"] == asked["redirect_uri"]
            and form["grant_type"] == "authorization_code"
            and hmac.compare_digest(challenge, asked["code_challenge"])
        )
        if not fits or asked is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if not self._knows(request, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        token = self._id_token(asked["nonce"])
        answer = {"access_token": "opaque", "token_type": "Bearer", "id_token": token}
        if self.lie is Lie.NO_TOKEN:
            del answer["id_token"]
        return web.json_response(answer)

    def _knows(self, request: web.Request, form: dict[str, str]) -> bool:
        given = request.headers.get("Authorization", "")
        if not self.with_secret:
            return not given and form.get("client_id") == CLIENT_ID
        if self.secret_in_body:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
        encoded = (
            urlencode({"": CLIENT_ID}).removeprefix("=") + ":" + urlencode({"": CLIENT_SECRET}).removeprefix("=")
        )
        return given == f"Basic {base64.b64encode(encoded.encode()).decode()}"

    def _id_token(self, nonce: str) -> str:
        now = self.clock.now_ms() // 1000
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            **self.person,
        }
        changes: dict[Lie, dict[str, Any]] = {
            Lie.ISSUER: {"iss": "https://id.example"},
            Lie.AUDIENCE: {"aud": "another"},
            Lie.TWO_AUDIENCES: {"aud": [CLIENT_ID, "another"]},
            Lie.PARTY: {"azp": "another"},
            Lie.NONCE: {"nonce": "another"},
            Lie.EXPIRED: {"exp": now - 61, "iat": now - 400},
            Lie.FUTURE: {"iat": now + 120},
            Lie.NO_SUBJECT: {"sub": None},
            Lie.BLANK_SUBJECT: {"sub": " "},
        }
        headers: dict[Lie, dict[str, Any]] = {
            Lie.UNSIGNED: {"alg": "none"},
            Lie.PUBLIC_KEY_AS_SECRET: {"alg": "HS256"},
            Lie.CLIENT_SECRET_AS_KEY: {"alg": "HS256", "by": "client"},
            Lie.UNKNOWN_KEY: {"kid": "unheard of"},
            Lie.NO_KEY_ID: {"kid": None},
            Lie.CRITICAL: {"crit": ["x-made-up"], "x-made-up": True},
        }
        if self.lie is not None:
            claims |= changes.get(self.lie, {})
        for missing, name in ((Lie.NO_NONCE, "nonce"), (Lie.NO_EXPIRY, "exp")):
            if self.lie is missing:
                del claims[name]
        if self.lie is Lie.GARBAGE:
            return "a.b.c"
        if self.lie is Lie.OTHER_KEY:
            return sign(claims, "another", {"kid": self.key})
        token = sign(claims, self.key, headers.get(self.lie) if self.lie else None)
        if self.lie is Lie.CHANGED:
            head, _, signature = token.split(".")
            return f"{head}.{b64(json.dumps({**claims, 'sub': 'admin'}).encode())}.{signature}"
        return token
