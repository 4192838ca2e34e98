"""Addresses of RTSP cameras: which may be opened, and the one place where a password is put into one.

Which hosts are allowed is `addresses`. No message made here holds any part of a login.
"""

from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from camserver.base.errors import BadInput
from camserver.media.addresses import AddressPolicy, Place
from camserver.media.digest import Login as Login
from camserver.media.packets import Miss

SCHEMES = ("rtsp", "rtsps")
DEFAULT_PORT = {"rtsp": 554, "rtsps": 322}


class RtspAddress:
    """A checked address. BadInput when it is none."""

    def __init__(self, url: str, login: Login | None, policy: AddressPolicy) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise BadInput("the camera's address is malformed") from None
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise BadInput("the camera's address is not of the form rtsp://host:554/path")
        if "@" in parts.netloc:
            raise BadInput("the camera's address holds a login; give user and password apart from it")
        self._parts: SplitResult = parts
        self._login = login
        self._policy = policy
        self.host: str = parts.hostname
        self.port: int = port or DEFAULT_PORT[parts.scheme]

    def __str__(self) -> str:
        """As it may be shown: some cameras take passwords and tokens in path or query."""
        return f"{self._parts.scheme}://{self.host}:{self.port}/…"

    @property
    def is_tls(self) -> bool:
        return self._parts.scheme == "rtsps"

    @property
    def login(self) -> Login | None:
        return self._login

    @property
    def plain_url(self) -> str:
        """As it stands in RTSP requests: without a login, with the host as it was given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        url = urlunsplit(self._parts._replace(netloc=f"{host}:{self.port}", fragment=""))
        # A space would end the address; what is written as %20 already stays.
        return quote(url, safe="%/:?[]@!$&'()*+,;=~")

    def find(self) -> Place | Miss:
        """Where to connect to. Blocks on the name service."""
        return self._policy.resolve(self.host, self.port)

    def for_ffmpeg(self, place: Place, scheme: str | None = None) -> str:
        """The address with the login in it: only for the call that opens it."""
        login = ""
        if self._login is not None:
            login = f"{quote(self._login.user, safe='')}:{quote(self._login.password.reveal(), safe='')}@"
        scheme = scheme or self._parts.scheme
        return urlunsplit(self._parts._replace(scheme=scheme, netloc=f"{login}{place.netloc}", fragment=""))
