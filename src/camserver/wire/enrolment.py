"""How a worker at another site gets its certificate and renews it (docs/protocol.md): `/v1/ca`, `/v1/enroll`,
`/v1/renew` on the TLS port.

A token holds the fingerprint of the server's CA beside its secret: the worker knows whom to trust before it says
anything, and sends the secret only to a server that proved itself.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import Field

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.wire.message import EpochMs, Message, WorkerId

CA_PATH: Final = "/v1/ca"
ENROLL_PATH: Final = "/v1/enroll"
RENEW_PATH: Final = "/v1/renew"
BODY_MAX_BYTES: Final = 8_192
ANSWER_MAX_BYTES: Final = 32_768
# The code of an error, for those who can't read an answer's body: a socket that is not opened has none.
ERROR_HEADER: Final = "X-Camserver-Error"
EXPIRED_CODE: Final = "certificate_expired"
REVOKED_CODE: Final = "certificate_revoked"

_TOKEN = re.compile(r"cwt1\.(?P<secret>[A-Za-z0-9_-]{43})\.(?P<ca_sha256>[0-9a-f]{64})")

Csr = Annotated[str, Field(max_length=4096)]
Pem = Annotated[str, Field(max_length=8192)]


class Enroll(Message):
    # No Secret: each is remembered for ever to be kept out of logs, and strangers may send any number of them.
    secret: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$", repr=False)]
    worker_id: WorkerId
    csr: Csr


class Renew(Message):
    """Who asks is proven by the certificate that is renewed."""

    csr: Csr


class Certified(Message):
    """The answer to both."""

    certificate: Pem
    worker_id: WorkerId
    site: Annotated[str, Field(max_length=128)]  # its name, for people
    server_time: EpochMs


@dataclass(frozen=True, slots=True)
class Token:
    """What people carry from the server to a worker. Shown once; the server keeps a hash of its secret."""

    secret: Secret
    ca_sha256: str

    @classmethod
    def make(cls, ca_sha256: str) -> Self:
        return cls(Secret(secrets.token_urlsafe(32)), ca_sha256)

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _TOKEN.fullmatch(text.strip())
        if found is None:
            raise BadInput("this is no token of `camserver worker token`; copy it whole")
        return cls(Secret(found["secret"]), found["ca_sha256"])

    def text(self) -> str:
        return f"cwt1.{self.secret.reveal()}.{self.ca_sha256}"


def secret_hash(secret: str) -> str:
    """What is stored of a token. It holds 32 random bytes, so a plain hash can't be guessed back."""
    return hashlib.sha256(b"camserver worker token\0" + secret.encode()).hexdigest()
