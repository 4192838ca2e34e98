"""What libraries write to the error stream past Python: notes that say nothing to whoever runs a command."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STDERR: Final = 2
# LiteRT says so each time a model is loaded, and can't be told not to.
NOTES: Final = (b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.",)


@contextmanager
def without_notes() -> Iterator[None]:
    """Whatever else is written meanwhile comes afterwards, in order. Only for a command, whose one thread this is."""
    sys.stderr.flush()
    kept = os.dup(STDERR)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), STDERR)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, STDERR)
            os.close(kept)
            held.seek(0)
            for line in held:
                if line.strip() not in NOTES:
                    os.write(STDERR, line)
