"""Addresses of cameras: what is allowed, and credentials taken out of them.

No message made here holds any part of an address: a mistyped one may show its password in an unexpected place.
"""

import json
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from camserver.base.addresses import is_never_reached
from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.devices import is_webcam
from camserver.wire.api import SourceAsked

# Type → its schemes.
SCHEMES = {
    "rtsp": ("rtsp", "rtsps"),
    "http": ("http", "https"),
    "webcam": ("webcam",),
    "file": ("file",),
    "test": ("test",),
}
# They make a worker open what is on its own machine, or invent pictures; not for those who only manage a site.
LOCAL_TYPES = frozenset({"webcam", "file", "test"})
_TYPE_OF = {scheme: kind for kind, schemes in SCHEMES.items() for scheme in schemes}
_ENCODE_HINT = "write / ? # @ and : in a user name or password as %2F %3F %23 %40 %3A, or give them apart"


@dataclass(frozen=True, slots=True)
class Login:
    """What a camera asks for."""

    user: str
    password: Secret

    def plaintext(self) -> bytes:
        """As it is sealed: JSON {"user", "password"}."""
        return json.dumps({"user": self.user, "password": self.password.reveal()}).encode()


@dataclass(frozen=True, slots=True)
class Source:
    type: str
    url: str
    login: Login | None


def parse_source(asked: SourceAsked) -> Source:
    """A checked source whose address holds no credentials."""
    parts = _split(asked.url)
    kind = _TYPE_OF.get(parts.scheme)
    if kind is None:
        schemes = ", ".join(_TYPE_OF)
        raise BadInput(
            f"the camera's address must begin with one of {schemes}; change it", reason="url_scheme", schemes=schemes
        )
    if asked.type is not None and asked.type != kind:
        raise BadInput(
            f"source.type {asked.type} does not go with an address of {parts.scheme}; change one of them",
            reason="url_type",
        )
    _check_place(parts, kind)
    inside = _login_inside(parts)
    apart = None if not (asked.user or asked.password) else Login(asked.user or "", Secret(asked.password or ""))
    if inside is not None and apart is not None:
        raise BadInput(
            "user and password are in the address and apart from it; give them once", reason="url_two_credentials"
        )
    return Source(kind, urlunsplit(parts._replace(netloc=_host_of(parts))), inside or apart)


def one_login(main: Source, sub: Source | None) -> Login | None:
    """The login of a camera's two streams, which is one."""
    if sub is None or sub.login is None:
        return main.login
    if main.login is not None and main.login.plaintext() != sub.login.plaintext():
        raise BadInput(
            "the two streams of a camera have one login; give the same for both, or only once",
            reason="sub_other_login",
        )
    return sub.login


def shown_url(kind: str, url: str) -> str:
    """An address as it may be shown: some cameras take passwords and tokens in the query."""
    if kind in LOCAL_TYPES:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="…" if parts.query else ""))


def _split(url: str) -> SplitResult:
    if any(character <= " " or character == "\x7f" for character in url):
        raise BadInput("the camera's address holds blanks or control characters; remove them", reason="url_form")
    try:
        parts = urlsplit(url)
        _ = parts.port  # read for its check
    except ValueError:
        raise _malformed() from None
    return parts


def _check_place(parts: SplitResult, kind: str) -> None:
    if kind == "file":
        if parts.netloc or not parts.path.startswith("/") or ".." in parts.path.split("/"):
            raise BadInput(
                "the address of a file must look like file:///folder/picture.jpg; change it", reason="url_form"
            )
        return
    if kind == "webcam":
        if parts.netloc or not is_webcam(parts.path):
            raise BadInput(
                "the address of a webcam must look like webcam:///dev/video0 or webcam:///dev/v4l/by-id/…; change it",
                reason="url_form",
            )
        return
    if not parts.hostname:
        raise _malformed()
    if is_never_reached(parts.hostname):
        raise BadInput(
            "no camera can be at that address: it is link-local, where clouds keep secrets, or no single host; give "
            "the camera an address of its network",
            reason="url_never",
        )
    # An @ behind the host means that a password with / ? or # in it was cut in two.
    if parts.fragment or "@" in parts.path or "@" in parts.query:
        raise _malformed()


def _malformed() -> BadInput:
    return BadInput(
        f"the camera's address is malformed; it must look like rtsp://host:554/path. If it holds a password: "
        f"{_ENCODE_HINT}",
        reason="url_form",
    )


def _host_of(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _login_inside(parts: SplitResult) -> Login | None:
    inside, at, _ = parts.netloc.rpartition("@")
    if not at:
        return None
    user, _, password = inside.partition(":")
    return Login(unquote(user), Secret(unquote(password)))
