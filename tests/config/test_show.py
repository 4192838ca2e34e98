"""`camserver config show`: every value with its source, and no secret in anything that can be printed."""

import json
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadSettings
from camserver.base.secrets import MASK
from camserver.config import Shown, as_json, describe, load
from camserver.config.database_url import DatabaseUrl
from camserver.config.values import Setting
from tests.config.samples import SECRETS

# Characters that no message, path or other value holds.
MARKED = st.text(alphabet="ÄÖÜßΩΨ☃漢字", min_size=16, max_size=24)

# Each example loads everything, and the secrets differ in nothing but their text.
FEWER = hypothesis.settings(max_examples=25)


def row(shown: list[Shown], section: str, key: str) -> Shown:
    [found] = [one for one in shown if (one.section, one.key) == (section, key)]
    return found


def test_values_and_sources(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[web]\nport = 81\n")
    shown = describe(load(path, {"TICK_SEC": "30", "CAMSERVER_LOG_LEVEL": "debug"}, data_dir=tmp_path))
    assert row(shown, "web", "port").source == f"file {path}"
    assert row(shown, "web", "port").value == 81
    assert row(shown, "looks", "polling_interval_sec").source == "environment TICK_SEC"
    assert row(shown, "log", "level").source == "environment CAMSERVER_LOG_LEVEL"
    assert row(shown, "server", "data_dir").source == "command line"
    assert row(shown, "control", "port") == Shown(
        "control", "port", 8081, "default", "The workers' port; 0 takes any free one."
    )


def test_texts() -> None:
    shown = describe(load(None, {}))
    assert row(shown, "stationary", "enabled").text == "true"
    assert row(shown, "web", "allowed_hosts").text == "localhost, 127.0.0.1, [::1]"
    assert row(shown, "drive", "folder_id").text == "(not set)"
    assert row(shown, "web", "port").text == "8080"


def test_a_secret_kept_in_a_file_is_shown_as_such(tmp_path: Path) -> None:
    settings = load(None, {}, data_dir=tmp_path)
    file = tmp_path / "secrets/media_hmac"
    before = row(describe(settings), "media", "hmac_secret")
    assert (before.value, before.source) == (None, f"secret file {file} (made on first start)")
    file.parent.mkdir()
    file.write_text("x")
    after = row(describe(settings), "media", "hmac_secret")
    assert (after.value, after.source) == (MASK, f"secret file {file}")


def test_json_is_whole_and_keeps_types() -> None:
    shown = describe(load(None, {}))
    parsed = json.loads(as_json(shown))
    assert len(parsed) == len(shown)
    assert {type(one["value"]) for one in parsed} == {int, float, bool, str, list, type(None)}


def secret_text(setting: Setting, mark: str) -> str:
    return f"mysql://cam:{mark}@db.example/cams" if setting.type is DatabaseUrl else mark


def toml_file(folder: Path, text: str) -> Path:
    path = folder / "camserver.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("setting", SECRETS, ids=lambda setting: setting.name)
@given(mark=MARKED)
@FEWER
def test_no_secret_is_shown(setting: Setting, mark: str) -> None:
    settings = load(None, {setting.variable: secret_text(setting, mark)})
    shown = describe(settings)
    printed = [repr(settings), str(settings), repr(shown), as_json(shown), *(one.text for one in shown)]
    assert getattr(getattr(settings, setting.section), setting.key).reveal().count(mark) == 1
    assert all(mark not in text for text in printed)
    assert MASK in row(shown, setting.section, setting.key).text


@pytest.mark.parametrize("setting", SECRETS, ids=lambda setting: setting.name)
@given(mark=MARKED)
@FEWER
def test_no_secret_is_in_a_refusal(setting: Setting, mark: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    wrong = [
        f'[{setting.section}]\n{setting.key} = ["{mark}"]\n',
        f'[{setting.section}]\n{setting.key} = {{ x = "{mark}" }}\n',
        f'[{setting.section}]\n{setting.key} = "{mark}\\n"\n{setting.key}x = "{mark}"\n',
        f'[{setting.section}]\n{setting.key} = "oracle://u:{mark}@h/db\\u0000"\n',
        f'[{setting.section}]\n{setting.key} = "{mark}\n',
        f'[{setting.section}x]\n{setting.key} = "{mark}"\n',
        f'{setting.key} = "{mark}"\n',
    ]
    for text in wrong:
        with pytest.raises(BadSettings) as error:
            load(toml_file(folder, text), {})
        assert mark not in f"{error.value} {error.value!r} {error.value.details} {error.value.__cause__}"


@given(mark=MARKED)
@FEWER
def test_no_password_in_a_wrong_address_is_in_a_refusal(mark: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    for value in (f'["http://u:{mark}@h"]', f'"http://u:{mark}@h:99999"', f'{{ x = "http://u:{mark}@h" }}'):
        with pytest.raises(BadSettings) as error:
            load(toml_file(tmp_path_factory.getbasetemp(), f"[analyzer]\nurl = {value}\n"), {})
        assert mark not in f"{error.value} {error.value.details}"


@given(mark=MARKED)
@FEWER
def test_no_password_in_an_address_is_in_a_refusal(mark: str) -> None:
    environ = {
        "DATABASE_URL": f"postgresql://u:{mark}/x@h/db",
        "IS21_BASE_URL": f"http://u:{mark}@is21:9000",
        "CAMSERVER_WORKER_SERVER_URL": f"wss://u:{mark}@server",
        "CAMSERVER_MEDIA_HMACSECRET": mark,
    }
    with pytest.raises(BadSettings) as error:
        load(None, environ)
    problems = error.value.details["problems"]
    assert isinstance(problems, list)
    assert len(problems) == len(environ)
    assert mark not in f"{error.value} {problems}"
