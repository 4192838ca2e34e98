"""Proves the README's two commands: `make test` and `make run` in a fresh clone of HEAD, in an empty folder.

Only what is committed counts. `make run` is started on free ports, waited for until it says that it is ready,
and stopped as Ctrl-C does. The clone is removed afterwards unless --keep is given.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

READY_TIMEOUT_SEC = 300
STOP_TIMEOUT_SEC = 30
POLL_SEC = 0.5
# What a developer's shell may carry over from another checkout.
_FOREIGN = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held together so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(held.getsockname()[1]) for held in sockets]
    for held in sockets:
        held.close()
    return ports


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return {name: value for name, value in kept.items() if not name.startswith("CAMSERVER_")}


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False


def run_until_ready(clone: Path, environment: dict[str, str]) -> None:
    web, control = free_ports(2)
    environment = {**environment, "CAMSERVER_WEB_PORT": str(web), "CAMSERVER_CONTROL_PORT": str(control)}
    # The worker's default address follows the control port only within one configuration source.
    environment["CAMSERVER_WORKER_SERVER_URL"] = f"http://127.0.0.1:{control}"
    process = subprocess.Popen(["make", "run"], cwd=clone, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + READY_TIMEOUT_SEC
        while not is_ready(f"http://127.0.0.1:{web}/readyz"):
            if process.poll() is not None:
                raise SystemExit(f"error: `make run` ended with {process.returncode} before it was ready")
            if time.monotonic() > deadline:
                raise SystemExit(f"error: `make run` was not ready within {READY_TIMEOUT_SEC} s")
            time.sleep(POLL_SEC)
        print("make run: ready; stopping it", flush=True)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=STOP_TIMEOUT_SEC)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"error: `make run` did not stop within {STOP_TIMEOUT_SEC} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the README's two commands in a fresh clone of HEAD.")
    parser.add_argument("--keep", action="store_true", help="leave the clone where it is")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    folder = Path(tempfile.mkdtemp(prefix="camserver-fresh-"))
    clone = folder / "camserver"
    environment = clean_environment()
    try:
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(root), str(clone)], check=True)
        print(f"make test in {clone}", flush=True)
        subprocess.run(["make", "test"], cwd=clone, env=environment, check=True)
        print(f"make run in {clone}", flush=True)
        run_until_ready(clone, environment)
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(error.cmd)} failed with {error.returncode}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"the clone is in {clone}", flush=True)
        else:
            shutil.rmtree(folder)
    print("The two commands work in a fresh clone.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
