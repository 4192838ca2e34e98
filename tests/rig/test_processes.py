import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rig.polling import poll, until
from tests.rig.ports import free_port
from tests.rig.processes import MARKER, REPOSITORY, Launcher, marked_processes, toml

LOGS = "import sys; print('{\"event\": \"up\", \"port\": 7}', 'no json', sep='\\n', file=sys.stderr); {rest}"
WAITS = "import signal; signal.pause()"
# A child that leaves its parent's group and outlives it.
LEAVES_A_CHILD = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
"""
SERVES = """
import http.server, sys
class Ready(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Ready.asked += 1
        self.send_response(200 if Ready.asked > 2 else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
"""
HOLDER = """
import sys
from pathlib import Path
from tests.rig.processes import Launcher
launcher = Launcher(Path(sys.argv[1]))
launcher.start("waits", [sys.executable, "-c", "import signal; signal.pause()"])
print(launcher.test_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Launcher]:
    """A launcher that the test closes itself; whatever a failing test leaves is killed."""
    launcher = Launcher(tmp_path)
    yield launcher
    for pid in launcher.alive():
        os.kill(pid, signal.SIGKILL)


async def test_output_and_log_lines_are_read(launcher: Launcher) -> None:
    running = launcher.start("logs", [sys.executable, "-c", LOGS.replace("{rest}", WAITS)])
    assert await running.until_logged("up", port=7) == {"event": "up", "port": 7}
    assert "no json" in running.output_tail()
    assert running.exit_code is None
    assert await running.stop() == -signal.SIGTERM


@pytest.mark.parametrize("stdin", ["", "pass wörd\n"])
async def test_standard_input_is_what_was_given_and_then_ends(launcher: Launcher, stdin: str) -> None:
    running = launcher.start(
        "reads", [sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], stdin=stdin
    )
    assert await running.wait() == 0
    assert running.stdout_path.read_text() == f"{stdin!r}\n"


@pytest.mark.parametrize(
    ("command", "missing"), [("up", "analyzer"), ("up", "web"), ("server", "control"), ("analyzer", "analyzer")]
)
def test_nothing_is_started_on_the_usual_ports(tmp_path: Path, command: str, missing: str) -> None:
    settings = {section: {"port": 0} for section in ("web", "control", "streamer", "analyzer") if section != missing}
    with pytest.raises(ValueError, match=rf"\[{missing}\]"):
        Launcher(tmp_path).camserver(command, settings=settings)


async def test_waiting_for_a_log_line_ends_with_the_process(launcher: Launcher) -> None:
    running = launcher.start("logs", [sys.executable, "-c", LOGS.replace("{rest}", "sys.exit(3)")])
    assert await running.until_logged("up") == {"event": "up", "port": 7}
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3 before it logged 'down'.*no json"):
        await running.until_logged("down")


async def test_ready_means_200(launcher: Launcher) -> None:
    port = free_port()
    running = launcher.start("serves", [sys.executable, "-c", SERVES, str(port)])
    await running.until_ready(f"http://127.0.0.1:{port}/readyz")
    assert running.stderr_path.read_text().count("503") == 2


async def test_waiting_for_readiness_ends_with_the_process(launcher: Launcher) -> None:
    running = launcher.start("fails", [sys.executable, "-c", "raise SystemExit('no luck')"])
    with pytest.raises(RuntimeError, match=r"(?s)ended with 1 before .*no luck"):
        await running.until_ready(f"http://127.0.0.1:{free_port()}/readyz")


async def test_the_environment_is_the_launchers_own(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:////of/somebody/else.db")
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    running = launcher.start("shows", [sys.executable, "-c", show], {"EXTRA": "1"})
    assert await running.wait() == 0
    seen = json.loads(running.stdout_path.read_text())
    assert seen["EXTRA"] == "1"
    assert seen[MARKER] == launcher.test_id
    assert "DATABASE_URL" not in seen


async def test_kill_is_of_one_process(launcher: Launcher) -> None:
    first = launcher.start("waits", [sys.executable, "-c", WAITS])
    second = launcher.start("waits", [sys.executable, "-c", WAITS])
    first.kill()
    assert first.exit_code == -signal.SIGKILL
    await until(lambda: launcher.alive() == [second.pid], "one process being left")


async def test_what_is_left_behind_is_named_and_killed(own: Launcher) -> None:
    running = own.start("leaves", [sys.executable, "-c", LEAVES_A_CHILD])
    assert await running.wait() == 0
    (child,) = own.alive()
    with pytest.raises(AssertionError, match=rf"left behind: {child} .*signal\.pause"):
        await own.none_left(timeout_sec=0)
    assert own.alive() == []


async def test_closing_stops_everything(own: Launcher) -> None:
    running = [own.start("waits", [sys.executable, "-c", WAITS]) for _ in range(3)]
    await until(lambda: len(own.alive()) == 3, "three processes")
    await own.close()
    assert [process.exit_code for process in running] == [-signal.SIGTERM] * 3


def test_processes_die_with_killed_tests(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        test_id = holder.stdout.readline().decode().strip()
        poll(lambda: marked_processes(test_id), "the started process")
    finally:
        holder.kill()
        holder.communicate()
    poll(lambda: not marked_processes(test_id), "end of the started process")


values = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(st.characters(codec="utf-8"), max_size=20))


@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), values)))
def test_settings_come_back_from_their_toml(settings: dict[str, dict[str, object]]) -> None:
    assert tomllib.loads(toml(settings)) == settings
