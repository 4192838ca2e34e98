"""The report for a bug: what helps is in it, and none of the secrets that this machine knows."""

import json
from pathlib import Path

import pytest

from camserver.base.credentials import seal
from camserver.base.secrets import Secret
from camserver.care import doctor
from camserver.care.backup import secret_files
from camserver.config import load, make_secrets
from camserver.store import Tx, open_store
from camserver.store.first_start import prepare_store
from tests.rig.ports import free_port
from tests.rig.templates import Template

CAMERA_PASSWORD = "pässword-of-the-door"
HOOK = "https://hooks.example.com/services/T000/B000/verysecretpath"
SETTINGS_SECRET = "a-secret-in-the-settings"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("opening rtsp://viewer:s3cr3t!@192.0.2.7/stream1", "s3cr3t!"),
        ("GET /media/x?exp=1&sig=abcdefghijkl HTTP/1.1", "abcdefghijkl"),
        ("Authorization: Bearer abc.def-ghi_jkl", "abc.def-ghi_jkl"),
        ('{"password": "hunter2!", "user": "viewer"}', "hunter2!"),
        ("api_key=sk-12345678", "sk-12345678"),
        ("camserver_session cookie=0123456789", "0123456789"),
        ("-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMG\n-----END PRIVATE KEY-----", "MIGHAgEAMBMG"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, hidden: str) -> None:
    assert hidden not in doctor.masked(text)
    assert doctor.MASK in doctor.masked(text)


@pytest.mark.parametrize(
    "text", ["rtsp://192.0.2.7/stream1", "tokens_in 5", "no password was given", '"token": null', "user@example.com"]
)
def test_what_is_none_stays(text: str) -> None:
    assert doctor.masked(text) == text


async def _rows(tx: Tx, key: bytes) -> None:
    await tx.run(
        "INSERT INTO cameras (camera_key, tenant_id, site_id, camera_id, name, created_at, updated_at) "
        "SELECT 1, min(tenant_id), min(site_id), 'door', 'door', 1, 1 FROM sites"
    )
    sealed = seal(key, 1, "door", json.dumps({"user": "viewer", "password": CAMERA_PASSWORD}).encode())
    await tx.run(
        "INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at) "
        "VALUES (1, 1, :key_id, :nonce, :ciphertext, 1)",
        key_id=sealed.key_id,
        nonce=sealed.nonce,
        ciphertext=sealed.ciphertext,
    )


async def test_a_report_tells_much_and_no_secret(tmp_path: Path, sqlite_template: Template) -> None:
    url = sqlite_template.fresh()
    values = {
        "CAMSERVER_STORE_URL": url,
        "CAMSERVER_WEBHOOK_URL": HOOK,
        "CAMSERVER_MEDIA_HMAC_SECRET_PREVIOUS": SETTINGS_SECRET,
        "CAMSERVER_WEB_PORT": str(free_port()),
    }
    settings = load(None, values, tmp_path / "data")
    secrets = make_secrets(settings)
    store = await open_store(url)
    await prepare_store(store, None, 1)
    await store.write(_rows, secrets.credential_key_bytes())
    files = [path.read_text().strip() for path in secret_files(settings).values()]
    hidden = [CAMERA_PASSWORD, HOOK, SETTINGS_SECRET, *files]
    log = tmp_path / "camserver.log"
    log.write_text("an old line\n" * 2000 + "".join(f"somebody wrote {one} here\n" for one in hidden) + "last line\n")
    text = await doctor.report(settings, [log, tmp_path / "missing.log"])
    await store.close()
    sqlite_template.discard(url)
    for one in hidden:
        assert one not in text
    assert text.count("somebody wrote") == len(hidden), "the lines themselves are there"
    for told in ("camserver 0", "web.port", "no server answers here", "cameras 1", "last line", "can't be read"):
        assert told in text
    assert "failed:" not in text
    assert text.count("an old line") < 600


async def test_a_report_is_made_where_nothing_works(tmp_path: Path) -> None:
    settings = load(None, {"CAMSERVER_WEB_PORT": str(free_port())}, tmp_path / "data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "camserver.db").write_text("no database" * 100)
    make_secrets(settings)
    text = await doctor.report(settings, [])
    assert "can't be read as a SQLite database" in text
    assert Secret(settings.server.secrets_dir.joinpath("push_key").read_text().strip()).reveal() not in text
