"""The secrets camserver makes for itself on first start, one file each in `server.secrets_dir`.

A file belongs to its owner alone: one that others may read is refused, because making it private again
would hide that its content may be known. Where a secret is also a setting, the setting wins and no file is
made.
"""

import base64
import binascii
import ipaddress
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from camserver.base.certificates import Authority, load_authority, make_authority
from camserver.base.errors import BadSettings, DataUnusable
from camserver.base.secrets import Secret, load_or_make
from camserver.config.sections import Settings

MEDIA_HMAC: Final = "media_hmac"
CREDENTIAL_KEY: Final = "credential_key"
LOCAL_ADMIN_TOKEN: Final = "local_admin_token"
WORKER_TOKEN: Final = "worker_token"
SESSION_KEY: Final = "session_key"
PUSH_KEY: Final = "push_key"
CASE_KEY: Final = "case_key"
# Made when the TLS port for workers is switched on, and not before.
WORKER_CA: Final = "worker_ca"
SECRET_FILES: Final = (MEDIA_HMAC, CREDENTIAL_KEY, LOCAL_ADMIN_TOKEN, WORKER_TOKEN, SESSION_KEY, PUSH_KEY, CASE_KEY)

KEY_BYTES: Final = 32  # AES-256


@dataclass(frozen=True, slots=True)
class Secrets:
    media_hmac: Secret  # signs media links
    media_hmac_previous: Secret | None  # still accepted while the key above replaces it
    credential_key: Secret  # encrypts camera credentials; see credential_key_bytes
    local_admin_token: Secret  # lets commands on this machine use the running server
    worker_token: Secret  # lets workers in
    session_key: Secret  # signs session cookies and CSRF tokens
    push_key: Secret  # by which push services know this server (VAPID); see push_key_bytes
    case_key: Secret  # signs what is exported of cases; see case_key_bytes

    def credential_key_bytes(self) -> bytes:
        return _key_bytes(self.credential_key)

    def case_key_bytes(self) -> bytes:
        return _key_bytes(self.case_key)

    def push_key_bytes(self) -> bytes:
        return _key_bytes(self.push_key)


def make_secrets(settings: Settings) -> Secrets:
    """Every secret a server needs; the missing ones are made, complete and with mode 0600."""
    folder = settings.server.secrets_dir
    credential_key = _read_or_make(folder / CREDENTIAL_KEY)
    if len(_key_bytes(credential_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / CREDENTIAL_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it "
            "from a backup, because without it the stored camera passwords can't be read"
        )
    push_key = _read_or_make(folder / PUSH_KEY)
    if len(_key_bytes(push_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / PUSH_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, "
            "or delete it: then everybody must switch notifications in their browsers off and on again"
        )
    case_key = _read_or_make(folder / CASE_KEY)
    if len(_key_bytes(case_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / CASE_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, "
            "because without it exports of cases can't be told from forged ones"
        )
    return Secrets(
        media_hmac=settings.media.hmac_secret or _read_or_make(folder / MEDIA_HMAC),
        media_hmac_previous=settings.media.hmac_secret_previous,
        credential_key=credential_key,
        local_admin_token=_read_or_make(folder / LOCAL_ADMIN_TOKEN),
        worker_token=settings.control.worker_token or _read_or_make(folder / WORKER_TOKEN),
        session_key=_read_or_make(folder / SESSION_KEY),
        push_key=push_key,
        case_key=case_key,
    )


def case_key_bytes(settings: Settings) -> bytes | None:
    """The key that signs exports of cases, for a command; None where no server has made one."""
    path = settings.server.secrets_dir / CASE_KEY
    if not path.exists():
        return None
    key = _key_bytes(_read_or_make(path))
    return key if len(key) == KEY_BYTES else None


def worker_ca(settings: Settings) -> Authority:
    """The CA that workers at other sites and their server trust; made on first use unless a file of it is set."""
    given = settings.control.ca_file
    if given is None:
        path = settings.server.secrets_dir / WORKER_CA
        return load_authority(_read_or_make(path, make_authority).reveal(), str(path))
    if not given.exists():
        raise BadSettings(f"control.ca_file {given} does not exist; put key and certificate of the CA there")
    return load_authority(_read_or_make(given).reveal(), str(given))


def worker_token(settings: Settings) -> Secret:
    """What a worker signs in with. Made only beside its server: elsewhere a new one would never match."""
    if settings.control.worker_token:
        return settings.control.worker_token
    path = settings.server.secrets_dir / WORKER_TOKEN
    if not path.exists() and not _is_this_machine(settings.worker.server_url):
        raise BadSettings(
            f"no token to sign in at {settings.worker.server_url}: copy the file {WORKER_TOKEN} from the "
            f"server's secrets folder to {path} with mode 0600, or set control.worker_token"
        )
    return _read_or_make(path)


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_or_make(path: Path, make: Callable[[], str] | None = None) -> Secret:
    try:
        _refuse_if_open(path)
        secret = load_or_make(path, KEY_BYTES, make)
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not text"
        raise DataUnusable(
            f"the secret file {path} can't be read or made: {cause}; check server.secrets_dir and its permissions"
        ) from None
    if not secret:
        raise DataUnusable(f"the secret file {path} is empty; delete it to have a new one made, or restore it")
    return secret


def _refuse_if_open(path: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return
    if mode & 0o077:
        raise DataUnusable(
            f"the secret file {path} can be read or changed by other users (mode {mode:04o}); "
            f"run: chmod 600 {path} (and replace the secret if somebody may have seen it)"
        )


def _key_bytes(key: Secret) -> bytes:
    text = key.reveal()
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""
