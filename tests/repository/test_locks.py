"""The locks pin and hash everything, hold no addresses, and agree with pyproject.toml and with each other."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .tree import ROOT, repository_files

RUNTIME = ROOT / "requirements.lock"
DEV = ROOT / "requirements-dev.lock"


def pins(text: str) -> dict[str, list[str]]:
    """Canonical name -> every pinned version (markers may split one package into several)."""
    found: dict[str, list[str]] = {}
    entry = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
    for name, version in entry.findall(text):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


def direct(extra: str | None) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", [RUNTIME, DEV], ids=lambda path: path.name)
def test_every_entry_is_pinned_and_hashed(lock):
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock.read_text())
    assert len(entries) > 10
    for entry in entries:
        head = entry.splitlines()[0]
        assert re.match(r"[A-Za-z0-9._-]+(\[[^\]]*\])?==", head), f"{lock.name}: not pinned: {head}"
        assert "--hash=sha256:" in entry, f"{lock.name}: no hash: {head}"


@pytest.mark.parametrize("lock", [RUNTIME, DEV], ids=lambda path: path.name)
def test_no_addresses(lock):
    text = lock.read_text()
    for forbidden in ("://", "--index-url", "--extra-index-url", "--find-links", "--trusted-host", " @ "):
        assert forbidden not in text, f"{lock.name} holds {forbidden!r}; make it again by `make lock`"


@pytest.mark.parametrize(("lock", "extra"), [(RUNTIME, None), (DEV, None), (DEV, "dev")])
def test_direct_dependencies_are_locked_within_their_bounds(lock, extra):
    locked = pins(lock.read_text())
    for requirement in direct(extra):
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement.name} is in pyproject.toml but not in {lock.name}; run `make lock`"
        for version in versions:
            assert requirement.specifier.contains(version), f"{requirement}: {lock.name} has {version}"


def test_development_has_the_same_runtime_packages():
    runtime, dev = pins(RUNTIME.read_text()), pins(DEV.read_text())
    assert {name: dev.get(name) for name in runtime} == runtime


# Assembled from parts, so that this file does not hold what it forbids.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"), ("pypi", "python", "org"), ("pythonhosted", "org"), ("anaconda", "org"),
        ("npmjs", "org"), ("npmjs", "com"), ("yarnpkg", "com"), ("npmmirror", "com"), ("unpkg", "com"),
        ("jsdelivr", "net"), ("crates", "io"), ("docker", "io"), ("ghcr", "io"), ("quay", "io"),
        ("huggingface", "co"),
    )
)  # fmt: skip
PATTERN = re.compile("|".join(rf"(?<![\w-]){re.escape(host)}\b" for host in REGISTRIES), re.IGNORECASE)


def test_the_pattern_finds_registries():
    assert all(PATTERN.search(f"see https://files.{host}/simple") for host in REGISTRIES)


def test_no_file_names_a_package_registry():
    found = []
    plain = [host.encode() for host in REGISTRIES]
    for path in repository_files():
        content = path.read_bytes()
        lower = content.lower()
        if not any(host in lower for host in plain):
            continue  # the pattern takes seconds over everything
        text = content.decode("utf-8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in PATTERN.finditer(text)]
    assert not found
