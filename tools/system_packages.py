"""Brings the programs that tests start beside camserver: private database servers, cameras, a browser.

As root on Debian or Ubuntu the missing ones are installed by apt, without starting their services: tests
start servers of their own in temporary folders. Elsewhere they are named and the tests that need them are
skipped; with CI=true a missing one is a failure, so that a green run never means "not tested".

camserver itself needs none of them.
"""

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXIT_OK = 0
EXIT_MISSING = 26
POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True, slots=True)
class Program:
    """A program looked for by its file, since it may come from elsewhere than the distribution's package."""

    package: str
    places: tuple[str, ...]
    used_for: str

    def present(self) -> bool:
        return any(glob.glob(place) if "/" in place else shutil.which(place) for place in self.places)


CAMERAS = "tests with GStreamer's RTSP cameras"
PROGRAMS = (
    Program("postgresql", ("/usr/lib/postgresql/*/bin/postgres",), "store tests on PostgreSQL"),
    Program("mariadb-server", ("mariadbd", "/usr/sbin/mariadbd"), "store tests on MariaDB"),
    Program("chromium", ("chromium", "chromium-browser", "google-chrome"), "tests in a browser"),
    Program("mosquitto", ("mosquitto", "/usr/sbin/mosquitto"), "tests with an MQTT broker"),
    Program("nginx-light", ("nginx", "/usr/sbin/nginx"), "the check of the nginx example"),
    Program("apache2-bin", ("apache2", "/usr/sbin/apache2"), "the check of the Apache example"),
    Program("systemd", ("systemd-analyze",), "the check of the systemd units"),
    Program("prometheus", ("promtool",), "the tests of the alert rules"),
    Program("iproute2", ("ip", "/usr/sbin/ip"), "tests in network namespaces"),
    Program("python3-gi", ("/usr/lib/python3/dist-packages/gi/__init__.py",), CAMERAS),
    Program("gir1.2-gst-rtsp-server-1.0", ("/usr/lib/*/girepository-1.0/GstRtspServer-1.0.typelib",), CAMERAS),
    Program("gstreamer1.0-plugins-base", ("/usr/lib/*/gstreamer-1.0/libgstapp.so",), CAMERAS),
    Program("gstreamer1.0-plugins-good", ("/usr/lib/*/gstreamer-1.0/libgstrtp.so",), CAMERAS),
    Program("gstreamer1.0-plugins-bad", ("/usr/lib/*/gstreamer-1.0/libgstvideoparsersbad.so",), CAMERAS),
    Program("gstreamer1.0-plugins-ugly", ("/usr/lib/*/gstreamer-1.0/libgstx264.so",), CAMERAS),
    Program("fonts-noto-cjk", ("/usr/share/fonts/*/noto/NotoSansCJK-Regular.ttc",), "screenshots with Japanese text"),
)


def missing(programs: Sequence[Program]) -> list[Program]:
    return [program for program in programs if not program.present()]


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


@contextmanager
def services_kept_off(policy: Path = POLICY) -> Iterator[None]:
    """Tells Debian's maintainer scripts not to start daemons (answer 101: action not allowed)."""
    if policy.exists():
        yield  # The machine has a policy of its own, as containers do; it stands.
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink(missing_ok=True)


def apt_get(*arguments: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Without a limit apt waits for ever behind another package manager; an unattended upgrade takes minutes.
    command = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", *arguments]
    return subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode == 0


def install(packages: Sequence[str], apt: Callable[..., bool] = apt_get) -> bool:
    """Installs with the package lists at hand first; only when that fails are the lists fetched anew."""
    arguments = ("install", "--no-install-recommends", *packages)
    return apt(*arguments) or (apt("update") and apt(*arguments))


def ensure(programs: Sequence[Program], environ: Mapping[str, str]) -> int:
    lacking = missing(programs)
    if lacking and can_install():
        packages = [program.package for program in lacking]
        print(f"Installing system packages for the tests: {' '.join(packages)}", flush=True)
        with services_kept_off():
            install(packages)
        lacking = missing(programs)
    if not lacking:
        return EXIT_OK
    names = " ".join(program.package for program in lacking)
    failing = environ.get("CI", "").lower() in ("1", "true", "yes")
    for program in lacking:
        print(f"{program.package} is missing: {program.used_for} {'need it' if failing else 'are skipped'}.")
    if failing:
        print(f"error: CI is set and must not skip tests. Install them: apt install {names}", file=sys.stderr)
        return EXIT_MISSING
    print(f"To run them too: apt install {names}", flush=True)
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(ensure(PROGRAMS, os.environ))
