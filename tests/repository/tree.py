"""Where things are in the checkout, for the tests beside this file."""

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "camserver"


@functools.cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is tracked, or would be by `git add .`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


TOP_PAGES = tuple(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))


def documents() -> list[Path]:
    """What people read: the pages at the top and everything in docs/."""
    return [page for page in TOP_PAGES if page.exists()] + sorted((ROOT / "docs").rglob("*.md"))
