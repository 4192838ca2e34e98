import tomllib
from pathlib import Path

import pytest

from camserver.base import assets


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    (tmp_path / ".assets").mkdir()
    return tmp_path


def test_an_operators_file_wins_over_the_fetched_one(checkout: Path) -> None:
    data = checkout / "data"
    assert assets.find(assets.MODEL, data) is None
    fetched = checkout / ".assets" / assets.MODEL
    fetched.touch()
    assert assets.find(assets.MODEL, data) == fetched
    own = data / "assets" / assets.MODEL
    own.parent.mkdir(parents=True)
    own.touch()
    assert assets.find(assets.MODEL, data) == own


def test_a_folder_is_no_file(checkout: Path) -> None:
    (checkout / ".assets" / assets.MODEL).mkdir()
    assert assets.find(assets.MODEL, checkout / "data") is None


def test_an_installed_model_in_use_is_a_model_to_start_with(checkout: Path) -> None:
    data = checkout / "data"
    assert not assets.has_model(data)
    assets.models_folder(data).mkdir(parents=True)
    assets.active_model_file(data).touch()
    assert assets.has_model(data)
    assets.active_model_file(data).unlink()
    (checkout / ".assets" / assets.MODEL).touch()
    assert assets.has_model(data)


def test_set_up_fetches_the_files_that_are_looked_for() -> None:
    listed = tomllib.loads((Path(__file__).parents[2] / "assets.toml").read_text())["asset"]
    needed = {entry["file"] for entry in listed if not entry.get("tests_only")}
    assert needed == {assets.MODEL, assets.FOOTAGE}


def test_the_model_that_is_run_is_the_one_that_set_up_fetches() -> None:
    listed = tomllib.loads((Path(__file__).parents[2] / "assets.toml").read_text())["asset"]
    assert [entry["sha256"] for entry in listed if entry["file"] == assets.MODEL] == [assets.MODEL_SHA256]


def test_the_advice_names_every_way_out(tmp_path: Path) -> None:
    said = assets.no_model(tmp_path)
    for word in (
        assets.MODEL,
        "make setup",
        str(tmp_path / "assets"),
        "analyzer.model_path",
        "analyzer.url",
        "camserver models",
    ):
        assert word in said
