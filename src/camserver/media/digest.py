"""Answers to a camera's challenge: digest with SHA-256 or MD5, and basic (RFC 7616, 7617, 2069).

For RTSP and HTTP alike. Of several challenges the strongest is answered; MD5 is what most cameras speak. What is
returned holds proof of the password, or with basic the password itself, and goes nowhere but into the request.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from camserver.base.secrets import Secret

_CHALLENGE = re.compile(r"(?:^|,\s*)(Digest|Basic)\s+", re.IGNORECASE)
_FIELD = re.compile(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')
CHALLENGE_MAX_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Login:
    """What a camera asks for."""

    user: str
    password: Secret


def login_refused(status: int, login: Login | None) -> str:
    """What a 401 or 403 means, for whoever reads it."""
    if status == 401 and login is None:
        return "the camera needs a user and password"
    return "the camera refused user or password"


@dataclass(slots=True)
class Challenge:
    """One that can be answered, for as many requests as its nonce is good for."""

    scheme: str  # digest or basic
    fields: dict[str, str]
    strength: int
    uses: int = field(default=0)

    @property
    def is_stale(self) -> bool:
        """Whether only the nonce is too old: the password was right."""
        return self.fields.get("stale", "").lower() == "true"

    def is_new(self, before: "Challenge") -> bool:
        """Whether it has another nonce, as cameras do whose nonces are good for a short time or once."""
        return self.fields.get("nonce") != before.fields.get("nonce")

    def authorization(self, login: Login, method: str, uri: str) -> str:
        """The value of the Authorization header of one request."""
        if self.scheme == "basic":
            return "Basic " + base64.b64encode(f"{login.user}:{login.password.reveal()}".encode()).decode()
        return self._digest(login, method, uri, secrets.token_hex(8))

    def _digest(self, login: Login, method: str, uri: str, cnonce: str) -> str:
        given = self.fields
        algorithm = given.get("algorithm", "MD5")
        hashed = _HASHES[algorithm.upper().removesuffix("-SESS")]
        realm, nonce = given.get("realm", ""), given.get("nonce", "")
        secret = hashed(f"{login.user}:{realm}:{login.password.reveal()}")
        if algorithm.upper().endswith("-SESS"):
            secret = hashed(f"{secret}:{nonce}:{cnonce}")
        asked = hashed(f"{method}:{uri}")
        parts = {"username": login.user, "realm": realm, "nonce": nonce, "uri": uri}
        plain: dict[str, str] = {}
        if "algorithm" in given:
            plain["algorithm"] = algorithm
        if "auth" in re.split(r"[\s,]+", given.get("qop", "")):
            self.uses += 1
            count = f"{self.uses:08x}"
            parts["cnonce"] = cnonce
            plain |= {"qop": "auth", "nc": count}
            parts["response"] = hashed(f"{secret}:{nonce}:{count}:{cnonce}:auth:{asked}")
        else:
            if algorithm.upper().endswith("-SESS"):
                parts["cnonce"] = cnonce
            parts["response"] = hashed(f"{secret}:{nonce}:{asked}")
        if "opaque" in given:
            parts["opaque"] = given["opaque"]
        quoted = [f'{name}="{_escaped(value)}"' for name, value in parts.items()]
        return "Digest " + ", ".join([*quoted, *(f"{name}={value}" for name, value in plain.items())])


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """Those of all WWW-Authenticate headers that can be answered."""
    return [one for header in headers for one in _parse(header)]


def strongest(headers: Iterable[str]) -> Challenge | None:
    """The best of them."""
    return max(challenges(headers), key=lambda one: one.strength, default=None)


def _parse(header: str) -> Iterable[Challenge]:
    header = header[:CHALLENGE_MAX_CHARS]
    begins = list(_CHALLENGE.finditer(header))
    for number, begin in enumerate(begins):
        end = begins[number + 1].start() if number + 1 < len(begins) else len(header)
        fields = {
            match[1].lower(): re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
            for match in _FIELD.finditer(header, begin.end(), end)
        }
        if begin[1].lower() == "basic":
            yield Challenge("basic", fields, 0)
            continue
        algorithm = fields.get("algorithm", "MD5").upper().removesuffix("-SESS")
        qop = fields.get("qop", "auth")
        if algorithm in _HASHES and "nonce" in fields and "auth" in re.split(r"[\s,]+", qop or "auth"):
            yield Challenge("digest", fields, _STRENGTH[algorithm])


def _escaped(text: str) -> str:
    """For a quoted string; a header has one line whatever a user's name holds."""
    return re.sub(r"[\r\n]", " ", text).replace("\\", "\\\\").replace('"', '\\"')


def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


SHA256_STRENGTH = 2
_HASHES = {"MD5": _hash("md5"), "SHA-256": _hash("sha256")}
_STRENGTH = {"MD5": 1, "SHA-256": SHA256_STRENGTH}
