"""The docs name only what exists, and what exists is in the docs."""

import importlib
import re
import tomllib

import click
import pytest
from packaging.requirements import Requirement

from .mentions import commands, invocations, resolve, spans
from .tree import ROOT, SOURCE, TOP_PAGES, documents, repository_files

PAGES = [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in documents()]
# Of tools/ui_build.py, which imports its neighbours by name and so is no module of a package.
UI_FAILED = int(re.search(r"^EXIT_UI_FAILED = (\d+)$", (ROOT / "tools" / "ui_build.py").read_text(), re.MULTILINE)[1])
# `camserver.X` with one of these endings is a file's name, not a module.
FILE_ENDINGS = {"toml", "db", "service", "log", "conf", "lock", "target", "socket", "md"}


@pytest.fixture(scope="module")
def root_group() -> click.Group:
    """The root of the command tree; imported late so that a broken import fails here, by name."""
    main = importlib.import_module("camserver.cli").main
    if isinstance(main, click.Group):
        return main
    groups = vars(importlib.import_module("camserver.cli")).values()
    return next(group for group in groups if isinstance(group, click.Group) and group.name == "camserver")


@pytest.mark.parametrize("page", TOP_PAGES, ids=lambda path: path.name)
def test_pages_at_the_top_are_there(page):
    assert page.is_file()
    assert page.read_text().startswith("# ")


# --- commands ---


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_docs_exist(page, root_group):
    resolved = [resolve(root_group, words) for words in invocations(page.read_text())]
    assert not [found.problem for found in resolved if found.problem]


def test_every_command_is_documented(root_group):
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {resolve(root_group, words).path for page in pages for words in invocations(page.read_text())}
    leaves = {path for path, command in commands(root_group) if not isinstance(command, click.Group)}
    undocumented = sorted("camserver " + " ".join(path) for path in leaves - named)
    assert not undocumented, "name these in README.md or docs/"


def test_every_command_and_option_has_help(root_group):
    lacking = []
    for path, command in commands(root_group):
        name = " ".join(path)
        if not (command.help or "").strip():
            lacking.append(name)
        lacking += [
            f"{name} {param.opts[0]}"
            for param in command.params
            if isinstance(param, click.Option) and not param.help
        ]
    assert not lacking


# --- modules, files and folders ---


def is_module(dotted: str) -> bool:
    """True for a package or module of ours, or a name that one holds (`camserver.base.errors.CamError`)."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[1:length])
        if place.is_dir() or place.with_suffix(".py").is_file():
            left = parts[length:]
            return not left or hasattr(importlib.import_module(".".join(parts[:length])), left[0])
    return False


def test_modules_are_told_from_others():
    assert is_module("camserver.base")
    assert is_module("camserver.base.errors")
    assert is_module("camserver.base.errors.CamError")
    assert not is_module("camserver.nothing")
    assert not is_module("camserver.base.errors.Nothing")


@pytest.mark.parametrize("page", PAGES)
def test_modules_in_the_docs_exist(page):
    dotted = [span for span in spans(page.read_text()) if re.fullmatch(r"camserver(\.[A-Za-z_][A-Za-z0-9_]*)+", span)]
    modules = [span for span in dotted if span.rsplit(".", 1)[1] not in FILE_ENDINGS]
    assert not [span for span in modules if not is_module(span)]


@pytest.mark.parametrize("page", PAGES)
def test_python_files_in_the_docs_exist(page):
    named = [span for span in spans(page.read_text()) if re.fullmatch(r"[\w./-]+\.py", span)]
    missing = [span for span in named if not ((ROOT / span).is_file() or (SOURCE / span).is_file())]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_folders_in_the_docs_exist(page):
    # Only below what the repository has: `data/objects/` or `/etc/camserver/` are an operator's.
    tops = {path.relative_to(ROOT).parts[0] for path in repository_files() if path.parent != ROOT}
    tops |= {path.name for path in SOURCE.iterdir() if path.is_dir()}
    named = [span for span in spans(page.read_text()) if re.fullmatch(r"[\w.-]+/([\w.-]+/)*", span)]
    named = [span for span in named if span.split("/")[0] in tops]
    assert not [span for span in named if not ((ROOT / span).is_dir() or (SOURCE / span).is_dir())]


def test_architecture_names_every_top_module():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    modules = [path for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names = {path.stem for path in modules} - {"__init__", "__main__"}
    pattern = r"`(?:src/)?(?:camserver[./])?{name}(?:/|\.py)?[`/.]"
    assert {"domain", "store", "base"} <= names
    assert not sorted(name for name in names if not re.search(pattern.format(name=re.escape(name)), text))


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert not [target for target in local if not (page.parent / target).exists()]


# --- tables of CONTRIBUTING.md ---


def section(title: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"CONTRIBUTING.md has no section '{title}'"
    return found.group(1)


def test_dependency_table_and_pyproject_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    rows = re.findall(r"^\| `([\w.-]+)` \| ([^|]+) \| ([^|]+) \|$", section("Dependencies"), re.MULTILINE)
    assert sorted(name for name, _, _ in rows) == sorted(Requirement(line).name for line in lines)
    assert not [name for name, purpose, reason in rows if not (purpose.strip() and reason.strip())]


def test_exit_codes_of_the_set_up_are_documented():
    from tools import project_venv, setup, system_packages

    codes = {int(code) for code in project_venv.Exit}
    codes |= {setup.EXIT_WRONG_PYTHON, system_packages.EXIT_MISSING, UI_FAILED}
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes of the set-up"), re.MULTILINE)}
    assert listed == codes


def test_exit_codes_of_the_set_up_and_of_camserver_do_not_collide():
    from camserver.base.exits import Exit
    from tools import project_venv, system_packages

    own = {int(code) for code in project_venv.Exit if code} | {system_packages.EXIT_MISSING, UI_FAILED}
    assert not own & {int(code) for code in Exit}


def test_license_and_changelog():
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
