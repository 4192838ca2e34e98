"""Proves the README's two commands: `make test` and `make run` in a fresh clone of HEAD, in an empty folder.

Only what is committed counts, and there is no Node on PATH, whatever this machine has. `make run` is started on free
ports with a data folder of its own. When it is ready, the page must be there and show, to somebody who came by the
set-up link, an event that the detector found; then it is stopped as Ctrl-C does. Everything is removed afterwards
unless --keep is given. Standard library only.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from first_visit import VisitFailed, Visitor
from hidden_programs import NODE_PROGRAMS, path_without

# Packages, the model and footage may all have to be fetched first, and the UI built.
READY_TIMEOUT_SEC = 1800
EVENT_WITHIN_SEC = 60
STOP_TIMEOUT_SEC = 30
POLL_SEC = 0.25
COMMANDS = ("test", "run")
# What a developer's shell may carry over from another checkout, or use to find a Node.
_FOREIGN = frozenset(
    {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}
    | {"NODE_PATH", "NODE_OPTIONS", "NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME"}
)
# Section and key of every port that `make run` listens on.
_PORTS = ("WEB_PORT", "CONTROL_PORT", "ANALYZER_PORT", "DEMO_PORT")


class FreshFailed(Exception):
    """One of the two commands does not do what the README promises; the message is for people."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held together so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(held.getsockname()[1]) for held in sockets]
    for held in sockets:
        held.close()
    return ports


def clean_environment(links: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    kept = {name: value for name, value in kept.items() if not name.startswith("CAMSERVER_")}
    return {**kept, "PATH": path_without(NODE_PROGRAMS, kept.get("PATH", os.defpath), links)}


def clone_head(root: Path, clone: Path) -> None:
    done = subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(root), str(clone)], check=False)
    if done.returncode != 0:
        raise FreshFailed(f"{root} can't be cloned to {clone}")


def run_tests(clone: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(["make", "test"], cwd=clone, env=environment, check=False)
    if done.returncode != 0:
        raise FreshFailed(f"`make test` ended with {done.returncode}")


def run_and_visit(clone: Path, environment: dict[str, str], data: Path, event_within_sec: float) -> None:
    ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
    settings = {f"CAMSERVER_{name}": str(port) for name, port in ports.items()}
    visitor = Visitor(f"http://127.0.0.1:{ports['WEB_PORT']}")
    with running(clone, {**environment, **settings, "CAMSERVER_SERVER_DATA_DIR": str(data)}) as process:
        wait_until_ready(process, visitor)
        ready_at = time.monotonic()
        visitor.open_page()
        visitor.sign_in(data / "setup-link.txt")
        event = visitor.see_event(ready_at + event_within_sec)
        took_sec = time.monotonic() - ready_at
        say(f"make run: {event['primary_event']} seen by {event['camera_id']} {took_sec:.0f} s after it was ready")
        stop(process)


@contextmanager
def running(clone: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """`make run`, which never outlives this. Its output is passed on: on a terminal it would show the set-up link."""
    process = subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    copying = threading.Thread(target=_copy, args=(process.stdout,), daemon=True)
    copying.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        copying.join(timeout=STOP_TIMEOUT_SEC)


def _copy(source: IO[str]) -> None:
    for line in source:
        sys.stdout.write(line)
        sys.stdout.flush()


def wait_until_ready(process: subprocess.Popen[str], visitor: Visitor) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_SEC
    while not visitor.is_ready():
        if process.poll() is not None:
            raise FreshFailed(f"`make run` ended with {process.returncode} before it was ready; its output says why")
        if time.monotonic() > deadline:
            raise FreshFailed(f"`make run` was not ready within {READY_TIMEOUT_SEC} s")
        time.sleep(POLL_SEC)


def stop(process: subprocess.Popen[str]) -> None:
    """Ctrl-C: the signal goes to all of the group."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=STOP_TIMEOUT_SEC)
    except subprocess.TimeoutExpired:
        raise FreshFailed(f"`make run` did not stop within {STOP_TIMEOUT_SEC} s") from None


def say(text: str) -> None:
    print(text, flush=True)


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the README's two commands in a fresh clone of HEAD.")
    parser.add_argument("--keep", action="store_true", help="leave the clone and the data where they are")
    parser.add_argument("--only", choices=COMMANDS, help="run just this one of the two")
    parser.add_argument(
        "--event-within-sec",
        type=float,
        default=EVENT_WITHIN_SEC,
        metavar="SECONDS",
        help=f"how soon after `make run` is ready an event must be seen (default {EVENT_WITHIN_SEC})",
    )
    return parser.parse_args()


def main() -> int:
    options = asked()
    root = Path(__file__).resolve().parent.parent
    folder = Path(tempfile.mkdtemp(prefix="camserver-fresh-"))
    # Apart from the clone: others may read it.
    links = Path(tempfile.mkdtemp(prefix="camserver-fresh-path-"))
    clone = folder / "camserver"
    try:
        environment = clean_environment(links)
        clone_head(root, clone)
        if options.only != "run":
            say(f"make test in {clone}")
            run_tests(clone, environment)
        if options.only != "test":
            say(f"make run in {clone}")
            run_and_visit(clone, environment, folder / "data", options.event_within_sec)
    except (FreshFailed, VisitFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            say(f"the clone and its data are in {folder}; its programs in {links}")
        else:
            # What was killed may write a moment longer.
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(links, ignore_errors=True)
    say("The two commands work in a fresh clone." if options.only is None else f"`make {options.only}` works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
