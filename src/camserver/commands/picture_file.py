"""Pictures that a command writes to a file."""

import os
import tempfile
from pathlib import Path

from camserver.base.errors import BadInput


def keep(jpeg: bytes, wanted: Path | None, prefix: str) -> str:
    """Writes it where it is wanted, or to a new temporary file, readable by this user only; where it is then."""
    # What a camera sees is nobody else's business on this machine.
    if wanted is None:
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".jpg")
        wanted = Path(name)
    else:
        try:
            descriptor = os.open(wanted, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise BadInput(
                f"the picture can't be written to {wanted}: {error.strerror}; choose another file"
            ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(jpeg)
    return str(wanted)
