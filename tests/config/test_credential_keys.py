"""The key of stored passwords: where it comes from, what is refused, and a replacement that may stop anywhere."""

import base64
import os
import sys
from pathlib import Path

import pytest

from camserver.base.credentials import key_id, open_sealed, seal
from camserver.base.errors import BadSettings, Conflict, DataUnusable
from camserver.config import Settings, load, make_secrets
from camserver.config import credential_keys as keys_module
from camserver.config.credential_keys import credential_ring, replace_key

KEYS = [bytes([number]) * 32 for number in range(3)]
TEXTS = [base64.urlsafe_b64encode(key).decode().rstrip("=") for key in KEYS]


def settings(folder: Path, **server: str) -> Settings:
    environ = {f"CAMSERVER_SERVER_{name.upper()}": value for name, value in server.items()}
    return load(None, environ, data_dir=folder)


def test_a_setting_comes_before_a_program_before_a_file(tmp_path: Path) -> None:
    program = f"{sys.executable},-c,print('{TEXTS[1]}')"
    by_setting = settings(tmp_path, credential_key=TEXTS[0], credential_key_command=program)
    assert make_secrets(by_setting).credential_keys.sealing == KEYS[0]
    by_program = settings(tmp_path, credential_key_command=program)
    assert credential_ring(by_program.server).sealing == KEYS[1]
    assert not (by_program.server.secrets_dir / "credential_key").exists()
    made = credential_ring(settings(tmp_path).server)
    assert (settings(tmp_path).server.secrets_dir / "credential_key").exists()
    assert credential_ring(settings(tmp_path).server).sealing == made.sealing


def test_the_key_before_still_opens(tmp_path: Path) -> None:
    sealed = seal(KEYS[0], 1, "cam", b"secret")
    both = credential_ring(settings(tmp_path, credential_key=TEXTS[1], credential_key_previous=TEXTS[0]).server)
    assert open_sealed(both, 1, "cam", sealed) == b"secret"
    assert seal(both, 1, "cam", b"x").key_id == key_id(KEYS[1])
    assert both.before == (key_id(KEYS[0]),)
    assert TEXTS[0] not in repr(both)
    with pytest.raises(DataUnusable, match="another key"):
        open_sealed(both, 1, "cam", seal(KEYS[2], 1, "cam", b"secret"))


@pytest.mark.parametrize(
    "code",
    ["raise SystemExit(1)", "print('short')", "print('x' * 100_000)", "pass"],
)
def test_a_program_that_prints_no_key_is_refused(tmp_path: Path, code: str) -> None:
    with pytest.raises(BadSettings, match="credential_key_command"):
        credential_ring(settings(tmp_path, credential_key_command=f"{sys.executable},-c,{code}").server)


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "COMMAND_TIMEOUT_SEC", 0.05)
    with pytest.raises(BadSettings, match="took longer"):
        credential_ring(
            settings(tmp_path, credential_key_command=f"{sys.executable},-c,import signal; signal.pause()").server
        )
    with pytest.raises(BadSettings, match="can't be started"):
        credential_ring(settings(tmp_path, credential_key_command="/nowhere/to/be/found").server)


def test_no_shell_reads_the_program(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="can't be started"):
        credential_ring(settings(tmp_path, credential_key_command=f"echo {TEXTS[0]}").server)


def test_a_setting_that_is_no_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"server\.credential_key is no key"):
        credential_ring(settings(tmp_path, credential_key="too-short").server)


def test_a_replaced_file_is_noticed_by_those_who_run(tmp_path: Path) -> None:
    server = settings(tmp_path).server
    running, other = credential_ring(server), credential_ring(server)
    old = seal(running, 1, "cam", b"secret")
    replace_key(server)
    new = seal(other, 1, "cam", b"secret")
    assert new.key_id != old.key_id
    for ring in (running, other, credential_ring(server)):
        assert open_sealed(ring, 1, "cam", old) == b"secret"
        assert open_sealed(ring, 1, "cam", new) == b"secret"
    assert running.before == (old.key_id,)
    for name in ("credential_key", "credential_key_previous"):
        assert (server.secrets_dir / name).stat().st_mode & 0o777 == 0o600
    assert not [path for path in server.secrets_dir.iterdir() if path.name.startswith(".credential_key.") and
                path.suffix != ".lock"]  # fmt: skip


@pytest.mark.parametrize("stop_at", [1, 2])
def test_an_interrupted_replacement_loses_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    server = settings(tmp_path).server
    ring = credential_ring(server)
    old = seal(ring, 1, "cam", b"secret")
    real, calls = Path.replace, []

    def replace(path: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == stop_at:
            raise OSError(5, os.strerror(5))
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(DataUnusable, match="can't be replaced"):
        replace_key(server)
    monkeypatch.setattr(Path, "replace", real)
    for one in (ring, credential_ring(server)):
        assert open_sealed(one, 1, "cam", old) == b"secret"
        assert seal(one, 1, "cam", b"x").key_id == old.key_id
        assert one.before == ()
    replace_key(server)
    assert open_sealed(ring, 1, "cam", old) == b"secret"
    assert seal(ring, 1, "cam", b"x").key_id != old.key_id


def test_a_key_of_the_settings_is_not_replaced_here(tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="comes from the settings"):
        replace_key(settings(tmp_path, credential_key=TEXTS[0]).server)
