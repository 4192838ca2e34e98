"""Builds the web UI into src/camserver/services/web/ui_dist, or fails loudly: no camserver without its pages.

Nothing is done when nothing changed: stamps in .setup name the sources that were built and the lock whose packages
are in ui/node_modules. A build happens beside the place it is meant for and is moved there when it is complete, so
that neither a failed nor a killed one leaves half a UI. Where packages come from is npm's own business (its
configuration files and variables); the lock holds hashes and no addresses.

--dev brings also what the UI's checks and tests need; --npm runs a script of ui/package.json afterwards.
Exit codes are in CONTRIBUTING.md ("Exit codes of the set-up").
"""

import argparse
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import node_programs
import npm_errors
import project_venv
from node_programs import NodePrograms
from project_venv import Exit, Project, SetupError, say

EXIT_UI_FAILED = 27
# Raised when this file changes what it does with the same sources.
LAYOUT = 1
LOG_TAIL_LINES = 30
# What lies in ui/ and is not what the UI is made of.
_NOT_SOURCES = ("node_modules", "e2e", "test-results")
_NOT_SOURCE_FILES = (
    "schema.d.ts",
    "test-setup.ts",
    "vitest.config.ts",
    "playwright.config.ts",
    "biome.json",
    ".gitignore",
)

_NEXT_STEP_OTHERWISE = "Read what it says above, correct it and run `make ui` again."


class UiPlaces:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.ui = project.root / "ui"
        self.modules = self.ui / "node_modules"
        self.dist = project.root / "src" / "camserver" / "services" / "web" / "ui_dist"
        self.half_built = self.dist.with_name("ui_dist.new")
        self.build_stamp = project.notes / "ui-build.json"
        self.modules_stamp = project.notes / "ui-modules.json"
        self.log = project.notes / "ui-build.log"


def sources(places: UiPlaces) -> list[Path]:
    """The files that a build reads, in a fixed order."""
    found = []
    for folder, inner, names in os.walk(places.ui):
        inner[:] = [name for name in inner if name not in _NOT_SOURCES]
        found += [Path(folder, name) for name in names if name not in _NOT_SOURCE_FILES and ".test." not in name]
    return sorted(found)


def build_wanted(places: UiPlaces) -> dict[str, object]:
    digest = hashlib.sha256()
    for path in sources(places):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(places.ui).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return {"layout": LAYOUT, "sources": digest.hexdigest()}


def modules_wanted(places: UiPlaces, dev: bool) -> dict[str, object]:
    lock = hashlib.sha256((places.ui / "package-lock.json").read_bytes()).hexdigest()
    return {"layout": LAYOUT, "lock": lock, "dev": dev}


def read_stamp(stamp: Path, proof: Path) -> dict[str, object]:
    """What a stamp says, when the thing it speaks of is there."""
    try:
        said = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) and proof.exists() else {}


def write_stamp(stamp: Path, wanted: dict[str, object]) -> None:
    beside = stamp.with_suffix(".new")
    beside.write_text(json.dumps(wanted, indent=1) + "\n")
    beside.replace(stamp)


def is_built(places: UiPlaces) -> bool:
    return read_stamp(places.build_stamp, places.dist / "index.html") == build_wanted(places)


def has_modules(places: UiPlaces, dev: bool) -> bool:
    """The packages for development include those for building."""
    said = read_stamp(places.modules_stamp, places.modules)
    return said in (modules_wanted(places, True), modules_wanted(places, dev))


# --- the work ---


def run(places: UiPlaces, command: list[str], environment: dict[str, str], doing: str, lock_fd: int) -> None:
    """Runs a program with its output in the log; a failure shows the end of it."""
    with open(places.log, "a") as log:
        print(f"$ {' '.join(command)}", file=log, flush=True)
        done = subprocess.run(
            command,
            cwd=places.ui,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            pass_fds=[lock_fd],
        )
        log.write(done.stdout)
    if done.returncode != 0:
        raise build_error(places, done.stdout.splitlines(), doing)


class UiFailed(Exception):
    """The UI could not be made for a reason of its own; the message is for people."""


def build_error(places: UiPlaces, lines: list[str], doing: str) -> SetupError | UiFailed:
    tail = "\n".join(f"  | {line}" for line in lines[-LOG_TAIL_LINES:] if line.strip())
    code = npm_errors.cause_of(lines)
    step = _NEXT_STEP_OTHERWISE if code is None else npm_errors.NEXT_STEPS[code]
    message = f"{doing} failed:\n{tail}\n{step}\nThe whole output: {places.log}"
    return UiFailed(message) if code is None else SetupError(code, message)


def install_modules(places: UiPlaces, node: NodePrograms, dev: bool, lock_fd: int) -> None:
    if has_modules(places, dev):
        return
    say("Installing the UI's packages (each checked by its hash); this can take a minute")
    places.modules_stamp.unlink(missing_ok=True)
    command = [node.npm, "ci", "--no-audit", "--ignore-scripts", *([] if dev else ["--omit=dev"])]
    run(places, command, node.environment, "installing the UI's packages", lock_fd)
    write_stamp(places.modules_stamp, modules_wanted(places, dev))


def build(places: UiPlaces, node: NodePrograms, lock_fd: int) -> None:
    if is_built(places):
        return
    say("Building the UI")
    wanted = build_wanted(places)
    places.build_stamp.unlink(missing_ok=True)
    shutil.rmtree(places.half_built, ignore_errors=True)
    environment = {**node.environment, "CAMSERVER_UI_OUT": str(places.half_built), "NODE_ENV": "production"}
    run(places, [node.npm, "run", "build"], environment, "building the UI", lock_fd)
    if not (places.half_built / "index.html").is_file():
        raise UiFailed(f"the UI's build wrote no index.html. {_NEXT_STEP_OTHERWISE}\nSee {places.log}")
    shutil.rmtree(places.dist, ignore_errors=True)
    places.half_built.rename(places.dist)
    write_stamp(places.build_stamp, wanted)


def make_ui(project: Project, dev: bool, script: str | None) -> int:
    places = UiPlaces(project)
    if is_built(places) and not dev and script is None:
        return 0  # Needs no Node at all.
    project_venv.check_writable(project)
    with project_venv.only_one(project) as lock_fd:
        places.log.unlink(missing_ok=True)
        node = node_programs.ensure(project, lock_fd)
        install_modules(places, node, dev, lock_fd)
        build(places, node, lock_fd)
    if script is None:
        return 0
    return subprocess.run([node.npm, "run", script], cwd=places.ui, env=node.environment, check=False).returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/ui_build.py", description="Builds the web UI; see CONTRIBUTING.md.")
    parser.add_argument("--dev", action="store_true", help="bring what the UI's checks and tests need, too")
    parser.add_argument("--npm", metavar="SCRIPT", help="run this script of ui/package.json afterwards")
    options = parser.parse_args(arguments)
    project = Project(Path(__file__).resolve().parent.parent)
    try:
        return EXIT_UI_FAILED if make_ui(project, options.dev, options.npm) else Exit.OK
    except UiFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UI_FAILED
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("\nInterrupted; the next run builds the UI anew.", file=sys.stderr)
        return Exit.INTERRUPTED
    except OSError as error:
        print(f"error: building the UI in {project.root} failed: {error}. Repair it and try again.", file=sys.stderr)
        return Exit.NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else Exit.NOT_WRITABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
