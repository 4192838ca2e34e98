"""Getting a worker's certificates: the first one for a token, the next ones for the one before.

The token holds the fingerprint of the server's CA. The CA's certificate is fetched from a server that nobody vouches
for yet, believed only when it has that fingerprint, and from then on it alone says who the server is: the token's
secret goes to nobody else. Keys are made here and never leave the machine.
"""

import asyncio
import re
import ssl
from urllib.parse import urlsplit

import aiohttp
from pydantic import ValidationError

from camserver.base import tls
from camserver.base.certificates import belongs_to, fingerprint, key_pem, new_key, request_for
from camserver.base.errors import BadInput, CamError, Forbidden, Reject, Unavailable
from camserver.services.worker.identity_file import Enrolled, put_together
from camserver.wire.enrolment import (
    ANSWER_MAX_BYTES,
    CA_PATH,
    ENROLL_PATH,
    RENEW_PATH,
    Certified,
    Enroll,
    Renew,
    Token,
)
from camserver.wire.looks import ErrorBody
from camserver.wire.message import Message

TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


async def enroll(server_url: str, token: Token, worker_id: str) -> tuple[Enrolled, str]:
    """A new worker's identity and the name of its site. Whatever is raised, nothing was kept."""
    base = _checked(server_url)
    if not WORKER_ID.fullmatch(worker_id):
        raise BadInput(
            f"a worker can't be called {worker_id[:64]!r}: 1 to 64 letters, digits, dots, dashes or underscores, "
            "beginning with a letter or digit; choose another with --name"
        )
    async with aiohttp.ClientSession(timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()) as http:
        ca_pem = await _ca(http, base, token.ca_sha256)
        key = await asyncio.to_thread(new_key)
        asked = Enroll(secret=token.secret.reveal(), worker_id=worker_id, csr=request_for(key))
        certified = await _post(http, base + ENROLL_PATH, asked, tls.client_context(ca_pem))
    enrolled = _kept(certified, key_pem(key), ca_pem)
    if not belongs_to(certified.certificate, key) or enrolled.name.worker_id != worker_id:
        raise Unavailable("the server answered with a certificate that is not for this worker")
    return enrolled, certified.site


async def renew(http: aiohttp.ClientSession, server_url: str, now: Enrolled) -> Enrolled:
    """The next identity of the same worker, with a new key. `http` shows the certificate of now."""
    key = await asyncio.to_thread(new_key)
    certified = await _post(http, server_url.rstrip("/") + RENEW_PATH, Renew(csr=request_for(key)), None)
    enrolled = _kept(certified, key_pem(key), now.ca_pem)
    if not belongs_to(certified.certificate, key) or enrolled.name != now.name:
        raise Unavailable("the server answered with a certificate that is not for this worker")
    return enrolled


def _checked(server_url: str) -> str:
    try:
        parts = urlsplit(server_url)
        fits = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise BadInput("the server's address must begin with https://, such as https://cams.example.com:8443")
    return server_url.rstrip("/")


async def _ca(http: aiohttp.ClientSession, base: str, ca_sha256: str) -> str:
    try:
        async with http.get(base + CA_PATH, ssl=tls.unverified_context(), allow_redirects=False) as response:
            text = (await _bounded(response)).decode("ascii", "replace")
            status = response.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreached(base, error) from None
    try:
        is_right = status == 200 and fingerprint(text) == ca_sha256
    except BadInput:
        is_right = False
    if not is_right:
        raise Forbidden(
            f"what answers at {base} is not the server that made this token: its CA has another fingerprint; check "
            "the address, and that nothing but a TCP passthrough stands between"
        )
    return text


async def _post(http: aiohttp.ClientSession, url: str, asked: Message, context: ssl.SSLContext | None) -> Certified:
    # True: as the session was made.
    trusting = True if context is None else context
    body = asked.model_dump_json().encode()
    headers = {"Content-Type": "application/json"}
    try:
        async with http.post(
            url, data=body, headers=headers, timeout=TIMEOUT, allow_redirects=False, ssl=trusting
        ) as response:
            text = await _bounded(response)
            status = response.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreached(url, error) from None
    if status != 200:
        raise _refusal(status, text)
    try:
        return Certified.model_validate_json(text)
    except ValidationError:
        raise Unavailable(f"{url} answered something that is no certificate") from None


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    text = bytearray()
    async for piece in response.content.iter_chunked(ANSWER_MAX_BYTES):
        text += piece
        if len(text) > ANSWER_MAX_BYTES:
            raise Unavailable("the answer is far too long")
    return bytes(text)


def _unreached(url: str, error: Exception) -> CamError:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        host = urlsplit(url).hostname
        return Reject(
            f"the server's certificate does not name {host}; add it to [control] tls_names on the server and restart "
            "it, or use a name that it has"
        )
    return Unavailable(f"{url} can't be reached ({type(error).__name__}); check address, port and firewall")


def _refusal(status: int, text: bytes) -> CamError:
    try:
        body = ErrorBody.model_validate_json(text)
    except ValidationError:
        return Unavailable(f"the server answered {status}")
    if status in (400, 401, 403, 404, 409, 413):
        return Forbidden(f"the server refused: {body.message}", error_code=body.error_code)
    return Unavailable(f"the server answered {status} {body.error_code}: {body.message}")


def _kept(certified: Certified, key: str, ca_pem: str) -> Enrolled:
    try:
        return put_together(key, certified.certificate, ca_pem)
    except BadInput as error:
        raise Unavailable(f"the server answered with an unusable certificate: {error.message}") from None
