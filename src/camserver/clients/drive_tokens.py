"""Signs in to Google as a service account: a signed claim is exchanged for a token that lives an hour.

Where tokens are asked for is a setting: the address inside of a key file is ignored, since people upload such files.
"""

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.clients.outgoing import OutgoingHttp
from camserver.domain.deliveries import DeliveryError, Hidden, Receiver, Trouble, trouble_of_status

# A folder that people shared was not made by us, so the narrower scope of own files does not reach it.
SCOPE: Final = "https://www.googleapis.com/auth/drive"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLAIM_LIFE_SEC: Final = 3600
# A token is not used up to its last second: the request with it takes its time.
MARGIN_SEC: Final = 120


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    email: str
    key_id: str
    private_key: Secret


def parse_account(text: str) -> ServiceAccount:
    """A service account from its key file. BadInput says what is wrong with it, and shows nothing of it."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("the key file of the service account is not JSON; download it again") from None
    if not isinstance(told, dict) or told.get("type") != "service_account":
        raise BadInput("this is no key file of a service account; make one with the type JSON")
    fields = {name: told.get(name) for name in ("client_email", "private_key_id", "private_key")}
    for name, value in fields.items():
        if not isinstance(value, str) or not value:
            raise BadInput(f"the key file of the service account lacks {name}; download it again")
    account = ServiceAccount(str(told["client_email"]), str(told["private_key_id"]), Secret(told["private_key"]))
    _load_key(account)
    return account


def signed_claim(account: ServiceAccount, token_url: str, subject: str | None, now_ms: int) -> str:
    """What a token is asked for with (RFC 7523). `subject` is whom the account acts for, if anybody."""
    issued_at = now_ms // 1000
    claims: dict[str, Any] = {
        "iss": account.email,
        "scope": SCOPE,
        "aud": token_url,
        "iat": issued_at,
        "exp": issued_at + CLAIM_LIFE_SEC,
    }
    if subject:
        claims["sub"] = subject
    header = {"alg": "RS256", "typ": "JWT", "kid": account.key_id}
    text = f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(claims).encode())}"
    proof = _load_key(account).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{_encoded(proof)}"


@dataclass(frozen=True, slots=True)
class _Held:
    made_from: str
    # No Secret, though it is one: those are remembered for ever, and this is another one every hour.
    token: str = field(repr=False)
    until_ms: int


class Tokens:
    """One token for each receiver, asked for when it is needed."""

    def __init__(self, http: OutgoingHttp, clock: Clock, token_url: str) -> None:
        self._http = http
        self._clock = clock
        self._url = token_url
        self._held: dict[int, _Held] = {}
        self._asking: dict[int, asyncio.Lock] = {}

    async def get(self, receiver: Receiver, refused: str | None = None) -> str:
        """A token. `refused` is one that Google did not take: another one is asked for then."""
        credentials = receiver.secrets.get("credentials")
        if credentials is None:
            raise DeliveryError(Trouble.REFUSED, f"{receiver.name} has no key of a service account; upload it")
        subject = str(receiver.config.get("act_as") or "")
        made_from = hashlib.sha256(f"{subject}|{credentials.reveal()}".encode()).hexdigest()
        async with self._asking.setdefault(receiver.receiver_id, asyncio.Lock()):
            held = self._held.get(receiver.receiver_id)
            is_good = held is not None and held.made_from == made_from and held.token != refused
            if held is None or not is_good or held.until_ms <= self._clock.now_ms():
                held = await self._ask(receiver, credentials, subject, made_from)
                self._held[receiver.receiver_id] = held
            return held.token

    async def _ask(self, receiver: Receiver, credentials: Hidden, subject: str, made_from: str) -> _Held:
        try:
            account = parse_account(credentials.reveal())
        except BadInput as error:
            raise DeliveryError(Trouble.REFUSED, f"{receiver.name}: {error.message}") from None
        now_ms = self._clock.now_ms()
        claim = await asyncio.to_thread(signed_claim, account, self._url, subject or None, now_ms)
        answer = await self._http.request("POST", self._url, data={"grant_type": GRANT, "assertion": claim})
        told = answer.json()
        told = told if isinstance(told, dict) else {}
        if not answer.ok:
            raise _refusal(receiver, account, answer.status, str(told.get("error", "")), answer.retry_after_sec)
        token, life_sec = told.get("access_token"), told.get("expires_in")
        if not isinstance(token, str) or not token or not isinstance(life_sec, int):
            raise DeliveryError(Trouble.FAILED, f"{receiver.name}: Google's answer to signing in holds no token")
        return _Held(made_from, token, now_ms + max(life_sec - MARGIN_SEC, 0) * 1000)


def _refusal(
    receiver: Receiver, account: ServiceAccount, status: int, code: str, retry_after_sec: float | None
) -> DeliveryError:
    if code in ("invalid_grant", "invalid_client", "unauthorized_client"):
        return DeliveryError(
            Trouble.FAILED,
            f"{receiver.name}: Google does not let {account.email} sign in ({code}); check that its key was not "
            "deleted, that this machine's clock is right and, with act_as, that it may act for others",
        )
    kind = Trouble.RETRY if status >= 500 else trouble_of_status(status)
    return DeliveryError(kind, f"{receiver.name}: signing in to Google failed with {status}", retry_after_sec)


def _load_key(account: ServiceAccount) -> rsa.RSAPrivateKey:
    try:
        key = serialization.load_pem_private_key(account.private_key.reveal().encode(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise BadInput("the private key in the service account's key file can't be read; download the file again")
    return key


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
