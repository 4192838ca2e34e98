"""Secrets made on first start: complete, private, kept, and refused when others may have read them."""

import stat
from pathlib import Path

import pytest

from camserver.base.errors import BadSettings, DataUnusable
from camserver.base.secrets import Secret
from camserver.config import Settings, load, make_secrets, worker_token
from camserver.config.catalogue import all_settings
from camserver.config.secret_files import SECRET_FILES


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(None, {}, data_dir=tmp_path)


def test_they_are_made_once_for_their_owner_alone(settings: Settings) -> None:
    folder = settings.server.secrets_dir
    made = make_secrets(settings)
    assert sorted(path.name for path in folder.iterdir()) == sorted(SECRET_FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert make_secrets(settings) == made


def test_no_two_are_equal(settings: Settings) -> None:
    make_secrets(settings)
    texts = {path.read_text() for path in settings.server.secrets_dir.iterdir()}
    assert len(texts) == len(SECRET_FILES)


def test_the_credential_key_is_an_aes_256_key(settings: Settings) -> None:
    assert len(make_secrets(settings).credential_key_bytes()) == 32


def test_a_setting_wins_and_no_file_is_made(tmp_path: Path) -> None:
    environ = {"MEDIA_HMAC_SECRET": "from-the-environment", "CAMSERVER_CONTROL_WORKER_TOKEN": "token-from-env"}
    settings = load(None, environ, data_dir=tmp_path)
    made = make_secrets(settings)
    assert made.media_hmac == Secret("from-the-environment")
    assert made.worker_token == worker_token(settings) == Secret("token-from-env")
    assert not (settings.server.secrets_dir / "media_hmac").exists()
    assert not (settings.server.secrets_dir / "worker_token").exists()


@pytest.mark.parametrize("name", SECRET_FILES)
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_open_to_others_is_refused(name: str, mode: int, settings: Settings) -> None:
    make_secrets(settings)
    path = settings.server.secrets_dir / name
    path.chmod(mode)
    with pytest.raises(DataUnusable) as error:
        make_secrets(settings)
    assert f"chmod 600 {path}" in error.value.message
    assert path.read_text().strip() not in error.value.message


def test_an_empty_file_is_refused(settings: Settings) -> None:
    make_secrets(settings)
    (settings.server.secrets_dir / "session_key").write_text("\n")
    with pytest.raises(DataUnusable, match="session_key is empty"):
        make_secrets(settings)


@pytest.mark.parametrize("content", ["too-short", "not base64url at all!", "A" * 44])
def test_a_damaged_credential_key_is_refused(content: str, settings: Settings) -> None:
    make_secrets(settings)
    (settings.server.secrets_dir / "credential_key").write_text(content)
    with pytest.raises(DataUnusable) as error:
        make_secrets(settings)
    assert "restore it from a backup" in error.value.message
    assert content not in error.value.message


def test_a_file_that_is_no_text_is_refused(settings: Settings) -> None:
    make_secrets(settings)
    (settings.server.secrets_dir / "media_hmac").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(DataUnusable, match="not text"):
        make_secrets(settings)


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = load(None, {}, data_dir=tmp_path / "file")
    with pytest.raises(DataUnusable) as error:
        make_secrets(settings)
    assert str(tmp_path / "file/secrets") in error.value.message


def test_a_worker_beside_its_server_shares_the_token(settings: Settings) -> None:
    token = worker_token(settings)
    assert [path.name for path in settings.server.secrets_dir.iterdir()] == ["worker_token"]
    assert make_secrets(settings).worker_token == token


def test_a_worker_elsewhere_makes_no_token_of_its_own(tmp_path: Path) -> None:
    settings = load(None, {"CAMSERVER_WORKER_SERVER_URL": "https://cams.example:8081"}, data_dir=tmp_path)
    with pytest.raises(BadSettings, match=r"copy the file worker_token"):
        worker_token(settings)
    assert list(tmp_path.iterdir()) == []
    path = settings.server.secrets_dir / "worker_token"
    path.parent.mkdir()
    path.write_text("copied-from-server\n")
    path.chmod(0o600)
    assert worker_token(settings) == Secret("copied-from-server")


def test_settings_name_only_files_that_are_made() -> None:
    named = {setting.secret_file for setting in all_settings().values() if setting.secret_file}
    assert named == {"media_hmac", "worker_token", "credential_key"}
    assert named <= set(SECRET_FILES)
