"""The one-time link that makes the first admin: made, shown on a terminal or left in a private file, removed.

The token is in the link's fragment, which browsers never send to a server or a log by themselves. Only a hash of it
is stored.
"""

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import TextIO

from camserver.base.errors import DataUnusable
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.domain.people import Principal
from camserver.services.web.access import token_hash
from camserver.store import Store, setup_links

log = get_logger(__name__)

FILE_NAME = "setup-link.txt"


async def make_link(
    store: Store, public_url: str, now_ms: int, *, alone: bool = False, by: Principal | None = None, address: str = ""
) -> Secret | None:
    """A new link, good for an hour and for one use; None when there is an admin already.

    `alone`: those before it stop working. `by`: who asked for it; None when a server starts.
    """
    token = Secret(secrets.token_urlsafe(32))
    hashed = token_hash(token.reveal())
    if not await store.write(setup_links.add, hashed, now_ms, alone=alone, by=by, address=address):
        return None
    return Secret(f"{public_url}/setup#token={token.reveal()}")


async def offer(store: Store, public_url: str, data_dir: Path, now_ms: int) -> None:
    """At the start of a server: hands out a link while nobody could sign in, and clears away old ones otherwise."""
    link = await make_link(store, public_url, now_ms)
    if link is None:
        remove_file(data_dir)
        return
    terminal = _terminal()
    if terminal is not None:
        terminal.write(f"\nNobody can sign in yet. Make the admin account within one hour:\n  {link.reveal()}\n\n")
        terminal.flush()
        return
    path = write_file(data_dir, link)
    log.warning("nobody can sign in yet: open the set-up link in this file within one hour", file=str(path))


def _terminal() -> TextIO | None:
    return next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)


def write_file(data_dir: Path, link: Secret) -> Path:
    """Leaves the link in a file that only its owner reads, replacing an older one as a whole."""
    path = data_dir / FILE_NAME
    draft = path.with_name(f".{FILE_NAME}.{secrets.token_hex(4)}")
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(link.reveal() + "\n")
        draft.replace(path)
    except OSError as error:
        raise DataUnusable(
            f"the set-up link can't be written to {path}: {error.strerror}; check the folder, then run "
            "camserver setup-link"
        ) from error
    return path


def remove_file(data_dir: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        (data_dir / FILE_NAME).unlink()
