import asyncio
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from camserver import cli, parts, processes
from camserver.base import assets
from camserver.base.clock import StoreClock
from camserver.base.errors import Bug, CamError, Conflict, Fatal
from camserver.base.exits import Exit
from camserver.base.ready import Ready
from camserver.base.supervise import RestartPolicy
from camserver.config import Settings, load
from camserver.parts import PARTS, PROCESSES, Part, Resources, run_parts, with_scoring
from tests.rig.ports import free_port
from tests.rig.processes import Launcher, Running

Start = Callable[..., Running]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(None, {}, tmp_path)


@pytest.fixture
def given(settings: Settings) -> Resources:
    return Resources(settings, StoreClock(), Ready())


@pytest.fixture
def start(launcher: Launcher, tmp_path: Path) -> Start:
    env = {"CAMSERVER_WEB_PORT": str(free_port())}

    def start(*names: str) -> Running:
        argv = [sys.executable, "-m", "tests.standin_parts", str(tmp_path / "data"), *names]
        return launcher.start("standin", argv, env)

    return start


def part(name: str, work: Callable[[], Awaitable[None]]) -> Part:
    async def run(_: Resources) -> None:
        await work()

    return Part(name, "stands in", run, False, False)


async def forever() -> None:
    await asyncio.Event().wait()


def test_every_part_has_a_process_and_every_process_a_command() -> None:
    assert sorted(name for names in PROCESSES.values() for name in names) == sorted(PARTS)
    assert {*PROCESSES, *PARTS} <= set(cli.main.commands)


def test_parts_with_a_port_have_it_in_their_section(settings: Settings) -> None:
    listening = [name for name, one in PARTS.items() if one.listens]
    assert {name: getattr(settings, name).port for name in listening} == {
        "control": 8081,
        "web": 8080,
        "streamer": 8082,
        "analyzer": 9000,
    }


def test_a_worker_gets_neither_store_nor_port() -> None:
    assert not PARTS["worker"].needs_store
    assert not PARTS["worker"].listens


def test_an_analyzer_gets_no_store() -> None:
    assert not PARTS["analyzer"].needs_store


