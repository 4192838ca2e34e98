"""camserver, and anything else, as real processes: started, watched until ready, killed, and none left
behind.

Every process gets a variable of its launcher in its environment, which all its descendants inherit. So
leftovers are found by it, whatever they did to their parents, groups and names.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp

from tests.rig.guarded import GUARD
from tests.rig.polling import TIMEOUT_SEC, poll_async, until

MARKER = "CAMSERVER_TEST_ID"  # the configuration knows that this is no setting
REPOSITORY = Path(__file__).parents[2]
REQUEST_TIMEOUT_SEC = 5
# camserver promises to stop within 10 s; the rest is for slow machines.
STOP_TIMEOUT_SEC = 40.0
OUTPUT_TAIL_CHARS = 4000

Settings = Mapping[str, Mapping[str, object]]  # section -> key -> value

# What listens where, by command.
LISTENING = {
    "up": ("web", "control", "streamer", "analyzer"),
    "server": ("web", "control"),
    "web": ("web",),
    "control": ("control",),
    "streamer": ("streamer",),
    "analyzer": ("analyzer",),
}


class Running:
    """One started process. Its output goes to files, so it is there also after kill -9."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: Path, stdin: str = "") -> None:
        self.name = name
        self.folder = folder
        self.stdout_path = folder / f"{name}.stdout"
        self.stderr_path = folder / f"{name}.stderr"
        # Not a pipe, which a process that does not read would fill; and not a named file, since it may be a password.
        with (
            tempfile.TemporaryFile() as given,
            self.stdout_path.open("ab") as out,
            self.stderr_path.open("ab") as err,
        ):
            given.write(stdin.encode())
            given.seek(0)
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), "exec", str(os.getpid()), "--", *argv],
                stdin=given,
                stdout=out,
                stderr=err,
                env=dict(env),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when a signal ended it."""
        return self._popen.poll()

    def send(self, signal_number: signal.Signals) -> None:
        self._popen.send_signal(signal_number)

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """kill -9 of this process alone, or an end as hard; its children are its own affair."""
        self._popen.send_signal(by)
        self._popen.wait()

    async def stop(self, timeout_sec: float = STOP_TIMEOUT_SEC) -> int:
        """SIGTERM, and waits; the exit code. TimeoutError when it does not end."""
        self._popen.terminate()
        return await self.wait(timeout_sec)

    async def wait(self, timeout_sec: float = TIMEOUT_SEC) -> int:
        async def ended() -> tuple[int] | None:
            code = self._popen.poll()
            return None if code is None else (code,)

        return (await poll_async(ended, f"end of {self.name} ({self.pid})", timeout_sec))[0]

    async def until_ready(self, url: str, timeout_sec: float = TIMEOUT_SEC) -> None:
        """Until `url` (a /readyz or /healthz) answers 200; fails at once when the process ends first."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SEC)
        async with aiohttp.ClientSession(timeout=timeout) as session:

            async def ready() -> bool:
                self._must_run(f"{url} answered")
                try:
                    async with session.get(url) as answer:
                        return answer.status == 200
                except (aiohttp.ClientError, TimeoutError):
                    return False

            try:
                await poll_async(ready, f"{self.name} ready at {url}", timeout_sec)
            except TimeoutError as error:
                raise TimeoutError(f"{error}; its output ends with:\n{self.output_tail()}") from error

    async def until_logged(self, event: str, timeout_sec: float = TIMEOUT_SEC, **fields: object) -> dict[str, object]:
        """The first log line with this event and these fields; fails at once when the process ends first."""

        def find() -> dict[str, object] | None:
            for line in self.log():
                if line.get("event") == event and fields.items() <= line.items():
                    return line
            return None

        async def probe() -> dict[str, object] | None:
            ended = self.exit_code is not None
            found = find()
            if found is None and ended:
                self._must_run(f"it logged {event!r}")
            return found

        return await poll_async(probe, f"log line {event!r} of {self.name}", timeout_sec)

    def log(self) -> list[dict[str, object]]:
        """The JSON lines on stderr so far; other lines are left out."""
        lines = []
        for text in self.stderr_path.read_text(errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                lines.append(line)
        return lines

    def output_tail(self) -> str:
        texts = [path.read_text(errors="replace") for path in (self.stdout_path, self.stderr_path)]
        return "\n".join(texts)[-OUTPUT_TAIL_CHARS:]

    def _must_run(self, before: str) -> None:
        if self.exit_code is not None:
            raise RuntimeError(
                f"{self.name} ended with {self.exit_code} before {before}; "
                f"its output ends with:\n{self.output_tail()}"
            )


class Launcher:
    """Starts processes in one folder and answers for all of them at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.test_id = uuid.uuid4().hex
        self._started: list[Running] = []

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None, *, stdin: str = ""
    ) -> Running:
        """Starts `argv` with an environment of its own: nothing of ours but PATH leaks in. It reads `stdin`."""
        base = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            # The sources beside these tests, whichever checkout the interpreter is linked to.
            "PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}",
            "PYTHONUNBUFFERED": "1",
            MARKER: self.test_id,
        }
        running = Running(f"{name}-{len(self._started)}", argv, {**base, **(env or {})}, self.folder, stdin)
        self._started.append(running)
        return running

    def camserver(
        self,
        *arguments: str,
        settings: Settings,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        within: Sequence[str] = (),
    ) -> Running:
        """`camserver ARGUMENTS` with a configuration file of its own, in the launcher's folder.

        `within` is a command that runs another one, such as `ip netns exec NAME`.

        Its ports must be chosen: two tests that run at the same time would meet on the usual ones.
        """
        for section in LISTENING.get(arguments[0], ()):
            # An analyzer that is somebody else's has an address instead.
            if not settings.get(section, {}).keys() & {"port", "url"}:
                raise ValueError(f"{arguments[0]} would listen on the usual port: give [{section}] a port of its own")
        config = self.folder / f"camserver-{len(self._started)}.toml"
        config.write_text(toml(settings))
        argv = [*within, sys.executable, "-m", "camserver", "--config", str(config), *arguments]
        return self.start(arguments[0], argv, env, stdin=stdin)

    def alive(self) -> list[int]:
        """Every live process of this launcher, children of children included."""
        return marked_processes(self.test_id)

    async def none_left(self, timeout_sec: float = STOP_TIMEOUT_SEC) -> None:
        """Waits until no process is left; AssertionError naming those that stay, which are killed."""
        try:
            await until(lambda: not self.alive(), "end of every process", timeout_sec)
        except TimeoutError:
            names = [f"{pid} ({_command_line(pid)})" for pid in self.alive()]
            await self._kill_all()
            raise AssertionError(f"processes left behind: {', '.join(names)}") from None

    async def close(self) -> None:
        """Stops what still runs, and fails when that leaves anything behind."""
        for running in self._started:
            if running.exit_code is None:
                running.send(signal.SIGTERM)
        stubborn = []
        for running in self._started:
            try:
                await running.wait(STOP_TIMEOUT_SEC)
            except TimeoutError:
                stubborn.append(running.name)
                running.kill()
        await self.none_left()
        if stubborn:
            raise AssertionError(f"did not stop within {STOP_TIMEOUT_SEC:g} s of SIGTERM: {', '.join(stubborn)}")

    async def _kill_all(self) -> None:
        for pid in self.alive():
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not self.alive(), "end of every killed process")


def marked_processes(test_id: str) -> list[int]:
    """The live processes whose environment holds this test's id; zombies have none and do not count."""
    wanted = f"{MARKER}={test_id}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
        if wanted in environment.split(b"\0"):
            found.append(int(folder.name))
    return sorted(found)


def toml(settings: Settings) -> str:
    """Sections of plain values as TOML, whose strings, numbers, booleans and lists are written as in JSON."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        # JSON leaves DEL as it is, which TOML forbids.
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
            for key, value in values.items()
        ]
    return "\n".join(lines) + "\n"


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "ended meanwhile"
