"""The set-up programs, run for real on small projects whose packages come from a local folder."""

import ast
import base64
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools import project_venv

from .tree import ROOT

TIMEOUT_SEC = 300


def write_wheel(folder: Path, name: str, version: str = "1.0", requires: str = "") -> str:
    """Makes a wheel with one module and returns the lock's entry for it."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{name}.py": f"NAME = {name!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}\n")
    files[f"{info}/RECORD"] = "".join(rows) + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@dataclass
class Sample:
    """A small project with the real set-up programs, one runtime package and one development package."""

    root: Path
    wheels: Path

    @property
    def keepsake(self) -> Path:
        """A file that survives only as long as .venv is not made anew."""
        return self.root / ".venv" / "keepsake"

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        local = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return {**kept, **local, **extra}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.root / "tools" / "setup.py"), *arguments]

    def set_up(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(**extra), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC,
        )  # fmt: skip

    def start(self) -> subprocess.CompletedProcess[str]:
        """Runs the start script that the set-up makes."""
        command = [str(self.root / ".venv" / "bin" / "camserver"), "an argument"]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC
        )

    def has(self, module: str) -> bool:
        command = [str(self.root / ".venv" / "bin" / "python"), "-c", f"import {module}"]
        return subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SEC).returncode == 0


@pytest.fixture
def sample(tmp_path):
    # A space in the path: the checkout may be anywhere.
    root, wheels = tmp_path / "a checkout", tmp_path / "wheels"
    root.mkdir()
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    runtime = write_wheel(wheels, "sample_runtime")
    (root / "requirements.lock").write_text(runtime)
    (root / "requirements-dev.lock").write_text(write_wheel(wheels, "sample_dev") + runtime)
    package = root / "src" / "camserver"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        "import sys\nimport sample_runtime\n\n\ndef main():\n    print(sample_runtime.NAME, sys.argv[1:])\n"
    )
    return Sample(root, wheels)


def test_life_of_a_venv(sample):
    first = sample.set_up()
    assert first.returncode == 0, first.stderr
    assert "[1/3] Making .venv" in first.stdout
    assert sample.start().stdout == "sample_runtime ['an argument']\n"
    assert not sample.has("sample_dev")

    sample.keepsake.touch()
    second = sample.set_up()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")

    dev = sample.set_up("--dev")
    assert dev.returncode == 0, dev.stderr
    assert "adding the development packages" in dev.stdout
    assert sample.has("sample_dev")
    # The development .venv serves `make run` too.
    assert sample.set_up().stdout == ""
    assert sample.keepsake.exists()

    # A package that left the lock leaves .venv.
    (sample.root / "requirements-dev.lock").write_text((sample.root / "requirements.lock").read_text())
    changed = sample.set_up("--dev")
    assert changed.returncode == 0, changed.stderr
    assert not sample.keepsake.exists()
    assert not sample.has("sample_dev")


def test_newer_release_of_a_locked_package_changes_nothing(sample):
    """pip considers a package with an extra apart from its pin, and would stumble over the newer one."""
    asks = write_wheel(sample.wheels, "sample_asks", requires="sample_runtime[more]")
    write_wheel(sample.wheels, "sample_runtime", version="2.0")
    with open(sample.root / "requirements.lock", "a") as lock:
        lock.write(asks)
    done = sample.set_up()
    assert done.returncode == 0, done.stderr
    assert sample.has("sample_asks")


def test_lock_lists_all_that_its_packages_need():
    """Nothing is resolved at set-up, so what the lock lacks would be missing."""
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_moved_checkout_gets_a_new_venv_even_from_within_the_old_one(sample):
    assert sample.set_up().returncode == 0
    sample.keepsake.touch()
    moved = Sample(sample.root.rename(sample.root.parent / "moved"), sample.wheels)
    assert moved.start().returncode != 0
    # The interpreter of an activated .venv, which the set-up has to remove.
    own = [str(moved.root / ".venv" / "bin" / "python"), *moved.command()[1:]]
    again = subprocess.run(
        own, env=moved.environment(), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC
    )
    assert again.returncode == 0, again.stderr
    assert not moved.keepsake.exists()
    assert moved.start().stdout == "sample_runtime ['an argument']\n"


class HangingIndex(http.server.ThreadingHTTPServer):
    """A package index that answers with links and never finishes a download."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HangingHandler)
        self.asked = threading.Event()
        self.let_go = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class HangingHandler(http.server.BaseHTTPRequestHandler):
    server: HangingIndex

    def do_GET(self) -> None:
        if self.path.endswith(".whl"):
            self.server.asked.set()
            self.server.let_go.wait(TIMEOUT_SEC)
            return
        name = self.path.strip("/").split("/")[-1].replace("-", "_")
        page = f'<a href="/{name}-1.0-py3-none-any.whl">{name}-1.0-py3-none-any.whl</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_killed_set_up_is_repaired_once_its_pip_has_ended(sample):
    with HangingIndex() as index:
        serving = threading.Thread(target=index.serve_forever, daemon=True)
        serving.start()
        environment = sample.environment(PIP_INDEX_URL=index.address, PIP_RETRIES="0")
        del environment["PIP_NO_INDEX"], environment["PIP_FIND_LINKS"]
        killed = subprocess.Popen(
            sample.command(), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert index.asked.wait(TIMEOUT_SEC)
        killed.kill()
        killed.wait()
        sample.keepsake.touch()

        # pip is still at work in .venv: a repair has to wait for it.
        repair = subprocess.Popen(
            sample.command(), env=sample.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert repair.stdout is not None
        assert "Another set-up runs in this folder" in repair.stdout.readline()
        index.let_go.set()
        _, errors = repair.communicate(timeout=TIMEOUT_SEC)
        index.shutdown()
        serving.join()
    assert repair.returncode == 0, errors
    assert not sample.keepsake.exists()
    assert sample.start().returncode == 0


def test_wrong_hash_is_refused(sample):
    lock = sample.root / "requirements.lock"
    lock.write_text(lock.read_text().split("sha256:")[0] + "sha256:" + "0" * 64 + "\n")
    refused = sample.set_up()
    assert refused.returncode == 24
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert "do not use that package index" in refused.stderr
    # Nothing of a failed set-up passes for a finished one.
    assert not (sample.root / ".venv" / "camserver-setup.json").exists()


def test_unreachable_index(sample):
    # Port 1 of the loopback refuses; no registry is asked.
    environment = sample.environment(PIP_INDEX_URL="http://127.0.0.1:1/simple", PIP_RETRIES="1")
    del environment["PIP_NO_INDEX"], environment["PIP_FIND_LINKS"]
    failed = subprocess.run(
        sample.command(), env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC
    )
    assert failed.returncode == 23, failed.stderr
    assert "The package index was not reachable" in failed.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ERROR: No matching distribution found for sample==1.0", 25),
        ("error: something that nobody thought of", 25),
        ("OSError: [Errno 28] No space left on device: '/tmp/pip-unpack'", 21),
        ("WARNING: Retrying (Retry(total=4)) after connection broken by 'ProxyError()'", 23),
        ("ERROR: HTTP error 503 while getting sample-1.0.whl", 23),
        ("ERROR: In --require-hashes mode, Hashes are required in --require-hashes mode, but", 24),
    ],
)
def test_words_of_pip_become_causes(tmp_path, line, code):
    project = project_venv.Project(tmp_path)
    error = project_venv.install_error(project, ["Collecting sample", line], "installing x")
    assert error.code == code
    assert line in str(error)
    assert "install.log" in str(error)


