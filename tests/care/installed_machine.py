"""A machine that camserver is installed on and started as its units say: run by test_installed.py in namespaces of
its own, where /etc, /opt and /var/lib are layers over the real ones and go with them.

systemd itself can't run there: what it would be asked is noted, and what it would do is done as far as commands,
user, folder, umask, privileges and environment go. Says what it found as JSON.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.rig.polling import poll
from tests.rig.processes import REPOSITORY

LAYERED = ("etc", "opt", "var/lib")
READY = ("http://127.0.0.1:8080/readyz", "http://127.0.0.1:8082/readyz")
UNITS = Path("/etc/systemd/system")
PROGRAM = Path("/opt/camserver/bin/camserver")
DATA = Path("/var/lib/camserver")


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def lay_over(base: Path) -> None:
    run("mount", "-t", "tmpfs", "none", str(base))
    for name in LAYERED:
        upper, work = base / name / "upper", base / name / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        options = f"lowerdir=/{name},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "overlay", "-o", options, f"/{name}")


def open_up(path: Path, base: Path) -> None:
    """Lets everybody into a folder that lies below one of somebody's own, as interpreters of developers do."""
    closed = next((one for one in reversed(path.parents) if not one.stat().st_mode & 0o001), None)
    if closed is not None:
        inside = base / "opened" / path.relative_to(closed)
        inside.mkdir(parents=True)
        run("mount", "--bind", str(path), str(inside))
        run("mount", "--rbind", str(base / "opened"), str(closed))


def install(base: Path) -> tuple[str, list[str]]:
    """What it said, and what systemd was asked."""
    asked, stand_ins = base / "systemctl.log", base / "bin"
    stand_ins.mkdir()
    (stand_ins / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    (stand_ins / "systemctl").chmod(0o755)
    PROGRAM.parent.mkdir(parents=True)
    PROGRAM.symlink_to(Path(sys.executable).parent / "camserver")
    os.environ["PATH"] = f"{stand_ins}:{os.environ['PATH']}"
    said = run(str(PROGRAM), "install", "--systemd", "--program", str(PROGRAM))
    model = REPOSITORY / ".assets" / "efficientdet-lite1.tflite"
    if model.exists():
        (DATA / "assets").mkdir()
        (DATA / "assets" / model.name).symlink_to(model)
    return said, asked.read_text().splitlines()


def value(unit: str, name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", unit, re.MULTILINE)
    assert found is not None, name
    return found[1]


def start(unit: str, log: Path) -> "subprocess.Popen[bytes]":
    user, mask = value(unit, "User"), value(unit, "UMask")
    assert value(unit, "NoNewPrivileges") == "yes"
    assert value(unit, "CapabilityBoundingSet") == ""
    name, _, text = value(unit, "Environment").partition("=")
    as_user = ["setpriv", f"--reuid={user}", f"--regid={value(unit, 'Group')}", "--init-groups", "--no-new-privs"]
    argv = [*as_user, "--bounding-set=-all", "--inh-caps=-all", *shlex.split(value(unit, "ExecStart"))]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", name: text}
    with log.open("wb") as output:
        return subprocess.Popen(
            argv,
            cwd=value(unit, "WorkingDirectory"),
            env=environment,
            umask=int(mask, 8),
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {name: told[name].split()[0] for name in ("Uid", "CapEff", "CapBnd", "NoNewPrivs")}


def main(base: Path) -> None:
    run("ip", "link", "set", "lo", "up")
    lay_over(base)
    open_up(Path(sys.base_prefix), base)
    said, asked = install(base)
    units = {path.stem: path.read_text() for path in sorted(UNITS.glob("cam-*.service"))}
    running = {name: start(unit, base / f"{name}.log") for name, unit in units.items()}
    try:
        poll(
            lambda: all(map(is_ready, READY)) or any(one.poll() is not None for one in running.values()), "all ready"
        )
        found = {name: one.poll() if one.poll() is not None else status_of(one.pid) for name, one in running.items()}
        check = subprocess.run([PROGRAM, "check", "--json"], cwd="/", capture_output=True, text=True, check=False)
    finally:
        for one in running.values():
            one.send_signal(signal.SIGTERM)
        ended = {name: one.wait(60) for name, one in running.items()}
    uid = DATA.stat().st_uid
    told = {
        "said": said,
        "asked": asked,
        "uid": str(uid),
        "found": found,
        "ended": ended,
        "check": [check.returncode, check.stdout[-2000:] + check.stderr[-2000:]],
        "foreign": [str(path) for path in DATA.rglob("*") if not path.is_symlink() and path.stat().st_uid != uid],
        "open": [str(path) for path in (DATA / "secrets").iterdir() if path.stat().st_mode & 0o077],
        "logs": {name: (base / f"{name}.log").read_text()[-1500:] for name in running},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
