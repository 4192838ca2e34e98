import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from click.testing import CliRunner, Result

from camserver import __version__, cli, parts, processes
from camserver.base.errors import StoreUnavailable
from camserver.base.exits import Exit
from camserver.base.secrets import MASK, Secret
from camserver.base.supervise import GaveUp
from camserver.clients.local_server import LocalServer
from camserver.commands import root
from camserver.config import Settings
from tests.commands_page import page
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.rig.processes import REPOSITORY, Launcher

TIMEOUT_SEC = 60


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the machine or of the repository is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(root, "SYSTEM_CONFIG", tmp_path / "etc" / "camserver.toml")
    for name in [name for name in os.environ if name.startswith("CAMSERVER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # messages are in the terminal's language


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.main, list(arguments), input=stdin)


def commands(
    group: click.Group = cli.main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())


def test_the_commands_are_these() -> None:
    assert {" ".join(path) for path in ALL} == {
        *("up", "server", "worker", "control", "dispatcher", "web", "streamer", "analyzer"),
        *("version", "setup-link", "simulate"),
        *("config", "config show", "config check", "db", "db upgrade", "db check", "db status"),
        *("db copy", "backup", "restore", "check", "doctor", "install"),
        *("camera", "camera add", "camera list", "camera remove", "camera probe", "camera test"),
        *("camera change", "camera show", "camera picture", "camera discover", "camera rediscover"),
        *("camera import", "gate", "gate explain"),
        *("camera hints", "camera presets", "analyze", "conformance"),
        *("audit", "audit list", "audit verify", "audit export"),
        *(
            "models",
            "models list",
            "models check",
            "models install",
            "models use",
            "models remove",
            "models update",
            "models pack",
        ),
        *("case", "case create", "case list", "case add", "case note", "case hold", "case close", "case export"),
        *("case show", "case remove", "event", "event list", "incident", "incident list", "incident review"),
        *("case verify", "case key", "retention", "retention show", "retention run"),
        *("llm", "llm status", "llm test", "summary", "summary show", "statistics"),
        *("score", "scoring", "scoring list", "scoring show", "scoring pause", "scoring resume", "scoring cancel"),
        *("scoring retry", "scoring run", "job", "job list", "job requeue", "job status"),
        *("notify", "notify test", "notify preview", "notify rules"),
        *("notify snooze", "notify snoozes", "notify unsnooze", "receiver change"),
        *("rule", "rule list", "rule add", "rule change", "rule remove", "rule test"),
        *("receiver", "receiver add", "receiver list", "receiver test", "receiver enable", "receiver disable"),
        *("receiver remove", "delivery", "delivery list", "delivery requeue"),
        *("credentials", "credentials rotate"),
        *("worker run", "worker token", "worker enroll", "worker revoke"),
        *("worker list", "worker drain", "worker undrain", "worker quota", "camera move", "camera pin"),
        *("camera unpin", "why", "flag", "flag list", "flag set", "flag clear"),
        *("lease", "lease list", "lease reclaim", "search"),
        *("user", "user list", "user add", "user change", "user reset", "user remove"),
        *("token", "token list", "token add", "token revoke"),
        *("share", "share list", "share add", "share revoke"),
        *("site", "site list", "site add", "site change", "site remove"),
        *("tenant", "tenant list", "tenant add", "tenant change", "tenant reset", "tenant export"),
        *("tenant erase", "db rls"),
        *("vocabulary", "vocabulary list", "vocabulary show", "vocabulary add", "vocabulary use"),
    }


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_a_purpose_and_an_example_that_names_it(path: tuple[str, ...]) -> None:
    command = ALL[path]
    shown = run(*path, "--help")
    assert shown.exit_code == 0
    # Cut short in the list of commands, a purpose says nothing.
    purpose = command.get_short_help_str(limit=200)
    assert purpose.endswith(".")
    assert len(purpose) <= 60
    if not isinstance(command, click.Group):
        assert re.search(rf"Examples?:\n.*camserver .*{' '.join(path)}", shown.output)


@pytest.mark.parametrize("path", [path for path in ALL if not isinstance(ALL[path], click.Group)], ids=" ".join)
def test_the_examples_are_commands_that_exist(path: tuple[str, ...]) -> None:
    text = ALL[path].help or ""
    examples = re.findall(r"^ +(?:[A-Z_]+=\S+ )?camserver (.+)$", text, re.MULTILINE)
    assert examples
    for example in examples:
        words = [word for word in example.partition(" <")[0].split() if not word.startswith("-")]
        options = re.findall(r"--[a-z-]+", example)
        params = [one for command in (cli.main, ALL[path]) for one in command.params]
        known = {name for one in params for name in (*one.opts, *one.secondary_opts)}
        assert set(options) <= known
        assert " ".join(path) in " ".join(words)


def test_the_page_of_commands_is_what_they_say_themselves() -> None:
    written = REPOSITORY / "docs" / "ref" / "commands.md"
    assert written.read_text() == page(), "run: python -m tests.commands_page > docs/ref/commands.md"


def test_help_lists_every_exit_code() -> None:
    shown = run("--help").output
    for code in Exit:
        assert re.search(rf"^ +{code.value}  {re.escape(code.meaning)}$", shown, re.MULTILINE)


def test_help_loads_neither_services_nor_drivers() -> None:
    source = (
        "import sys; from camserver.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('aiohttp', 'fastapi', 'uvicorn', 'sqlalchemy', 'pydantic', 'structlog', 'camserver.store')\n"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=TIMEOUT_SEC, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_version() -> None:
    assert run("version").output.startswith(f"camserver {__version__} (Python 3.")
    assert json.loads(run("version", "--json").output)["camserver"] == __version__


def test_python_m_camserver_is_the_command() -> None:
    argv = [sys.executable, "-m", "camserver", "version", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_SEC, check=True)
    assert json.loads(done.stdout)["camserver"] == __version__


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    script = f"{sys.executable} -m camserver config show | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=TIMEOUT_SEC, check=True)
    assert done.stdout.startswith("server.data_dir")
    assert done.stderr == ""


def test_wrong_usage_is_2() -> None:
    assert run("no-such-command").exit_code == Exit.USAGE
    assert run("up", "--no-such-option").exit_code == Exit.USAGE


# -- where the configuration comes from


def test_the_configuration_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def used() -> str:
        return run("config", "check").output

    assert "no file" in used()
    root.SYSTEM_CONFIG.parent.mkdir()
    root.SYSTEM_CONFIG.write_text("")
    assert str(root.SYSTEM_CONFIG) in used()
    (tmp_path / "named.toml").write_text("")
    monkeypatch.setenv("CAMSERVER_CONFIG", str(tmp_path / "named.toml"))
    assert "named.toml" in used()
    (tmp_path / "camserver.toml").write_text("")
    assert "(camserver.toml)" in used()
    (tmp_path / "given.toml").write_text("")
    assert "given.toml" in run("--config", "given.toml", "config", "check").output


def test_a_file_that_was_named_must_exist() -> None:
    result = run("--config", "missing.toml", "config", "check")
    assert result.exit_code == Exit.BAD_SETTINGS
    assert "missing.toml" in result.stderr


def test_bad_settings_are_one_error_and_json_if_asked() -> None:
    Path("camserver.toml").write_text("[web]\nprot = 1\n")
    result = run("config", "check")
    assert result.exit_code == Exit.BAD_SETTINGS
    assert result.stderr.startswith("error: ")
    assert "web.prot" in result.stderr
    as_json = run("config", "show", "--json")
    assert as_json.exit_code == Exit.BAD_SETTINGS
    told = json.loads(as_json.stdout)
    assert (told["error"], told["exit_code"]) == ("bad_settings", 4)
    assert "web.prot" in told["message"]


def test_config_show_masks_and_names_sources() -> None:
    Path("camserver.toml").write_text('[store]\nurl = "postgresql://u:very-secret-pw@db/cam"\n[web]\nport = 9999\n')
    text = run("config", "show").output
    assert "very-secret-pw" not in text
    assert MASK in text
    assert re.search(r"^web\.port = 9999  \(.*camserver\.toml", text, re.MULTILINE)
    assert "very-secret-pw" not in run("config", "show", "--json").output


def test_looking_at_settings_makes_no_files(tmp_path: Path) -> None:
    run("config", "show")
    run("config", "check")
    run("db", "status")
    assert list(tmp_path.iterdir()) == []


def test_the_data_folder_of_the_command_line_wins(tmp_path: Path) -> None:
    shown = json.loads(run("--data-dir", str(tmp_path / "d"), "config", "show", "--json").output)
    assert [one["value"] for one in shown if one["key"] == "data_dir"] == [str(tmp_path / "d")]


# -- errors


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    monkeypatch.setattr("camserver.config.describe", fail)


def test_our_error_is_one_line_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, StoreUnavailable("the database is away; start it"))
    result = run("config", "show")
    assert result.exit_code == Exit.STORE_AWAY
    assert result.stderr == "error: the database is away; start it\n"


def test_an_unexpected_error_is_one_line_and_a_private_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Secret("traceback-secret")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing(monkeypatch, ZeroDivisionError("with traceback-secret"))
    result = run("config", "show")
    assert result.exit_code == Exit.UNEXPECTED
    (line,) = result.stderr.splitlines()
    assert "ZeroDivisionError" in line
    (file,) = tmp_path.glob("camserver-error-*.log")
    assert str(file) in line
    assert "Traceback" in file.read_text()
    assert "traceback-secret" not in line + file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


# -- database


def test_a_database_is_upgraded_and_then_fine() -> None:
    assert run("db", "check").exit_code == Exit.CHECK_FAILED
    assert run("db", "upgrade").exit_code == 0
    assert run("db", "check").exit_code == 0
    status = json.loads(run("db", "status", "--json").output)
    assert status["up_to_date"]
    assert status["current"] == status["head"]


# -- the running server


class Asked:
    """Stands for the running server's answers; `LocalServer` itself has tests of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self.addresses: list[str] = []
        self.answer: dict[str, Any] = {}
        asked = self

        async def call(self: LocalServer, method: str, path: str, body: Any = None) -> dict[str, Any]:
            asked.addresses.append(self._address)
            asked.calls.append((method, path, body))
            return asked.answer

        async def is_there(self: LocalServer) -> bool:
            return True

        monkeypatch.setattr(LocalServer, "_call", call)
        monkeypatch.setattr(LocalServer, "is_there", is_there)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_camera_add_never_takes_a_password_as_an_argument(asked: Asked) -> None:
    options = ["--user", "u", "--password-stdin", "--interval-sec", "5"]
    result = run("camera", "add", "yard", "rtsp://192.0.2.1/a", *options, stdin="pass word\n")
    assert result.output == "Added yard.\n"
    source = {"url": "rtsp://192.0.2.1/a", "user": "u", "password": "pass word"}
    wanted = {"camera_id": "yard", "name": "yard", "source": source, "site": None, "polling_interval_sec": 5.0}
    assert asked.calls == [("POST", "/api/cameras", wanted)]


def test_camera_list(asked: Asked) -> None:
    asked.answer = {"cameras": [{"camera_id": "a", "name": "入口"}, {"camera_id": "b"}]}
    lines = run("camera", "list").output.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", "a", "b"]
    assert json.loads(run("camera", "list", "--json").output) == asked.answer["cameras"]


def test_camera_remove_asks_first(asked: Asked) -> None:
    assert run("camera", "remove", "a", stdin="n\n").exit_code != 0
    assert asked.calls == []
    assert run("camera", "remove", "a", "--yes").exit_code == 0
    assert asked.calls == [("DELETE", "/api/cameras/a", None)]


def test_setup_link_prints_the_link_alone(asked: Asked) -> None:
    asked.answer = {"url": "http://127.0.0.1:8080/setup?t=x", "expires_at": 1}
    assert run("setup-link").output == "http://127.0.0.1:8080/setup?t=x\n"


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "http://127.0.0.1:9000"), ("::", "http://[::1]:9000"), ("192.0.2.7", "http://192.0.2.7:9000")],
)
def test_the_server_is_reached_where_web_listens(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, host: str, address: str
) -> None:
    monkeypatch.setenv("CAMSERVER_WEB_HOST", host)
    monkeypatch.setenv("CAMSERVER_WEB_PORT", "9000")
    asked.answer = {"cameras": []}
    run("camera", "list")
    assert asked.addresses == [address]


def test_tools_work_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMSERVER_WEB_PORT", str(free_port()))
    assert run("camera", "add", "yard", "test://still").output == "Added yard.\n"
    assert [camera["camera_id"] for camera in json.loads(run("camera", "list", "--json").stdout)] == ["yard"]
    assert "/setup#token=" in run("setup-link").stdout
    assert run("db", "check").output == "The database is fine.\n"


def test_a_tool_beside_an_owner_that_does_not_answer_says_whose_the_data_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMSERVER_WEB_PORT", str(free_port()))
    assert run("camera", "list").exit_code == 0
    monkeypatch.setattr("camserver.store.sqlite.LOCK_WAIT_SEC", 0.0)
    with Path("data/camserver.db.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = run("camera", "list", "--json")
    assert result.exit_code == Exit.DATA_OWNED
    assert "another camserver" in json.loads(result.stdout)["message"]


# -- processes


@pytest.mark.parametrize("name", ["server", "worker", "control", "dispatcher", "web", "analyzer"])
def test_a_service_command_runs_its_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, tuple[str, ...]]] = []

    def serve(process: str, names: tuple[str, ...], settings: Settings) -> None:
        served.append((process, names))

    monkeypatch.setattr(parts, "serve", serve)
    assert run(name).exit_code == 0
    assert served == [(name, tuple(parts.PROCESSES.get(name, (name,))))]


def test_up_ends_with_the_code_of_the_child_that_can_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("camserver.toml").write_text("")
    passed: list[list[str]] = []

    def up(settings: Settings, options: list[str], greet: Callable[[], None], demo: bool) -> GaveUp:
        passed.append(options)
        assert not demo
        return GaveUp("server", Exit.PORT_UNUSABLE, "error: port 8080 is in use")

    monkeypatch.setattr(processes, "up", up)
    result = run("--data-dir", "d", "up")
    assert result.exit_code == Exit.PORT_UNUSABLE
    assert "server can't go on: error: port 8080 is in use" in result.stderr
    assert passed == [["--config", str(Path("camserver.toml").absolute()), "--data-dir", str(Path("d").absolute())]]


async def test_up_with_a_port_in_use_ends_with_its_code(launcher: Launcher, tmp_path: Path) -> None:
    """The whole way: `up` starts the server, which can't listen, and says so once more at its own end."""
    port = free_port()
    # `up` may ask it whether it is ready before its own server has failed.
    holder = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
    async with holder:
        settings = {
            "web": {"port": port},
            "control": {"port": 0},
            "streamer": {"port": 0},
            "analyzer": {"port": free_port()},
        }
        settings["server"] = {"data_dir": str(tmp_path / "data")}
        running = launcher.camserver("up", settings=settings)
        assert await running.wait() == Exit.PORT_UNUSABLE
        assert f"port {port}" in running.stderr_path.read_text().splitlines()[-1]
    await launcher.none_left()


async def test_up_stops_when_told(launcher: Launcher, tmp_path: Path) -> None:
    settings = {
        "web": {"port": 0},
        "control": {"port": 0},
        "streamer": {"port": 0},
        "analyzer": {"port": free_port()},
    }
    settings["server"] = {"data_dir": str(tmp_path / "data")}
    running = launcher.camserver("up", settings=settings)
    await running.until_logged("child started", child="worker")
    running.send(signal.SIGTERM)
    assert await running.wait() == 0
    await launcher.none_left()


def test_simulate_needs_user_and_password_together() -> None:
    assert run("simulate", "--user", "viewer").exit_code == Exit.USAGE.value
    assert run("simulate", "--password-stdin", stdin="word\n").exit_code == Exit.USAGE.value


@pytest.mark.parametrize("camera", ["yard", "yard=scene:flood", "yard=/no/such/file.mp4"])
def test_simulate_says_what_is_wrong_with_a_camera(camera: str) -> None:
    shown = run("simulate", "--camera", camera)
    assert shown.exit_code != 0
    assert "yard" in shown.output


async def test_simulate_prints_addresses_and_stops_when_told(launcher: Launcher, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "camserver", "--data-dir", str(tmp_path / "data"), "simulate", "--port", "0"]
    simulator = launcher.start("simulate", [*argv, "--camera", "yard=scene:quiet", "--offline", "yard=60/5"], {})
    await until(lambda: "/yard/sub" in simulator.output_tail(), "the addresses")
    assert await simulator.stop() == 0
