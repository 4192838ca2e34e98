import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.exits import Exit
from camserver.base.supervise import RestartPolicy, exit_in_words, restart_delay_sec
from tests.rig.polling import until
from tests.rig.processes import Launcher, Running

# Restarts at once, and a patience no test should ever use up.
QUICK = {"first_delay_sec": 0.01, "max_delay_sec": 0.02, "stop_grace_sec": 300.0}

# Children write what happens to them into files of the folder they run in. They end by themselves, late, so that a
# broken supervisor can't leave them behind for good.
PRELUDE = """
import os, signal, subprocess, sys, time
def say(name, text):
    with open(name, "a") as file:
        file.write(f"{text}\\n")
def on(number, act):
    signal.signal(number, lambda *_: act())
def idle():
    for _ in range(6000):
        time.sleep(0.1)
"""
STEADY = PRELUDE + 'say("steady", os.getpid()); idle()'
STUBBORN = PRELUDE + 'signal.signal(signal.SIGTERM, signal.SIG_IGN); say("stubborn", os.getpid()); idle()'
# A child with a child that ignores signals, and a daemon: in a session of its own, its parent gone.
FAMILY = (
    PRELUDE
    + """
grandchild = PRELUDE + 'signal.signal(signal.SIGTERM, signal.SIG_IGN); say("family", "grandchild"); idle()'
subprocess.Popen([sys.executable, "-c", grandchild])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        say("family", "daemon")
        idle()
    os._exit(0)
os.wait()
say("family", "child")
idle()
"""
).replace("PRELUDE +", repr(PRELUDE) + " +")

Start = Callable[..., Running]


@pytest.fixture
def start(launcher: Launcher) -> Start:
    def start(policy: dict[str, float] | None = None, **children: str) -> Running:
        wanted = json.dumps({"policy": {**QUICK, **(policy or {})}, "children": children})
        return launcher.start("supervised", [sys.executable, "-m", "tests.base.supervised", wanted])

    return start