@pytest.fixture
def a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only place where a model is looked for."""
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    model = tmp_path / ".assets" / assets.MODEL
    model.parent.mkdir()
    model.touch()
    return model


def test_only_the_demo_lets_cameras_be_on_this_machine(tmp_path: Path) -> None:
    settings = load(None, {}, tmp_path)
    for demo in (False, True):
        environ = processes.children_environ(settings, demo)
        ours = {name: value for name, value in environ.items() if name.startswith("CAMSERVER_WORKER")}
        assert load(None, ours, tmp_path).worker.allow_loopback is demo


def test_up_runs_the_analyzer_when_there_is_a_model(a_model: Path, settings: Settings) -> None:
    assert processes.wanted_processes(settings) == [name for name in PROCESSES if name != "scoring"]
    a_model.unlink()
    assert processes.wanted_processes(settings) == ["server", "streamer", "worker"]


@pytest.mark.parametrize(
    ("environ", "scores", "has_process"),
    [
        ({}, False, False),
        ({"CAMSERVER_LLM_PROVIDER": "openai"}, True, False),
        ({"CAMSERVER_LLM_PROVIDER": "openai", "CAMSERVER_STORE_URL": "postgresql://cam@db/cam"}, False, True),
        ({"CAMSERVER_STORE_URL": "postgresql://cam@db/cam"}, False, False),
    ],
)
def test_the_server_scores_by_itself_where_only_one_process_may_open_the_store(
    tmp_path: Path, environ: dict[str, str], scores: bool, has_process: bool
) -> None:
    settings = load(None, environ, tmp_path)
    assert ("scoring" in with_scoring(PROCESSES["server"], settings)) is scores
    assert ("scoring" in processes.wanted_processes(settings)) is has_process


@pytest.mark.parametrize(
    ("environ", "runs"),
    [
        ({"ANALYZER_URL": "http://is21:9000"}, False),
        ({"ANALYZER_URL": "http://127.0.0.1:9001"}, False),
        ({"ANALYZER_URL": "http://127.0.0.1:9000/other"}, False),
        ({"ANALYZER_URL": "http://localhost:9000/"}, True),
        ({"CAMSERVER_ANALYZER_PORT": "9007"}, True),
        ({"CAMSERVER_ANALYZER_HOST": "0.0.0.0"}, True),
    ],
)
def test_up_leaves_another_analyzer_to_others(
    a_model: Path, tmp_path: Path, environ: dict[str, str], runs: bool
) -> None:
    assert ("analyzer" in processes.wanted_processes(load(None, environ, tmp_path))) is runs


def test_another_analyzer_or_an_installed_model_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    passing_on = {"CAMSERVER_ANALYZER_DETECTOR": "remote", "CAMSERVER_ANALYZER_REMOTE_URL": "http://is21:9000"}
    assert "analyzer" not in processes.wanted_processes(load(None, {}, tmp_path))
    assert "analyzer" in processes.wanted_processes(load(None, passing_on, tmp_path))
    assets.models_folder(tmp_path).mkdir()
    assets.active_model_file(tmp_path).touch()
    assert "analyzer" in processes.wanted_processes(load(None, {}, tmp_path))


def test_a_model_of_ones_own_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    settings = load(None, {"CAMSERVER_ANALYZER_MODEL_PATH": "own.tflite"}, tmp_path)
    assert "analyzer" in processes.wanted_processes(settings)


def test_a_hanging_service_reports_before_the_supervisor_kills() -> None:
    assert parts.STOP_DEADLINE_SEC < RestartPolicy().stop_grace_sec < 10


def test_a_process_may_hold_as_many_sockets_as_the_machine_lets_it() -> None:
    _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = parts.OPEN_FILES if hard == resource.RLIM_INFINITY else min(parts.OPEN_FILES, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), hard))
        parts.hold_open_many()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)
        parts.hold_open_many()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_was_not_built_can_not_be_taken(given: Resources) -> None:
    with pytest.raises(Bug, match="needs_store"):
        _ = given.store
    with pytest.raises(Bug, match="needs_store"):
        _ = given.objects


async def test_the_first_failure_ends_the_others_and_is_raised(given: Resources) -> None:
    ended = []

    async def steady() -> None:
        try:
            await forever()
        finally:
            ended.append("steady")

    async def failing() -> None:
        raise Conflict("somebody else was first")

    with pytest.raises(Conflict, match="somebody else"):
        await run_parts([part("steady", steady), part("failing", failing)], given)
    assert ended == ["steady"]
    assert given.ready.checks() == {"failing": "stopped", "steady": "stopped"}


async def test_of_several_failures_the_one_that_says_what_to_do_is_raised(given: Resources) -> None:
    async def fails_while_ending() -> None:
        try:
            await forever()
        finally:
            raise Conflict("told clearly")

    async def crashes() -> None:
        raise ZeroDivisionError

    with pytest.raises(CamError) as caught:
        await run_parts([part("one", fails_while_ending), part("two", crashes)], given)
    assert isinstance(caught.value, Conflict | Fatal)


async def test_an_unexpected_failure_names_the_service(given: Resources) -> None:
    async def crashes() -> None:
        raise ZeroDivisionError

    with pytest.raises(Fatal, match=r"the service odd failed \(ZeroDivisionError\)"):
        await run_parts([part("odd", crashes)], given)


async def test_a_service_that_ends_by_itself_is_a_bug(given: Resources) -> None:
    async def ends() -> None:
        return

    with pytest.raises(Bug, match="the service short ended by itself"):
        await run_parts([part("short", ends), part("steady", forever)], given)


async def test_cancelling_ends_all_and_is_no_failure(given: Resources) -> None:
    running = asyncio.create_task(run_parts([part("one", forever), part("two", forever)], given))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_services_then_store_and_all_processes(
    start: Start, launcher: Launcher, number: signal.Signals
) -> None:
    running = start("steady")
    line = await running.until_logged("steady is ready")
    assert line["service"] == "steady"
    running.send(number)
    assert await running.wait() == 0
    await launcher.none_left()
    events = [line["event"] for line in running.log()]
    assert events.index("stopping") < events.index("steady ended tidily") < events.index("stopped")


async def test_a_process_without_store_loads_nothing_of_it(start: Start) -> None:
    running = start("lonely")
    assert (await running.until_logged("lonely is ready"))["loaded"] == []


async def test_sighup_stops_nothing(start: Start) -> None:
    running = start("lonely")
    await running.until_logged("lonely is ready")
    running.send(signal.SIGHUP)
    await running.until_logged("SIGHUP ignored: restart camserver to read changed settings")
    assert await running.stop() == 0


async def test_a_service_that_hangs_is_ended_and_shown(start: Start, launcher: Launcher) -> None:
    running = start("hanging")
    await running.until_logged("hanging is ready")
    running.send(signal.SIGTERM)
    assert await running.wait() == Exit.UNEXPECTED
    assert "most recent call first" in running.stderr_path.read_text()
    await launcher.none_left()


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("crashing", Exit.UNEXPECTED, "error: the service crashing failed (ZeroDivisionError); the log above"),
        ("without_database", Exit.STORE_AWAY, "error: the database is away"),
        ("ending", Exit.UNEXPECTED, "error: the service ending ended by itself"),
    ],
)
async def test_a_failed_service_ends_the_process_with_its_code_and_a_line(
    start: Start, name: str, code: Exit, said: str
) -> None:
    running = start("steady", name)
    assert await running.wait() == code
    assert running.stderr_path.read_text().splitlines()[-1].startswith(said)
    assert [line for line in running.log() if line["event"] == "service failed"] or name == "ending"


async def test_two_on_one_port_is_told_before_anything_is_opened(start: Start, tmp_path: Path) -> None:
    first = start("web")
    await first.until_logged("listening is ready")
    second = start("web", "steady")
    assert await second.wait() == Exit.PORT_UNUSABLE
    assert f"process {first.pid}" in second.stderr_path.read_text().splitlines()[-1]
    assert not (tmp_path / "data" / "camserver.db").exists()
    assert await first.stop() == 0


async def test_a_data_folder_that_is_a_file_is_told(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    running = start("lonely")
    assert await running.wait() == Exit.DATA_UNUSABLE
    assert "is not a folder" in running.stderr_path.read_text()
