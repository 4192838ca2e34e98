import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from camserver.base import child_guard
from camserver.base.child_guard import NOT_FOUND, NOT_RUNNABLE, children_of, guarded
from tests.rig.polling import poll

TIMEOUT_SEC = 60


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(guarded(argv), capture_output=True, text=True, timeout=TIMEOUT_SEC, check=False)


def test_exit_code_and_output_are_the_commands_own() -> None:
    done = run("sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.returncode, done.stdout, done.stderr) == (42, "out\n", "err\n")


def test_a_signal_becomes_128_and_its_number() -> None:
    assert run("sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_a_command_that_is_not_there_or_no_program_is_named(tmp_path: Path) -> None:
    missing = run(str(tmp_path / "missing"))
    assert missing.returncode == NOT_FOUND
    assert str(tmp_path / "missing") in missing.stderr
    (tmp_path / "plain").write_text("text")
    assert run(str(tmp_path / "plain")).returncode == NOT_RUNNABLE


def test_the_command_is_not_run_when_the_parent_is_gone_already(tmp_path: Path) -> None:
    """Our pid is not the guard's parent's pid, as it is when the parent died before the guard looked."""
    trace = tmp_path / "ran"
    argv = [sys.executable, "-I", "-S", child_guard.__file__, "1", "--", "touch", str(trace)]
    assert subprocess.run(argv, timeout=TIMEOUT_SEC, check=False).returncode == 0
    assert not trace.exists()


def test_kill_9_of_the_guard_alone_takes_the_command_along() -> None:
    argv = guarded(["sh", "-c", "echo $$; exec sleep 600"])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as guard:
        assert guard.stdout is not None
        command = int(guard.stdout.readline())
        guard.kill()
    # A zombie that its new parent has not reaped yet has no command line.
    poll(lambda: not _command_line(command), f"end of {command}")


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(guarded(["sh", "-c", script]), stdout=subprocess.PIPE, text=True) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == "ready\n"
        guard.send_signal(number)
        assert guard.stdout.readline() == f"got {name}\n"
        assert guard.wait(TIMEOUT_SEC) == 7


def test_the_command_gets_the_systems_own_signal_behaviour() -> None:
    """Python ignores SIGPIPE, and what is ignored stays so over exec; a pipeline would never end."""
    status = run("cat", "/proc/self/status").stdout
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk")))
    assert int(masks["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert int(masks["SigBlk"], 16) == 0


def test_children_of_sees_names_with_brackets(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "600"]) as child:
        try:
            assert child.pid in children_of(os.getpid())
        finally:
            child.kill()
    assert child.pid not in children_of(os.getpid())