def said(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


async def until_said(folder: Path, name: str, count: int) -> list[str]:
    await until(lambda: len(said(folder, name)) >= count, f"{count} lines in {name}")
    return said(folder, name)


async def test_a_child_that_crashes_is_started_again(start: Start, tmp_path: Path) -> None:
    running = start(crashing=PRELUDE + 'say("crashing", os.getpid()); sys.exit(1)', steady=STEADY)
    pids = await until_said(tmp_path, "crashing", 4)
    assert len(set(pids)) == len(pids)
    assert await running.stop() == 0
    assert len(said(tmp_path, "steady")) == 1


async def test_a_crash_loop_is_reported_with_last_lines_and_cause(start: Start) -> None:
    running = start(crashing=PRELUDE + 'print("no such camera", file=sys.stderr); os.kill(os.getpid(), 11)')
    report = await running.until_logged("child keeps failing", child="crashing")
    assert report["level"] == "error"
    assert report["last_lines"] == ["no such camera"]
    assert "SIGSEGV" in str(report["how"])
    # The lines pass through as they are, too.
    assert "no such camera" in running.stderr_path.read_text().splitlines()


async def test_a_child_that_ran_well_is_not_in_a_crash_loop(start: Start, tmp_path: Path) -> None:
    running = start({"healthy_after_sec": 0.0}, ending=PRELUDE + 'say("ending", 1); sys.exit(1)')
    await until_said(tmp_path, "ending", 6)
    assert not [line for line in running.log() if line["event"] == "child keeps failing"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_stop_signals_are_passed_on_and_the_children_may_finish(
    start: Start, launcher: Launcher, tmp_path: Path, number: signal.Signals
) -> None:
    source = PRELUDE + f'on({int(number)}, lambda: (say("end", "tidy"), sys.exit(0))); say("up", 1); idle()'
    running = start(one=source, two=source)
    await until_said(tmp_path, "up", 2)
    running.send(number)
    assert await running.wait() == 0
    assert said(tmp_path, "end") == ["tidy", "tidy"]
    await launcher.none_left()


async def test_sighup_is_passed_on_and_stops_nothing(start: Start, tmp_path: Path) -> None:
    running = start(one=PRELUDE + 'on(signal.SIGHUP, lambda: say("hup", "again")); say("up", 1); idle()')
    await until_said(tmp_path, "up", 1)
    running.send(signal.SIGHUP)
    await until_said(tmp_path, "hup", 1)
    assert running.exit_code is None


async def test_a_child_that_ignores_the_stop_is_killed_after_the_grace(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    running = start({"stop_grace_sec": 0.1}, stubborn=STUBBORN)
    await until_said(tmp_path, "stubborn", 1)
    assert await running.stop() == 0
    await launcher.none_left()
    assert [line for line in running.log() if line["event"] == "killing children that did not end in time"]


async def test_a_second_stop_signal_does_not_wait_for_the_grace(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    running = start({"second_wish_sec": 0.0, "stop_grace_sec": 600.0}, stubborn=STUBBORN)
    await until_said(tmp_path, "stubborn", 1)
    running.send(signal.SIGTERM)
    await running.until_logged("stopping")
    running.send(signal.SIGTERM)
    assert await running.wait() == 0
    await launcher.none_left()


async def test_one_wish_sent_twice_is_one_wish(start: Start, launcher: Launcher, tmp_path: Path) -> None:
    """A service manager may signal the process and its group; the children still get their grace."""
    source = PRELUDE + 'on(signal.SIGTERM, lambda: (say("end", "tidy"), sys.exit(0))); say("up", 1); idle()'
    running = start({"second_wish_sec": 600.0}, one=source)
    await until_said(tmp_path, "up", 1)
    running.send(signal.SIGTERM)
    running.send(signal.SIGTERM)
    assert await running.wait() == 0
    assert said(tmp_path, "end") == ["tidy"]
    assert not [line for line in running.log() if "killing" in str(line["event"])]
    await launcher.none_left()


async def test_a_stop_while_a_restart_is_awaited_does_not_wait_for_it(start: Start, launcher: Launcher) -> None:
    running = start({"first_delay_sec": 300.0, "max_delay_sec": 300.0}, crashing="raise SystemExit(1)")
    await running.until_logged("child ended; it is started again")
    assert await running.stop() == 0
    await launcher.none_left()


async def test_kill_9_of_the_supervisor_leaves_no_process_at_any_depth(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    running = start(family=FAMILY, stubborn=STUBBORN)
    await until_said(tmp_path, "family", 3)
    await until_said(tmp_path, "stubborn", 1)
    running.kill()
    await launcher.none_left()


async def test_kill_9_of_the_supervisor_at_any_moment_of_a_start(launcher: Launcher, start: Start) -> None:
    """The child dies at once, so the supervisor is always somewhere in the middle of a start."""
    for _ in range(10):
        running = start({"first_delay_sec": 0.0}, crashing="raise SystemExit(1)")
        await running.until_logged("child started")
        running.kill()
        await launcher.none_left()


async def test_kill_9_of_a_guard_takes_its_child_along_and_starts_anew(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    running = start(family=FAMILY)
    await until_said(tmp_path, "family", 3)
    before = set(launcher.alive())
    guard = (await running.until_logged("child started", child="family"))["pid"]
    assert isinstance(guard, int)
    os.kill(guard, signal.SIGKILL)
    await until_said(tmp_path, "family", 6)
    assert set(launcher.alive()) & before == {running.pid}


async def test_what_a_child_left_behind_is_gone_before_it_is_started_again(start: Start, tmp_path: Path) -> None:
    source = (
        PRELUDE
        + """
if os.path.exists("left"):
    left = int(open("left").read())
    say("found", os.path.exists(f"/proc/{left}"))
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open("left", "w").write(str(left.pid))
os._exit(1)
"""
    )
    start(leaving=source)
    assert set(await until_said(tmp_path, "found", 3)) == {"False"}


async def test_an_exit_code_that_no_restart_mends_ends_the_whole(
    start: Start, launcher: Launcher, tmp_path: Path
) -> None:
    final = PRELUDE + 'print("error: port 8080 is in use", file=sys.stderr); say("final", 1); sys.exit(5)'
    running = start(final=final, steady=STEADY)
    assert await running.wait() == 0
    await launcher.none_left()
    assert json.loads(running.stdout_path.read_text()) == {
        "child": "final",
        "exit": 5,
        "last_line": "error: port 8080 is in use",
    }
    assert said(tmp_path, "final") == ["1"]


async def test_a_child_that_writes_without_end_does_not_block_on_its_stderr(start: Start, tmp_path: Path) -> None:
    source = PRELUDE + 'sys.stderr.write("x" * 5_000_000); sys.stderr.flush(); say("written", 1); idle()'
    start(loud=source)
    await until_said(tmp_path, "written", 1)


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1))
def test_the_delay_grows_and_stays_within_its_bounds(failures: int, jitter: float) -> None:
    policy = RestartPolicy()
    delay = restart_delay_sec(policy, failures, jitter)
    assert policy.first_delay_sec / 2 <= delay <= policy.max_delay_sec
    assert delay <= restart_delay_sec(policy, failures + 1, jitter)


def test_the_delay_is_spread_over_half_of_itself() -> None:
    policy = RestartPolicy(first_delay_sec=1, max_delay_sec=30)
    assert [restart_delay_sec(policy, n, 1.0) for n in (1, 2, 3, 6, 7)] == [1, 2, 4, 30, 30]
    assert [restart_delay_sec(policy, n, 0.0) for n in (1, 2, 3)] == [0.5, 1, 2]


def test_the_defaults_keep_the_promise_of_ten_seconds() -> None:
    policy = RestartPolicy()
    assert policy.stop_grace_sec + policy.kill_grace_sec < 10


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0: Done"),
        (4, "exit code 4: The configuration is wrong"),
        (77, "exit code 77"),
        (-9, "killed by SIGKILL (9; the system kills so when memory runs out)"),
        (137, "killed by SIGKILL (9; the system kills so when memory runs out)"),
        (139, "killed by SIGSEGV (11)"),
        (-45, "killed by signal 45 (45)"),
        (255, "exit code 255"),
    ],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert exit_in_words(code).startswith(words)


def test_only_codes_of_the_table_can_be_final() -> None:
    assert {code for code in Exit if not code.restart} == {2, 3, 4, 5, 6, 7, 8, 13, 14, 15}
