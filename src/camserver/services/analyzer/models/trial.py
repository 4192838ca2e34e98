"""Shows a bundle's model its first picture in a process of its own: a model that takes its process with it shall not
take the analyzer.

    python -m camserver.services.analyzer.models.trial BUNDLE BYTES_MAX
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from camserver.base.errors import CamError, ModelUnusable
from camserver.services.analyzer.models.bundle import read_bundle
from camserver.services.analyzer.models.loading import load_bundle

TIMEOUT_SEC = 300.0
_REFUSED = 3
_SAID_CHARS_MAX = 1000


async def try_out(path: Path, bytes_max: int) -> None:
    """ModelUnusable when the model does not load, fails, takes for ever or crashes."""
    command = [sys.executable, "-m", __name__, str(path), str(bytes_max)]
    child = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=PIPE)
    try:
        async with asyncio.timeout(TIMEOUT_SEC):
            _, stderr = await child.communicate()
    except TimeoutError:
        raise ModelUnusable(f"the model took more than {TIMEOUT_SEC:g} s for its first picture") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode == 0:
        return
    said = stderr.decode("utf-8", "replace").strip()[-_SAID_CHARS_MAX:]
    if child.returncode == _REFUSED:
        raise ModelUnusable(said)
    raise ModelUnusable(f"the model ended its process with {child.returncode} when shown a picture {said}".rstrip())


def main(path: str, bytes_max: str) -> int:
    try:
        load_bundle(read_bundle(Path(path), int(bytes_max)), 1)
    except CamError as error:
        sys.stderr.write(error.message)
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
