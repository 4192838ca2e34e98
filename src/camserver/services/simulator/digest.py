"""Digest authentication as cameras do it: MD5, with and without `qop` (RFC 2617, 7616).

MD5 is what cameras and their clients speak; nothing of value is guarded here.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass

from camserver.base.secrets import Secret

REALM = "camserver simulator"
_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: Secret


class Digest:
    """The authentication of one connection."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._nonce = secrets.token_hex(16)

    def challenge(self) -> str:
        return f'Digest realm="{REALM}", nonce="{self._nonce}", algorithm=MD5, qop="auth"'

    def accepts(self, authorization: str | None, method: str, url: str) -> bool:
        """Whether the header proves that its sender knows the password."""
        scheme, _, rest = (authorization or "").partition(" ")
        given = {match[1].lower(): match[2] or match[3] or "" for match in _FIELD.finditer(rest)}
        if scheme.lower() != "digest" or given.get("nonce") != self._nonce or given.get("realm") != REALM:
            return False
        # Some clients name the camera's address in every request, also for its tracks.
        if given.get("username") != self._login.user or not url.startswith(given.get("uri", "?")):
            return False
        expected = respond(self._login, method, given)
        return secrets.compare_digest(given.get("response", "").encode(), expected.encode())


def respond(login: Login, method: str, given: dict[str, str]) -> str:
    """The response to a challenge; `given` are the fields of the header that carries it."""
    first = _md5(f"{login.user}:{given.get('realm', '')}:{login.password.reveal()}")
    second = _md5(f"{method}:{given.get('uri', '')}")
    middle = [given.get("nonce", "")]
    if "qop" in given:
        middle += [given.get("nc", ""), given.get("cnonce", ""), given["qop"]]
    return _md5(":".join([first, *middle, second]))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
