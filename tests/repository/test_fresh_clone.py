"""`make fresh` on small projects: it sees only what is committed, visits what runs, and tells a failure."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .tree import ROOT

PROGRAMS = ("fresh_clone.py", "first_visit.py", "hidden_programs.py")
# Stands for the product: just what a first visit asks for, said in the same words. `{broken}` changes some of it.
SERVER = """
import http.server, json, os, pathlib
data = pathlib.Path(os.environ["CAMSERVER_SERVER_DATA_DIR"])
data.mkdir()
(data / "setup-link.txt").write_text("http://anywhere/setup#token=the-token")
assert len({{os.environ[f"CAMSERVER_{{name}}_PORT"] for name in ("WEB", "CONTROL", "ANALYZER", "DEMO")}}) == 4

events = [{{"event_uuid": "1", "primary_event": "camera_issue"}}, {{"event_uuid": "2", "primary_event": "human"}}]
frame = {{"frame_uuid": "3", "boxes": [{{"label": "person"}}]}}
answers = {{
    "/readyz": "{{}}",
    "/": '<!doctype html><script type="module" crossorigin src="/assets/index.js"></script>',
    "/assets/index.js": "script",
    "/api/events": {{"events": events}},
    "/api/events/2": {{"primary_event": "human", "camera_id": "demo_street", "best_frame": frame}},
    "/api/frames/3/picture?kind=infer": "a picture",
    "/api/system/status": {{"analyzer": "stalled"}},
}}
kinds = {{"/": "text/html", "/assets/index.js": "text/javascript", "/api/frames/3/picture?kind=infer": "image/jpeg"}}
{broken}

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body, *headers):
        self.send_response(status)
        self.send_header("Content-Type", kinds.get(self.path, "application/json"))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())

    def do_GET(self):
        signed_in = "session=first-visitor" in self.headers.get("Cookie", "")
        if self.path not in answers or (self.path.startswith("/api/") and not signed_in):
            return self.answer(401 if self.path in answers else 404, {{}})
        self.answer(200, answers[self.path])

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/setup" and sent.get("token") != "the-token":
            return self.answer(403, {{"message": "the set-up link is not right"}})
        self.answer(201, {{}}, ("Set-Cookie", f"session={{sent['login']}}; Path=/; HttpOnly; SameSite=Strict"))

http.server.HTTPServer(("127.0.0.1", int(os.environ["CAMSERVER_WEB_PORT"])), Handler).serve_forever()
"""
RUN = f"run:\n\t@exec {sys.executable} server.py\n"
GOOD = f"test:\n\ttrue\n{RUN}"


def fresh(tmp_path: Path, makefile: str, *arguments: str, broken: str = "") -> subprocess.CompletedProcess[str]:
    """Commits a project with this Makefile and runs the program in it, with uncommitted dirt beside."""
    project = tmp_path / "project"
    (project / "tools").mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy(ROOT / "tools" / name, project / "tools")
    (project / "server.py").write_text(SERVER.format(broken=broken))
    (project / "Makefile").write_text(makefile)
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *identity, *command], cwd=project, check=True, timeout=60)
    (project / "uncommitted").touch()
    (tmp_path / "clones").mkdir()
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\n")
    node.chmod(node.stat().st_mode | stat.S_IXUSR)
    carried_over = {
        "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "clones"),
        "CAMSERVER_LOG_LEVEL": "carried over",
        "NODE_PATH": "carried over",
    }
    return subprocess.run(
        [sys.executable, "tools/fresh_clone.py", *arguments],
        cwd=project, env={**os.environ, **carried_over}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_both_commands_run_in_a_clean_clone_without_node(tmp_path: Path) -> None:
    clean = '! command -v node && test ! -e uncommitted && test -z "$$CAMSERVER_LOG_LEVEL$$NODE_PATH"'
    done = fresh(tmp_path, f"test:\n\t{clean}\n{RUN.replace('@exec', f'@{clean} && exec')}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "make run: human seen by demo_street" in done.stdout
    assert "The two commands work" in done.stdout
    assert not list((tmp_path / "clones").iterdir())


def test_one_command_alone(tmp_path: Path) -> None:
    done = fresh(tmp_path, f"test:\n\tfalse\n{RUN}", "--only", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`make run` works." in done.stdout


@pytest.mark.parametrize(
    ("makefile", "complaint"),
    [
        (f"test:\n\tfalse\n{RUN}", "`make test` ended with 2"),
        ("test:\n\ttrue\nrun:\n\ttrue\n", "before it was ready"),
    ],
    ids=["failing-tests", "never-ready"],
)
def test_failures_are_told(tmp_path: Path, makefile: str, complaint: str) -> None:
    done = fresh(tmp_path, makefile)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not list((tmp_path / "clones").iterdir())


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ('answers["/"] = "not built"', "no page of the UI: not built"),
        ('del answers["/assets/index.js"]', "the page's script /assets/index.js answers 404"),
        ('(data / "setup-link.txt").unlink()', "there is no set-up link"),
        ('(data / "setup-link.txt").write_text("http://anywhere/setup#token=old")', "the set-up link is not right"),
        ("events.pop()", "no event that the detector found came in time; other events: camera_issue"),
        ('frame["boxes"].clear()', "shows nothing that was found"),
        ('del answers["/api/frames/3/picture?kind=infer"]', "the picture of the event 2 answers 404"),
    ],
    ids=["no-page", "no-script", "no-link", "wrong-link", "no-event", "no-boxes", "no-picture"],
)
def test_what_a_person_would_not_see_is_told(tmp_path: Path, broken: str, complaint: str) -> None:
    done = fresh(tmp_path, GOOD, "--event-within-sec", "0.1", broken=broken)
    assert done.returncode == 1
    assert complaint in done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "clones").iterdir())
