"""Installing: the units that come with camserver, what systemd says of them, and what `camserver install` writes."""

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base import ports
from camserver.care import install
from camserver.care.systemd_units import PREFIX, SETS, UNITS, Where, files
from tests.rig.ports import LOOPBACK
from tests.rig.processes import REPOSITORY

SHIPPED = REPOSITORY / "deploy" / "systemd"
# Of 10; what systemd calls "OK" begins at 5, and "UNSAFE" beyond 9.
EXPOSURE_MAX = 25


def test_the_units_in_deploy_are_those_that_are_installed() -> None:
    made = files(list(UNITS), Where())
    assert {path.name: path.read_text() for path in SHIPPED.iterdir()} == made, (
        "write what camserver.care.systemd_units.files makes into deploy/systemd"
    )


def test_every_service_of_the_product_has_a_unit() -> None:
    from camserver.parts import PARTS, PROCESSES

    assert {unit.command.partition(" ")[0] for unit in UNITS.values()} == {*PARTS, *PROCESSES}
    # On one machine with SQLite the server scores.
    alone = [name for name in PROCESSES if name != "scoring"]
    assert set(SETS["one"]) == {next(u.name for u in UNITS.values() if u.command == name) for name in alone}


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail("systemd-analyze is missing (package systemd)")
        pytest.skip("systemd-analyze is missing (package systemd)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_systemd_understands_the_units_and_finds_them_tight(tmp_path: Path) -> None:
    made = files(list(UNITS), Where(program="/bin/true"))
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    done = _analyze("verify", "--man=no", *(str(tmp_path / name) for name in made))
    assert (done.returncode, done.stderr.strip()) == (0, "")
    services = [str(tmp_path / name) for name in made if name.endswith(".service")]
    done = _analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", *services)
    assert done.returncode == 0, done.stdout[-2000:]


def run(*arguments: str) -> Result:
    return CliRunner(env={"LC_ALL": "C.UTF-8"}).invoke(cli.main, ["install", "--systemd", *arguments])


def test_a_dry_run_prints_everything_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install, "has_user", lambda: False)
    monkeypatch.setattr(install, "carry_out", lambda *_: pytest.fail("nothing is carried out"))
    shown = run("--dry-run", "--program", "/opt/camserver/bin/camserver")
    assert shown.exit_code == 0, shown.output
    for told in ("useradd --system", "/var/lib/camserver/ (mode 0700)", "cam-collector.service", "daemon-reload"):
        assert told in shown.output
    assert list(tmp_path.iterdir()) == []
    site = run("--dry-run", "--services", "site").output
    assert "cam-collector.service" in site
    assert "server_url" in site
    assert "cam-web" not in site


def test_services_that_are_not_started_with_the_machine_are_started_by_the_target() -> None:
    def enabled(enable: bool) -> tuple[str, ...]:
        [*_, last] = install.plan("one", Where(), True, enable)
        assert isinstance(last, install.Command)
        return last.argv

    services = {f"{PREFIX}{name}.service" for name in SETS["one"]}
    assert {"camserver.target", "cam-server.socket", *services} <= set(enabled(True))
    assert set(enabled(False)[2:]) == services


def test_what_is_written_below_a_root_is_what_the_units_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "root"
    assert run("--root", str(root), "--program", "/opt/camserver/bin/camserver").exit_code == 0
    assert stat.S_IMODE((root / "var/lib/camserver").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "etc/camserver/camserver.env").stat().st_mode) == 0o600
    units = root / "etc/systemd/system"
    for name in SETS["one"]:
        assert (units / f"{PREFIX}{name}.service").read_text() == (SHIPPED / f"{PREFIX}{name}.service").read_text()
    config = root / "etc/camserver/camserver.toml"
    config.write_text("[web]\nport = 9999\n")
    (units / "cam-server.service").write_text("old")
    assert run("--root", str(root), "--program", "/opt/camserver/bin/camserver").exit_code == 0
    assert config.read_text() == "[web]\nport = 9999\n", "what people edit stays"
    assert (units / "cam-server.service").read_text() != "old"


def test_the_configuration_to_begin_with_is_one(tmp_path: Path) -> None:
    from camserver.config import load

    path = tmp_path / "camserver.toml"
    for config in (install.CONFIG, install.SITE_CONFIG):
        path.write_text(config.format(data_dir=tmp_path / "data"))
        assert load(path, {}).server.data_dir == tmp_path / "data"


def test_only_root_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refused = run()
    assert refused.exit_code == 11
    assert "--dry-run" in refused.output


# A socket that is kept open between two runs


def test_a_socket_that_systemd_hands_over_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as kept:
        kept.bind((LOOPBACK, 0))
        kept.listen()
        port = kept.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST_FD", os.dup(kept.fileno()) - 1)
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "2")
        monkeypatch.setenv("LISTEN_FDNAMES", "control.port:web.port")
        with ports.listen(LOOPBACK, 1, "web.port") as ours:
            assert ours.getsockname()[1] == port
        # Ours is closed, as by a service that ends; who connects now waits in the kernel's queue.
        with socket.create_connection((LOOPBACK, port), timeout=30) as waiting:
            accepted, _ = kept.accept()
            accepted.close()
            assert waiting.getpeername()[1] == port
        monkeypatch.setenv("LISTEN_PID", "1")
        assert ports.handed_over("web.port") is None, "it is another process's"
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        assert ports.handed_over("streamer.port") is None
