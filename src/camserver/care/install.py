"""Installing on a machine with systemd: user, folders, a configuration to begin with, units.

First a plan is made, which can be printed; carrying it out again changes nothing that is as it should be. What people
edit (the configuration) is written only where there is none.
"""

import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from camserver.base.errors import DataUnusable, Fatal, Forbidden
from camserver.base.folders import write_whole
from camserver.care.systemd_units import SETS, USER, Where, files

UNIT_FOLDER = "/etc/systemd/system"
CONFIG = """\
# camserver's settings; camserver.example.toml and docs/ref/settings.md list them all.
# After a change: systemctl restart camserver.target

[server]
data_dir = "{data_dir}"
# public_url = "https://cameras.example.com"
"""
SITE_CONFIG = """\
# camserver's settings of a worker; camserver.example.toml and docs/ref/settings.md list them all.
# After a change: systemctl restart camserver.target

[server]
data_dir = "{data_dir}"

# The server's port for workers elsewhere, as given to `camserver worker enroll`.
# [worker]
# server_url = "https://cameras.example.com:8443"
"""
ENVIRONMENT = """\
# Settings that are secrets, as CAMSERVER_SECTION_KEY=value, such as CAMSERVER_STORE_URL. Only root reads this file;
# systemd hands the values over.
"""


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    mode: int
    owned: bool  # by camserver's user; else by root


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: str
    mode: int
    owned: bool = False
    keep: bool = False  # what is there is left as it is


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]

    @property
    def shown(self) -> str:
        return " ".join(self.argv)


Step = Folder | File | Command


def plan(services: str, where: Where, has_user: bool, enable: bool) -> list[Step]:
    """What is to be done, in order. `services` is a name of `SETS`."""
    steps: list[Step] = []
    if not has_user:
        home = ("--home-dir", where.data_dir, "--no-create-home")
        steps.append(Command(("useradd", "--system", "--user-group", *home, "--shell", "/usr/sbin/nologin", USER)))
    config = SITE_CONFIG if services == "site" else CONFIG
    steps += [
        Folder(str(Path(where.config).parent), 0o755, False),
        Folder(where.data_dir, 0o700, True),
        # The services read it as their user; passwords belong into the other file.
        File(where.config, config.format(data_dir=where.data_dir), 0o644, keep=True),
        File(where.environment, ENVIRONMENT, 0o600, keep=True),
    ]
    made = files(SETS[services], where)
    steps += [File(f"{UNIT_FOLDER}/{name}", content, 0o644) for name, content in made.items()]
    steps.append(Command(("systemctl", "daemon-reload")))
    # Services always belong to the target, or starting it would start nothing; it alone belongs to the start of all.
    enabled = tuple(made) if enable else tuple(name for name in made if name.endswith(".service"))
    steps.append(Command(("systemctl", "enable", *enabled)))
    return steps


def has_user() -> bool:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True


def carry_out(steps: Sequence[Step], root: Path | None, told: Callable[[str, str], None]) -> None:
    """Does it. With `root` everything is written below that folder and no command is run: for packagers."""
    if root is None and os.geteuid() != 0:
        raise Forbidden("only root can install; look at what would be done with --dry-run")
    for step in steps:
        try:
            _do(step, root, told)
        except OSError as error:
            raise DataUnusable(f"{_shown(step)} failed: {error.strerror}") from error


def _do(step: Step, root: Path | None, told: Callable[[str, str], None]) -> None:
    if isinstance(step, Command):
        if root is None:
            done = subprocess.run(step.argv, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode != 0:
                raise Fatal(f"{step.shown} failed ({done.stderr.strip()[-300:]}); what was done so far can stay")
            told("ran", step.shown)
        return
    path = Path(step.path) if root is None else root / step.path.lstrip("/")
    if isinstance(step, Folder):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(step.mode)
    elif step.keep and path.exists():
        return
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, step.content.encode())
        path.chmod(step.mode)
    if step.owned and root is None:
        owner = pwd.getpwnam(USER)
        os.chown(path, owner.pw_uid, owner.pw_gid)
    told("wrote", str(path))


def _shown(step: Step) -> str:
    return step.shown if isinstance(step, Command) else step.path