def test_file_in_the_place_of_the_venv(sample):
    (sample.root / ".venv").touch()
    failed = sample.set_up()
    assert failed.returncode == 22
    assert f"the folder {sample.root} can't be written" in failed.stderr


def run_in_mounts(sample: Sample, mounts: str) -> subprocess.CompletedProcess[str]:
    """Runs the set-up in a mount namespace of its own, where even root meets a read-only or full disk."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("needs root and mount namespaces")
    script = f'set -e; {mounts}; shift; exec "$@"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(sample.root), *sample.command()],
        env=sample.environment(), capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC,
    )  # fmt: skip


def test_read_only_folder(sample):
    failed = run_in_mounts(sample, 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"')
    assert failed.returncode == 22, failed.stderr
    assert "can't be written" in failed.stderr
    assert "Read-only file system" in failed.stderr


def test_full_disk(sample):
    mounts = 'mount -t tmpfs -o size=1m tmpfs "$1/../full"; cp -r "$1/." "$1/../full"; mount --move "$1/../full" "$1"'
    (sample.root.parent / "full").mkdir()
    failed = run_in_mounts(sample, mounts)
    assert failed.returncode == 21, failed.stderr
    assert "not enough disk space" in failed.stderr


def test_python_without_the_venv_module(sample, tmp_path):
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "ensurepip.py").write_text("raise ImportError('No module named ensurepip')\n")
    failed = sample.set_up(PYTHONPATH=str(stub))
    assert failed.returncode == 20
    assert "apt install python3-venv" in failed.stderr


def run_as_old_python(sample: Sample, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs setup.py under an interpreter that says it is 3.8, with only `path` on PATH."""
    program = (
        "import runpy, sys\n"
        "sys.version_info = (3, 8, 10, 'final', 0)\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    command = [sys.executable, "-c", program, *sample.command(*arguments)[1:]]
    environment = {**sample.environment(), "PATH": str(path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC)


def test_old_python_says_what_to_install(sample, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    failed = run_as_old_python(sample, empty)
    assert failed.returncode == 3
    assert "camserver needs Python 3.11 or newer; found 3.8.10" in failed.stderr
    assert "apt install python3" in failed.stderr


def test_old_python_hands_over_to_a_newer_one(sample, tmp_path):
    found = tmp_path / "bin"
    found.mkdir()
    # A shim that does not start must be passed over; the next one takes the arguments.
    for name, body in {
        "python3.11": "exit 127",
        "python3.12": 'test "$1" = -c && echo 3 12 || echo "took $2"',
    }.items():
        stub = found / name
        stub.write_text(f"#!/bin/sh\n{body}\n")
        stub.chmod(0o755)
    handed = run_as_old_python(sample, found, "--dev")
    assert (handed.returncode, handed.stdout) == (0, "took --dev\n"), handed.stderr


def test_setup_program_parses_on_old_python():
    source = (ROOT / "tools" / "setup.py").read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    # Old Pythons evaluate annotations, where `list[str]` and `int | None` are errors; typing's names are not.
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    annotations = [arg.annotation for node in functions for arg in node.args.args]
    annotations += [node.returns for node in functions]
    inner = [part for annotation in annotations if annotation for part in ast.walk(annotation)]
    assert inner
    assert not [ast.unparse(part) for part in inner if isinstance(part, ast.BinOp)]
    subscripted = [part.value for part in inner if isinstance(part, ast.Subscript)]
    assert {ast.unparse(value) for value in subscripted} <= {"List", "Optional", "Tuple"}
