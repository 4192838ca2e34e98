"""Makes .venv ready for `make run` and `make test`; the first program that a new user runs.

This file only finds a Python that is new enough and hands over to project_venv.py, which does the work. It
is written so that every Python since 3.6 can parse and run it: a user with an old Python must read what to
install, not a SyntaxError. So no `X | None`, no `list[str]`, no walrus here.
"""

import os
import subprocess
import sys
from typing import List, Optional, Tuple

NEEDED = (3, 11)
# Newest first is wrong here: the oldest supported release is the one that most wheels exist for.
CANDIDATES = ("python3.11", "python3.12", "python3.13", "python3.14")
EXIT_WRONG_PYTHON = 3
PROBE_TIMEOUT_SEC = 20


def version_of(interpreter: str) -> Optional[Tuple[int, int]]:
    """(major, minor) of an interpreter, or None when it is missing or does not start."""
    command = [interpreter, "-c", "import sys; print('%d %d' % sys.version_info[:2])"]
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=PROBE_TIMEOUT_SEC)
        major, minor = output.decode("ascii").split()
        return int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError):
        # A version manager's shim exists for releases that are not switched on; such a one is no candidate.
        return None


def newer_interpreter() -> Optional[str]:
    for name in CANDIDATES:
        version = version_of(name)
        if version is not None and version >= NEEDED:
            return name
    return None


def main(arguments: List[str]) -> int:
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info[:2] >= NEEDED:
        sys.path.insert(0, here)
        import project_venv

        return project_venv.main(arguments)
    interpreter = newer_interpreter()
    if interpreter is None:
        sys.stderr.write(
            "error: camserver needs Python 3.11 or newer; found %s at %s "
            "and no python3.11 to python3.14 on PATH.\n"
            "Install it by `apt install python3 python3-venv` (Debian 12, Ubuntu 24.04 and later), "
            "`dnf install python3.11` (RHEL family)\nor `brew install python@3.12` (macOS), "
            "then run the same command again. "
            "`make PYTHON=/path/to/python3 ...` chooses one by hand.\n"
            % (".".join(str(part) for part in sys.version_info[:3]), sys.executable)
        )
        return EXIT_WRONG_PYTHON
    os.execvp(interpreter, [interpreter, os.path.join(here, "setup.py")] + arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
