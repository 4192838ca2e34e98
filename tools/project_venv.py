"""Builds the project's .venv: the standard library's venv, the hashed lock, and a link to src.

Nothing is done when nothing changed: a stamp inside .venv names the lock, the interpreter and the folder it
was made for. The stamp is removed before the first change and written after the last one, so a set-up that
was killed leaves none, and the next run makes .venv anew. Index settings are pip's own business (its
configuration files and PIP_* variables); nothing here sets or overrides them.

The project itself is linked by a .pth file and a start script instead of an editable install: that needs no
build backend, so everything that is downloaded is in the lock with its hash.

Exit codes are in CONTRIBUTING.md ("Exit codes of the set-up").
"""

import argparse
import contextlib
import enum
import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# Raised when this file changes what it puts into .venv, so that older ones are made anew.
LAYOUT = 1
# The development .venv takes about 400 MB; pip needs room beside it while it unpacks.
FREE_BYTES_MIN = 1_000_000_000
LOG_TAIL_LINES = 15


class Exit(enum.IntEnum):
    """What the set-up ends with; 3 (wrong Python) is setup.py's."""

    OK = 0
    NO_VENV_MODULE = 20
    NO_SPACE = 21
    NOT_WRITABLE = 22
    NETWORK = 23
    HASH_MISMATCH = 24
    NOT_INSTALLABLE = 25
    INTERRUPTED = 130


class SetupError(Exception):
    """Ends the set-up with a message that names the thing, the cause and the next step."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


class Project:
    """The places a set-up touches, all below one checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.stamp = self.venv / "camserver-setup.json"
        self.notes = root / ".setup"
        self.log = self.notes / "install.log"

    def lock(self, dev: bool) -> Path:
        return self.root / ("requirements-dev.lock" if dev else "requirements.lock")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wanted_stamp(project: Project, dev: bool) -> dict[str, object]:
    """What an up-to-date .venv's stamp says. A moved checkout differs in `root`: scripts hold full paths."""
    return {
        "layout": LAYOUT,
        "root": str(project.root),
        "lock": _digest(project.lock(dev=False)),
        "dev_lock": _digest(project.lock(dev=True)) if dev else None,
    }


def read_stamp(project: Project) -> dict[str, object] | None:
    """The stamp of a complete .venv whose interpreter is still the one it was made with; else None."""
    try:
        stamp = json.loads(project.stamp.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(stamp, dict) or not project.python.exists():
        return None
    # A distribution upgrade may move `python3` to another release, whose packages live in another folder.
    if stamp.pop("interpreter", None) != os.path.realpath(project.python):
        return None
    return stamp


def up_to_date(stamp: dict[str, object] | None, wanted: dict[str, object]) -> bool:
    """The development packages include the runtime ones, so a dev .venv also serves `make run`."""
    if stamp is None:
        return False
    if wanted["dev_lock"] is None:
        stamp = {**stamp, "dev_lock": None}
    return stamp == wanted


def can_add_to(stamp: dict[str, object] | None, wanted: dict[str, object]) -> bool:
    """True when only the development packages are missing from a complete runtime .venv."""
    runtime_only = stamp is not None and stamp.get("dev_lock") is None
    return runtime_only and up_to_date(stamp, {**wanted, "dev_lock": None})


# --- checks before anything is changed ---


def check_venv_module() -> None:
    try:
        import ensurepip
        import venv

        del ensurepip, venv
    except ImportError as error:
        raise SetupError(
            Exit.NO_VENV_MODULE,
            f"{sys.executable} can't make virtual environments: {error}.\n"
            "Install the missing part by `apt install python3-venv` (Debian, Ubuntu; for a Python that is "
            "not the system's own: python3.X-venv), then run the same command again.",
        ) from error


def check_writable(project: Project) -> None:
    """Makes the notes folder and writes into it and into .venv: the only honest test, also for root."""
    try:
        project.notes.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=project.notes):
            pass
        project.venv.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=project.venv):
            pass
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(project.root, 0) from error
        raise SetupError(
            Exit.NOT_WRITABLE,
            f"the folder {project.root} can't be written: {error}.\n"
            "Check who owns it (`ls -ld`) and whether it is mounted read-only (`findmnt -T .`), remove what "
            "stands in the way, or clone camserver into a folder of your own.",
        ) from error


