"""The key and certificate of an enrolled worker: one PEM file, replaced as a whole, readable by its owner alone.

It holds the key, the certificate and the server's CA. Who the worker is stands in the certificate.
"""

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from camserver.base import folders
from camserver.base.certificates import read_pem
from camserver.base.errors import BadInput, DataUnusable
from camserver.domain.certificates import Validity, WorkerName, name_in

FILE_NAME = "worker.pem"
FILE_MAX_BYTES = 65_536
_BEGIN = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Enrolled:
    name: WorkerName
    validity: Validity
    chain_pem: str  # key, certificate and CA, as TLS wants them

    def __repr__(self) -> str:
        return f"Enrolled({self.name.uri})"  # the chain holds the key

    @property
    def ca_pem(self) -> str:
        return _BEGIN + self.chain_pem.split(_BEGIN)[2]


def put_together(key_pem: str, certificate_pem: str, ca_pem: str) -> Enrolled:
    """What a worker keeps. BadInput when the certificate names no worker."""
    return _parsed("".join(part.strip() + "\n" for part in (key_pem, certificate_pem, ca_pem)))


def path_in(folder: Path) -> Path:
    return folder / FILE_NAME


def read(folder: Path) -> Enrolled | None:
    """None where no worker was enrolled."""
    path = path_in(folder)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open() as file:
            text = file.read(FILE_MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataUnusable(f"{path} can't be read ({type(error).__name__}); check its permissions") from None
    if mode & 0o077:
        raise DataUnusable(
            f"{path} can be read or changed by other users (mode {mode:04o}); run: chmod 600 {path} (and revoke and "
            "enroll the worker again if somebody may have seen it)"
        )
    try:
        return _parsed(text)
    except BadInput as error:
        raise DataUnusable(
            f"{path} is no identity of a worker: {error.message}; delete it and enroll this worker again"
        ) from None


def write(folder: Path, enrolled: Enrolled) -> None:
    """Replaces what is there, completely or not at all."""
    path = path_in(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f".{FILE_NAME}.{os.getpid()}.{secrets.token_hex(4)}"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(enrolled.chain_pem)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            folders.sync(folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
    except OSError as error:
        raise DataUnusable(
            f"{path} can't be written: {error.strerror}; check the folder and its permissions"
        ) from None


def _parsed(text: str) -> Enrolled:
    if text.count(_BEGIN) != 2 or "PRIVATE KEY-----" not in text:
        raise BadInput("it must hold a key, a certificate and the CA")
    seen = read_pem(text)
    name = name_in(seen.uri)
    if name is None:
        raise BadInput("its certificate names no worker")
    return Enrolled(name, Validity(seen.not_before_ms, seen.not_after_ms), text)
