"""`camserver install --systemd` on a machine of its own, and its services started as the units say, as their user."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from camserver.care.systemd_units import PREFIX, SETS
from tests.rig.processes import REPOSITORY

NEEDED = ("unshare", "setpriv", "ip", "mount", "useradd")
# Half a minute of work; the rest is for slow machines.
TIMEOUT_SEC = 400


def _can_be_tried() -> bool:
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in NEEDED):
        return False
    tried = ["unshare", "--mount", "--net", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _can_be_tried(), reason="needs root, namespaces and util-linux")
@pytest.mark.timeout(TIMEOUT_SEC + 60)
def test_what_is_installed_starts_as_its_user_and_keeps_to_its_folder(tmp_path: Path) -> None:
    within = ["unshare", "--mount", "--net", "--propagation", "private", sys.executable]
    done = subprocess.run(
        [*within, "-m", "tests.care.installed_machine", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SEC,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    names = {f"{PREFIX}{name}" for name in SETS["one"]}
    assert "useradd --system" in told["said"]
    assert told["asked"][0] == "daemon-reload"
    assert {f"{name}.service" for name in names} <= set(told["asked"][1].split())
    nothing = "0" * 16
    as_asked = {"Uid": told["uid"], "CapEff": nothing, "CapBnd": nothing, "NoNewPrivs": "1"}
    assert told["found"] == dict.fromkeys(names, as_asked), told["logs"]
    assert told["uid"] != "0"
    assert told["check"][0] == 0, told["check"][1]
    assert told["ended"] == dict.fromkeys(names, 0), told["logs"]
    assert (told["foreign"], told["open"]) == ([], [])
