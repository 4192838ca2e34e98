"""The secrets camserver makes for itself on first start, one file each in `server.secrets_dir`.

A file belongs to its owner alone: one that others may read is refused, because making it private again
would hide that its content may be known. Where a secret is also a setting, the setting wins and no file is
made.
"""

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from camserver.base.credentials import KeyRing
from camserver.base.errors import BadSettings, DataUnusable
from camserver.base.secrets import Secret
from camserver.config.credential_keys import CREDENTIAL_KEY, credential_ring
from camserver.config.private_files import KEY_BYTES, key_bytes, read_or_make
from camserver.config.sections import Settings

if TYPE_CHECKING:
    from camserver.base.certificates import Authority

MEDIA_HMAC: Final = "media_hmac"
LOCAL_ADMIN_TOKEN: Final = "local_admin_token"
WORKER_TOKEN: Final = "worker_token"
SESSION_KEY: Final = "session_key"
PUSH_KEY: Final = "push_key"
CASE_KEY: Final = "case_key"
AUDIT_KEY: Final = "audit_key"
# Made when the TLS port for workers is switched on, and not before.
WORKER_CA: Final = "worker_ca"
SECRET_FILES: Final = (
    MEDIA_HMAC,
    CREDENTIAL_KEY,
    LOCAL_ADMIN_TOKEN,
    WORKER_TOKEN,
    SESSION_KEY,
    PUSH_KEY,
    CASE_KEY,
    AUDIT_KEY,
)


@dataclass(frozen=True, slots=True)
class Secrets:
    media_hmac: Secret  # signs media links
    media_hmac_previous: Secret | None  # still accepted while the key above replaces it
    credential_keys: KeyRing = field(compare=False)  # encrypt stored passwords
    local_admin_token: Secret  # lets commands on this machine use the running server
    worker_token: Secret  # lets workers in
    session_key: Secret  # signs session cookies and CSRF tokens
    push_key: Secret  # by which push services know this server (VAPID); see push_key_bytes
    case_key: Secret  # signs what is exported of cases; see case_key_bytes
    audit_key: Secret  # signs the seals of the audit log; see audit_key_bytes

    def credential_key_bytes(self) -> bytes:
        return self.credential_keys.sealing

    def case_key_bytes(self) -> bytes:
        return key_bytes(self.case_key)

    def audit_key_bytes(self) -> bytes:
        return key_bytes(self.audit_key)

    def push_key_bytes(self) -> bytes:
        return key_bytes(self.push_key)


def make_secrets(settings: Settings) -> Secrets:
    """Every secret a server needs; the missing ones are made, complete and with mode 0600."""
    folder = settings.server.secrets_dir
    push_key = read_or_make(folder / PUSH_KEY)
    if len(key_bytes(push_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / PUSH_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, "
            "or delete it: then everybody must switch notifications in their browsers off and on again"
        )
    case_key = read_or_make(folder / CASE_KEY)
    if len(key_bytes(case_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / CASE_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, "
            "because without it exports of cases can't be told from forged ones"
        )
    audit_key = read_or_make(folder / AUDIT_KEY)
    if len(key_bytes(audit_key)) != KEY_BYTES:
        raise DataUnusable(
            f"{folder / AUDIT_KEY} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, "
            "because without it the seals of the audit log can't be told from forged ones"
        )
    return Secrets(
        media_hmac=settings.media.hmac_secret or read_or_make(folder / MEDIA_HMAC),
        media_hmac_previous=settings.media.hmac_secret_previous,
        credential_keys=credential_ring(settings.server),
        local_admin_token=read_or_make(folder / LOCAL_ADMIN_TOKEN),
        worker_token=settings.control.worker_token or read_or_make(folder / WORKER_TOKEN),
        session_key=read_or_make(folder / SESSION_KEY),
        push_key=push_key,
        case_key=case_key,
        audit_key=audit_key,
    )


def case_key_bytes(settings: Settings) -> bytes | None:
    """The key that signs exports of cases, for a command; None where no server has made one."""
    path = settings.server.secrets_dir / CASE_KEY
    if not path.exists():
        return None
    key = key_bytes(read_or_make(path))
    return key if len(key) == KEY_BYTES else None


def audit_key_bytes(settings: Settings) -> bytes | None:
    """The key that signs the seals of the audit log, for a command; None where no server has made one."""
    path = settings.server.secrets_dir / AUDIT_KEY
    if not path.exists():
        return None
    key = key_bytes(read_or_make(path))
    return key if len(key) == KEY_BYTES else None


def worker_ca(settings: Settings) -> "Authority":
    """The CA that workers at other sites and their server trust; made on first use unless a file of it is set."""
    # Only here: most processes never see a certificate, and do without 11 MB of cryptography.
    from camserver.base.certificates import load_authority, make_authority

    given = settings.control.ca_file
    if given is None:
        path = settings.server.secrets_dir / WORKER_CA
        return load_authority(read_or_make(path, make_authority).reveal(), str(path))
    if not given.exists():
        raise BadSettings(f"control.ca_file {given} does not exist; put key and certificate of the CA there")
    return load_authority(read_or_make(given).reveal(), str(given))


def media_keys(settings: Settings) -> tuple[Secret, Secret | None]:
    """What signs media links, and live streams; and what did before, while it is replaced."""
    key = settings.media.hmac_secret or read_or_make(settings.server.secrets_dir / MEDIA_HMAC)
    return key, settings.media.hmac_secret_previous


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
    return read_or_make(path)


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
