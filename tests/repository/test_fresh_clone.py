"""`make fresh` on small projects: it sees only what is committed, waits for readiness, and tells a failure."""

import os
import shutil
import subprocess
import sys

import pytest

from .tree import ROOT

READY_SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["CAMSERVER_WEB_PORT"])), Handler).serve_forever()
"""


def fresh(tmp_path, makefile: str) -> subprocess.CompletedProcess[str]:
    """Commits a project with this Makefile and runs the program in it, with uncommitted dirt beside."""
    project = tmp_path / "project"
    (project / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "fresh_clone.py", project / "tools")
    (project / "server.py").write_text(READY_SERVER)
    (project / "Makefile").write_text(makefile)
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *identity, *command], cwd=project, check=True, timeout=60)
    (project / "uncommitted").touch()
    (tmp_path / "clones").mkdir()
    return subprocess.run(
        [sys.executable, "tools/fresh_clone.py"],
        cwd=project,
        env={**os.environ, "TMPDIR": str(tmp_path / "clones"), "CAMSERVER_LOG_LEVEL": "carried over"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_both_commands_run_in_a_clean_clone(tmp_path):
    makefile = (
        'test:\n\ttest ! -e uncommitted && test -z "$$CAMSERVER_LOG_LEVEL"\n'
        f"run:\n\t@exec {sys.executable} server.py\n"
    )
    done = fresh(tmp_path, makefile)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "make run: ready" in done.stdout
    assert not list((tmp_path / "clones").iterdir())


@pytest.mark.parametrize(
    ("makefile", "complaint"),
    [
        ("test:\n\tfalse\nrun:\n\ttrue\n", "make test failed"),
        ("test:\n\ttrue\nrun:\n\ttrue\n", "before it was ready"),
    ],
    ids=["failing-tests", "never-ready"],
)
def test_failures_are_told(tmp_path, makefile, complaint):
    done = fresh(tmp_path, makefile)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not list((tmp_path / "clones").iterdir())
