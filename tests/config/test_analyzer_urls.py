"""One analyzer or several: `url`, `urls`, and what does not fit together."""

from pathlib import Path

import pytest

from camserver.base.errors import BadSettings
from camserver.config import Settings, load


def loaded(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "camserver.toml"
    file.write_text(f"[analyzer]\n{text}\n")
    return load(file, {})


@pytest.mark.parametrize(
    ("text", "addresses", "is_own"),
    [
        ("", ("http://127.0.0.1:9000",), True),
        ('url = "http://a:9000/"', ("http://a:9000",), False),
        ('urls = ["http://a:9000", "http://b:9000"]', ("http://a:9000", "http://b:9000"), False),
        ('urls = ["http://a:9000", "http://127.0.0.1:9000"]', ("http://a:9000", "http://127.0.0.1:9000"), True),
        ('urls = ["http://a:9000", "http://a:9000/"]', ("http://a:9000",), False),
        (
            'url = "http://a:9000"\nurls = ["http://b:9000", "http://a:9000"]',
            ("http://b:9000", "http://a:9000"),
            False,
        ),
        ("port = 9100\nurls = ['http://localhost:9100']", ("http://localhost:9100",), True),
    ],
)
def test_which_analyzers_are_asked(tmp_path: Path, text: str, addresses: tuple[str, ...], is_own: bool) -> None:
    chosen = loaded(tmp_path, text).analyzer
    assert chosen.addresses == addresses
    assert chosen.is_own is is_own


def test_they_can_be_named_by_a_variable() -> None:
    chosen = load(None, {"CAMSERVER_ANALYZER_URLS": "http://a:9000, https://b"}).analyzer
    assert chosen.addresses == ("http://a:9000", "https://b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "http://a:9000"\nurls = ["http://b:9000"]', "not among urls"),
        ('detector = "remote"', "remote_url"),
        ('detector = "remote"\nremote_url = "http://localhost:9000"', "this analyzer itself"),
        ('detector = "onnx"\nmodel_path = "model.tflite"', ".onnx"),
        ('model_keys = ["abc"]', "64 hex digits"),
        ('model_sha256 = "abc"', "64 hex digits"),
        ('fast_model_sha256 = "abc"', "fast_model_sha256"),
        ('urls = ["ftp://b:9000"]', "begin with http:// or https://"),
        ('urls = ["http://b:99999"]', "begin with http:// or https://"),
        ('urls = ["http://user:secret@b:9000"]', "user name or a password"),
        ('urls = "http://b:9000"', "a list of addresses"),
        ("night_from_hour = 24", "from 0 to 23"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSettings) as refused:
        loaded(tmp_path, text)
    assert said in refused.value.message
    assert "secret" not in refused.value.message
