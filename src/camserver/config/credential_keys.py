"""The key that encrypts stored passwords: from a setting, from a program, or a file; and how it is replaced.

A file may be replaced while services run: they notice. The key before stays beside it, so that at every moment each
stored value can be opened, whenever a replacement is interrupted. Values themselves are moved by whoever calls.
"""

import fcntl
import os
import secrets
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from camserver.base import folders
from camserver.base.credentials import KeyRing
from camserver.base.errors import BadSettings, Conflict, DataUnusable
from camserver.base.secrets import Secret
from camserver.config.private_files import KEY_BYTES, key_bytes, read_or_make
from camserver.config.sections import ServerSettings

CREDENTIAL_KEY: Final = "credential_key"
CREDENTIAL_KEY_PREVIOUS: Final = "credential_key_previous"
COMMAND_TIMEOUT_SEC: Final = 10.0
COMMAND_OUTPUT_MAX_BYTES: Final = 4096


def credential_ring(server: ServerSettings) -> KeyRing:
    """The key that seals and the one before. A missing file is made; a key of another size is refused."""
    previous = () if server.credential_key_previous is None else (server.credential_key_previous,)
    if server.credential_key is not None:
        return _fixed(server.credential_key, "server.credential_key", previous)
    if server.credential_key_command:
        said = _asked(server.credential_key_command)
        return _fixed(said, "what server.credential_key_command printed", previous)
    return KeyRing(lambda: _from_files(server), lambda: _marks(server.secrets_dir))


def replace_key(server: ServerSettings) -> None:
    """Makes a new key file; the one before stays as credential_key_previous. Nothing may need the one before that."""
    if server.credential_key is not None or server.credential_key_command:
        raise Conflict(
            "the key comes from the settings: set the new one there and the old one as "
            "server.credential_key_previous, restart the server, and run this again",
            reason="key_not_ours",
        )
    folder = server.secrets_dir
    path = folder / CREDENTIAL_KEY
    read_or_make(path)
    suffix = f"{os.getpid()}.{secrets.token_hex(4)}"
    fresh, kept = folder / f".{CREDENTIAL_KEY}.{suffix}", folder / f".{CREDENTIAL_KEY_PREVIOUS}.{suffix}"
    try:
        with (folder / ".credential_key.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            read_or_make(fresh)
            os.link(path, kept)
            kept.replace(folder / CREDENTIAL_KEY_PREVIOUS)
            folders.sync(folder)
            fresh.replace(path)
            folders.sync(folder)
    except OSError as error:
        raise DataUnusable(
            f"the key in {folder} can't be replaced: {error.strerror}; check its permissions"
        ) from None
    finally:
        for draft in (fresh, kept):
            draft.unlink(missing_ok=True)


def _fixed(key: Secret, what: str, previous: tuple[Secret, ...]) -> KeyRing:
    keys = (_checked(key, what), *(_checked(one, "server.credential_key_previous") for one in previous))
    return KeyRing(lambda: keys)


def _checked(key: Secret, what: str) -> bytes:
    found = key_bytes(key)
    if len(found) != KEY_BYTES:
        raise BadSettings(f"{what} is no key of {KEY_BYTES} bytes in base64url")
    return found


def _from_files(server: ServerSettings) -> tuple[bytes, ...]:
    folder = server.secrets_dir
    keys = [_file_key(folder / CREDENTIAL_KEY)]
    if server.credential_key_previous is not None:
        keys.append(_checked(server.credential_key_previous, "server.credential_key_previous"))
    elif (folder / CREDENTIAL_KEY_PREVIOUS).exists():
        keys.append(_file_key(folder / CREDENTIAL_KEY_PREVIOUS))
    return tuple(keys)


def _file_key(path: Path) -> bytes:
    found = key_bytes(read_or_make(path))
    if len(found) != KEY_BYTES:
        raise DataUnusable(
            f"{path} does not hold a key of {KEY_BYTES} bytes in base64url; restore it from a backup, because "
            "without it the stored camera passwords can't be read"
        )
    return found


def _marks(folder: Path) -> tuple[tuple[int, int] | None, ...]:
    return tuple(_mark(folder / name) for name in (CREDENTIAL_KEY, CREDENTIAL_KEY_PREVIOUS))


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _asked(argv: Sequence[str]) -> Secret:
    """What a program prints: at most one short line, within a bounded time. Its complaints are not shown: they might
    hold what it was asked for."""
    problem = f"server.credential_key_command ({argv[0]})"
    try:
        running = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=True
        )
    except OSError as error:
        raise BadSettings(f"{problem} can't be started: {error.strerror}") from None
    assert running.stdout is not None
    timer = threading.Timer(COMMAND_TIMEOUT_SEC, running.kill)
    timer.start()
    try:
        with running.stdout:
            text = running.stdout.read(COMMAND_OUTPUT_MAX_BYTES + 1)
        if len(text) > COMMAND_OUTPUT_MAX_BYTES:
            running.kill()
        code = running.wait()
    finally:
        timer.cancel()
    if code != 0 or len(text) > COMMAND_OUTPUT_MAX_BYTES:
        raise BadSettings(
            f"{problem} ended with {code}, took longer than {COMMAND_TIMEOUT_SEC:g} s or printed too much; it must "
            "print the key and end with 0"
        )
    return Secret(text.decode("ascii", "replace").strip())
