"""Runs child processes and keeps them running.

A child that ends is started again after a delay that grows, with jitter, and is forgotten once the child has
run well for a while. A child that ends with an exit code for which a restart can't help (`Exit.restart` is
false) ends the whole. SIGTERM and SIGINT are passed on and stop everything: whoever is not done after
`RestartPolicy.stop_grace_sec` is killed, so that all is over within 10 s; a second signal kills at once.
SIGHUP is passed on, and stops everything when it means that our terminal was closed.

Each child runs under `child_guard`, so none of them, nor what they started, outlives this process, however it
ends. This process is a child subreaper as well: should a guard itself be killed, what it guarded comes here
and is ended before a restart. stdout goes straight through; stderr is copied line by line, because the last
lines are what explains a crash. Scrubbing their lines is the children's own duty.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from camserver.base.child_guard import (
    KILL_ALL,
    PR_SET_CHILD_SUBREAPER,
    guarded,
    kill_children,
    prctl,
)
from camserver.base.clock import boot_time_ms
from camserver.base.exits import Exit
from camserver.base.log import get_logger

log = get_logger(__name__)

STDERR_FD = 2
LAST_LINES = 20
LAST_LINE_MAX_CHARS = 2_000
# A child that writes without line ends is copied in pieces of this size.
LINE_MAX_BYTES = 65_536
# Each sweep ends at least one process; more than this many is a fork bomb.
SWEEPS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    first_delay_sec: float = 0.5
    max_delay_sec: float = 30.0
    # A child that ran this long did not fail because of its start.
    healthy_after_sec: float = 60.0
    # From this many failures in a row a child counts as crash-looping and is reported as an error.
    crash_loop_after: int = 3
    # From the signal to the kill. With the kill itself, the whole must stay below 10 s.
    stop_grace_sec: float = 8.5
    second_wish_sec: float = 0.5  # two stop signals closer than this are one wish
    # From the kill to the kill of the guard, should even that hang.
    kill_grace_sec: float = 0.5


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run. `environ` is the whole environment of the child."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A child ended in a way that a restart can't mend."""

    child: str
    exit: Exit
    last_line: str


def restart_delay_sec(policy: RestartPolicy, failures: int, jitter: float) -> float:
    """The pause before the next start after `failures` (≥ 1) in a row; `jitter` is in 0..1.

    Half of it is certain and half is random, so that children that died together do not start together.
    """
    # 2**30 s is beyond any maximum; the bound keeps the power from growing without end.
    full = min(policy.max_delay_sec, policy.first_delay_sec * float(2 ** min(failures - 1, 30)))
    return full * (0.5 + 0.5 * jitter)


def exit_in_words(code: int) -> str:
    """`3` or `137` or `-9` → what it means. Guards and shells report signal n as 128 + n."""
    number = -code if code < 0 else code - 128
    if code < 0 or 128 < code <= 128 + signal.SIGRTMAX:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        hint = "; the system kills so when memory runs out" if number == signal.SIGKILL else ""
        return f"killed by {name} ({number}{hint})"
    known = Exit.of(code)
    return f"exit code {code}" if known is None else f"exit code {code}: {known.meaning}"


@dataclass(slots=True)
class _Running:
    """One run of one child."""

    process: subprocess.Popen[bytes]
    started_boot_ms: int
    last_lines: deque[str]
    pump: threading.Thread = field(repr=False)