def check_space(root: Path) -> None:
    free_bytes = shutil.disk_usage(root).free
    if free_bytes < FREE_BYTES_MIN:
        raise _no_space(root, free_bytes)


def _no_space(place: Path, free_bytes: int) -> SetupError:
    return SetupError(
        Exit.NO_SPACE,
        f"not enough disk space at {place}: {free_bytes // 1_000_000} MB free, "
        f"{FREE_BYTES_MIN // 1_000_000} MB needed for .venv.\n"
        "Free some space there (`pip cache purge` helps, if the cache is on the same disk), or clone "
        "camserver onto another disk, then run the same command again.",
    )


# --- the work ---


@contextlib.contextmanager
def only_one(project: Project) -> Iterator[int]:
    """Holds the set-up's lock. Children inherit it: a repair waits for the pip of a killed set-up."""
    with open(project.notes / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up runs in this folder; waiting for it to end ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def say(text: str) -> None:
    print(text, flush=True)


def make_venv(project: Project, lock_fd: int) -> None:
    # Not sys.executable: in an activated .venv that is the interpreter which is about to be removed.
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-I", "-m", "venv", "--clear", str(project.venv)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=[lock_fd], check=False
    )
    if done.returncode != 0:
        raise install_error(project, done.stdout.splitlines(), "making .venv")


def install_lock(project: Project, lock: Path, lock_fd: int) -> None:
    """Installs exactly what the lock lists. Wheels only: a build from source would fetch unhashed tools.

    The lock is complete, so pip resolves nothing: where a package asks for another one with an extra, pip would
    consider versions that the lock does not have, and gives up once a newer one is published.
    """
    command = [str(project.python), "-I", "-m", "pip", "install", "--require-hashes", "--no-deps"]
    command += [
        "--only-binary",
        ":all:",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "-r",
        str(lock),
    ]
    total = sum(1 for line in lock.read_text().splitlines() if re.match(r"[A-Za-z0-9]", line))
    with open(project.log, "w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=[lock_fd]
        )
        assert process.stdout is not None
        lines = _follow(process.stdout, log, total)
        code = process.wait()
    if code != 0:
        raise install_error(project, lines, f"installing {lock.name}")


def _follow(output: IO[str], log: IO[str], total: int) -> list[str]:
    """Copies pip's output to the log, counting packages on a terminal; returns the lines for a diagnosis."""
    lines: list[str] = []
    seen = 0
    on_terminal = sys.stdout.isatty()
    for line in output:
        log.write(line)
        log.flush()
        lines.append(line.rstrip())
        if line.startswith("Collecting ") and on_terminal:
            seen += 1
            print(f"\r\033[K      {seen} of {total}: {line.split()[1]}", end="", flush=True)
    if seen:
        print("\r\033[K", end="", flush=True)
    return lines


# Order matters: without a network pip ends with "No matching distribution" too, after the true cause.
_CAUSES = (
    (Exit.NO_SPACE, r"No space left on device|Disk quota exceeded"),
    (Exit.HASH_MISMATCH, r"DO NOT MATCH THE HASHES|Hashes are required in --require-hashes mode"),
    (
        Exit.NETWORK,
        r"connection broken by|NewConnectionError|ConnectionError|ConnectTimeout|Read timed out"
        r"|ReadTimeoutError|name resolution|ProxyError|SSLError|HTTP error [45]\d\d|IncompleteRead"
        r"|ProtocolError",
    ),
)
_NEXT_STEPS = {
    Exit.NO_SPACE: "The disk filled up meanwhile (.venv, or the folder for temporary files). Free some space "
    "and run the same command again.",
    Exit.HASH_MISMATCH: "A downloaded package is not the one that the lock names, so nothing of it was used. "
    "Run `pip cache purge` and try again; if it happens again, do not use that package index and report it.",
    Exit.NETWORK: "The package index was not reachable. Check the network, the proxy variables and "
    "`pip config list`, then run the same command again; what was downloaded is kept in pip's cache.",
    Exit.NOT_INSTALLABLE: "The package index has no such package for this Python and machine (or does not "
    "answer for it), or it can't be installed here. Check `pip config list`, or try another Python: "
    "`make PYTHON=python3.12 ...`.",
}


