"""Files that hold one secret each: read, made when missing, and refused when others may have read them."""

import base64
import binascii
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from camserver.base.errors import DataUnusable
from camserver.base.secrets import Secret, load_or_make

KEY_BYTES: Final = 32  # AES-256


def read_or_make(path: Path, make: Callable[[], str] | None = None) -> Secret:
    """The secret of a file; without `make`, a missing one is random."""
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


def key_bytes(key: Secret) -> bytes:
    """The bytes that a text in base64url stands for; none when it is no such text."""
    text = key.reveal()
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""