class Supervisor:
    """Runs the given children until a signal or `stop()`; made for one `run()`."""

    def __init__(self, children: Sequence[ChildSpec], policy: RestartPolicy) -> None:
        self._children = children
        self._policy = policy
        self._running: dict[str, _Running] = {}
        self._stopping = asyncio.Event()
        self._asked_at = 0.0
        self._killing = asyncio.Event()
        self._gave_up: GaveUp | None = None

    async def run(self) -> GaveUp | None:
        """Returns when everything has ended: `None` when it was asked to, or which child can't go on."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            async with asyncio.TaskGroup() as group:
                ender = group.create_task(self._end_slow_ones())
                keepers = [group.create_task(self._keep(spec)) for spec in self._children]
                await asyncio.wait(keepers)
                ender.cancel()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)
        return self._gave_up

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP and not sys.stdin.isatty():
            self._pass_on(number)
        else:
            self.stop(number)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Asks every child to end; when asked again a moment later, kills them."""
        now = asyncio.get_running_loop().time()
        if self._stopping.is_set():
            # A terminal or a service manager may send one wish twice, to the process and to its group.
            if now - self._asked_at < self._policy.second_wish_sec:
                return
            log.warning("asked twice to stop: killing what is left", children=sorted(self._running))
            self._killing.set()
            return
        log.info("stopping", signal=signal.Signals(number).name, children=sorted(self._running))
        self._asked_at = now
        self._stopping.set()
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        for running in self._running.values():
            running.process.send_signal(number)

    async def _keep(self, spec: ChildSpec) -> None:
        """Starts the child again and again, until the whole is stopping or a restart can't help."""
        failures = 0
        while not self._stopping.is_set():
            running = self._start(spec)
            code = await self._wait(running)
            del self._running[spec.name]
            self._sweep()
            # Nobody who could write to the pipe is left; the bound is for a terminal that takes no output.
            await asyncio.to_thread(running.pump.join, 0.5)
            if self._stopping.is_set():
                log.info("child ended", child=spec.name, how=exit_in_words(code))
                return
            known = Exit.of(code)
            if known is not None and not known.restart:
                self._give_up(spec, known, running)
                return
            ran_sec = (boot_time_ms() - running.started_boot_ms) / 1000
            failures = 1 if ran_sec >= self._policy.healthy_after_sec else failures + 1
            delay_sec = restart_delay_sec(self._policy, failures, random.random())
            self._report(spec, code, running, failures, ran_sec, delay_sec)
            await _wait_at_most(self._stopping, delay_sec)

    def _start(self, spec: ChildSpec) -> _Running:
        process = subprocess.Popen(
            guarded(spec.argv),
            env=dict(spec.environ),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # A group of its own: Ctrl-C in a terminal comes here only, and is passed on once.
            process_group=0,
        )
        assert process.stderr is not None
        last_lines: deque[str] = deque(maxlen=LAST_LINES)
        # A thread and not the loop: a terminal that does not take output must not stop the supervision.
        pump = threading.Thread(
            target=_copy_lines, args=(process.stderr, last_lines), name=f"stderr-{spec.name}", daemon=True
        )
        pump.start()
        running = _Running(process, boot_time_ms(), last_lines, pump)
        self._running[spec.name] = running
        log.info("child started", child=spec.name, pid=process.pid)
        return running

    async def _wait(self, running: _Running) -> int:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        pidfd = os.pidfd_open(running.process.pid)
        loop.add_reader(pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
        return running.process.wait()

    async def _end_slow_ones(self) -> None:
        """Once the stop was asked for: waits out the grace, then kills. Cancelled when nobody is left."""
        await self._stopping.wait()
        await _wait_at_most(self._killing, self._policy.stop_grace_sec)
        log.warning("killing children that did not end in time", children=sorted(self._running))
        self._pass_on(KILL_ALL)
        await asyncio.sleep(self._policy.kill_grace_sec)
        self._pass_on(signal.SIGKILL)

    def _sweep(self) -> None:
        """Ends what came to this process from a guard that was killed.

        It blocks the loop on purpose: a guard started meanwhile would be taken for a stray.
        """
        guards = frozenset(running.process.pid for running in self._running.values())
        for _ in range(SWEEPS_MAX):
            if not kill_children(spare=guards):
                return
        log.error("orphaned processes keep appearing", next_step="look for a program that forks without end")

    def _give_up(self, spec: ChildSpec, code: Exit, running: _Running) -> None:
        last_line = running.last_lines[-1] if running.last_lines else ""
        self._gave_up = GaveUp(spec.name, code, last_line)
        log.error("child can't go on; a restart would not help", child=spec.name, how=exit_in_words(code))
        if not self._stopping.is_set():
            self.stop()

    def _report(
        self, spec: ChildSpec, code: int, running: _Running, failures: int, ran_sec: float, delay_sec: float
    ) -> None:
        facts = {
            "child": spec.name,
            "how": exit_in_words(code),
            "ran_sec": round(ran_sec, 1),
            "restart_in_sec": round(delay_sec, 1),
        }
        if failures < self._policy.crash_loop_after:
            log.warning("child ended; it is started again", **facts)
        else:
            log.error("child keeps failing", failures=failures, last_lines=list(running.last_lines), **facts)


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _copy_lines(source: IO[bytes], last_lines: deque[str]) -> None:
    """Copies a child's stderr to ours and remembers its last lines; runs until nobody can write any more."""
    writable = True
    with source:
        while line := source.readline(LINE_MAX_BYTES):
            text = line.decode(errors="replace").rstrip()
            if text:
                last_lines.append(text[:LAST_LINE_MAX_CHARS])
            # Without our stderr the lines are still read, or the child would block on a full pipe.
            writable = writable and _write_all(STDERR_FD, line)


def _write_all(fd: int, data: bytes) -> bool:
    """Unbuffered, so that a line of a child and a line of our own log never mix. False when `fd` is gone."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return False
    return True