def install_error(project: Project, lines: list[str], doing: str) -> SetupError:
    text = "\n".join(lines)
    code = next((code for code, pattern in _CAUSES if re.search(pattern, text)), Exit.NOT_INSTALLABLE)
    tail = "\n".join(f"  | {line}" for line in lines[-LOG_TAIL_LINES:] if line.strip())
    return SetupError(code, f"{doing} failed:\n{tail}\n{_NEXT_STEPS[code]}\nThe whole output: {project.log}")


def link_project(project: Project) -> None:
    """Puts src on the import path of .venv and makes .venv/bin/camserver."""
    packages = next((project.venv / "lib").glob("python3.*/site-packages"))
    (packages / "camserver-src.pth").write_text(f"{project.root / 'src'}\n")
    script = project.venv / "bin" / "camserver"
    # The first lines are read by sh and by Python; unlike a #! line they allow any path, spaces too.
    script.write_text(
        "#!/bin/sh\n"
        f"'''exec' {shlex.quote(str(project.python))} \"$0\" \"$@\"\n"
        "' '''\n"
        "import sys\n\nfrom camserver.cli import main\n\n"
        'if __name__ == "__main__":\n    sys.exit(main())\n'
    )
    script.chmod(0o755)


def write_stamp(project: Project, wanted: dict[str, object]) -> None:
    """The last act of a set-up. Everything else is on disk first: a power cut leaves no false stamp."""
    os.sync()
    beside = project.stamp.with_suffix(".new")
    stamp = {**wanted, "interpreter": os.path.realpath(project.python)}
    beside.write_text(json.dumps(stamp, indent=1) + "\n")
    beside.replace(project.stamp)


def set_up(project: Project, dev: bool) -> None:
    wanted = wanted_stamp(project, dev)
    if up_to_date(read_stamp(project), wanted):
        return
    check_venv_module()
    check_writable(project)
    with only_one(project) as lock_fd:
        stamp = read_stamp(project)
        if up_to_date(stamp, wanted):
            return  # The set-up that we waited for did it.
        check_space(project.root)
        adding = can_add_to(stamp, wanted)
        lock = project.lock(dev)
        project.stamp.unlink(missing_ok=True)
        if adding:
            say("[1/3] .venv is there; adding the development packages to it")
        else:
            say(f"[1/3] Making .venv with Python {sys.version.split()[0]}")
            make_venv(project, lock_fd)
        say(f"[2/3] Installing the packages of {lock.name} (each checked by its hash); this can take minutes")
        install_lock(project, lock, lock_fd)
        say("[3/3] Linking camserver into .venv")
        link_project(project)
        write_stamp(project, wanted)
        say("Set-up done.")


def bring_assets(project: Project, dev: bool) -> None:
    """The files of assets.toml. Checks and most tests do without them, so there a missing one is only named."""
    import project_assets

    try:
        project_assets.bring(project, dev)
    except SetupError as error:
        if not dev or os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            raise
        print(f"warning: {error}\nThe tests that need it are skipped.", file=sys.stderr)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/setup.py", description="Makes .venv; see CONTRIBUTING.md.")
    parser.add_argument("--dev", action="store_true", help="install what the tests and checks need, too")
    parser.add_argument("--without-assets", action="store_true", help="do not fetch the files of assets.toml")
    options = parser.parse_args(arguments)
    project = Project(Path(__file__).resolve().parent.parent)
    try:
        set_up(project, options.dev)
        if not options.without_assets:
            bring_assets(project, options.dev)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("\nSet-up interrupted; the next run repairs what is half done.", file=sys.stderr)
        return Exit.INTERRUPTED
    except OSError as error:
        print(f"error: set-up in {project.root} failed: {error}. Repair it and try again.", file=sys.stderr)
        return Exit.NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else Exit.NOT_WRITABLE
    return Exit.OK
