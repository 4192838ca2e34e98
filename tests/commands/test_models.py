"""`camserver models` as people use it, with small real models."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from camserver import cli
from camserver.base import assets
from camserver.base.exits import Exit
from tests.rig.footage import asset
from tests.rig.ports import free_port
from tests.services.analyzer.models.made import KEY, OTHER_KEY, PUBLIC, Made, seeing


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "c.toml"
        self.set()

    def set(self, **settings: object) -> None:
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        self.config.write_text(f"[analyzer]\n{lines}")

    def run(self, *arguments: str, language: str = "C.UTF-8") -> Result:
        command = ["--config", str(self.config), "--data-dir", str(self.folder / "data"), "models", *arguments]
        return CliRunner(env={"LC_ALL": language}).invoke(cli.main, command)

    def install(self, made: Made, *arguments: str) -> Result:
        path = self.folder / "bundle.zip"
        path.write_bytes(made.zipped())
        return self.run("install", str(path), *arguments)

    def listed(self) -> list[dict[str, Any]]:
        result = self.run("list", "--json")
        assert result.exit_code == 0, result.output
        rows: list[dict[str, Any]] = json.loads(result.output)
        return rows

    def in_use(self) -> list[str]:
        return [f"{row['name']} {row['version']}" for row in self.listed() if row["in_use"]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_at_first_there_is_the_shipped_model(desk: Desk) -> None:
    (row,) = desk.listed()
    assert (row["name"], row["version"], row["in_use"], row["problem"]) == (
        "default",
        "efficientdet-lite1",
        True,
        None,
    )


def test_a_bundle_is_installed_chosen_and_removed(desk: Desk, tmp_path: Path) -> None:
    folder = Made().folder(tmp_path / "yard")
    result = desk.run("install", str(folder))
    assert result.exit_code == 0, result.output
    assert "camserver models use yard" in result.output
    assert desk.in_use() == ["default efficientdet-lite1"]
    assert desk.install(Made(version="1.10"), "--use").exit_code == 0
    assert desk.in_use() == ["yard 1.10"]
    assert desk.run("use", "yard", "1.0").exit_code == 0
    assert desk.in_use() == ["yard 1.0"]
    assert desk.run("use", "yard").exit_code == 0
    assert desk.in_use() == ["yard 1.10"]
    assert "in use" in desk.run("remove", "yard", "1.10").output
    assert desk.run("remove", "yard", "1.0").exit_code == 0
    assert desk.run("use", "default").exit_code == 0
    assert desk.in_use() == ["default efficientdet-lite1"]
    assert [row["name"] for row in desk.listed()] == ["default", "yard"]


@pytest.mark.parametrize(("label", "noted"), [("bolt", True), ("face", True), ("Person", False), ("smoke", False)])
def test_a_model_that_leads_to_nothing_is_taken_but_not_in_silence(desk: Desk, label: str, noted: bool) -> None:
    for result in (desk.install(Made(label=label)), desk.run("use", "yard")):
        assert result.exit_code == 0, result.output
        assert ("nothing will be seen" in result.output) is noted


def test_what_was_done_can_be_read_by_machines(desk: Desk) -> None:
    for result, said in (
        (desk.install(Made(), "--json"), {"result": "installed", "name": "yard", "version": "1.0"}),
        (desk.run("use", "yard", "--json"), {"result": "used", "name": "yard", "version": "1.0"}),
        (desk.run("use", "default", "--json"), {"result": "used", "name": None, "version": None}),
        (desk.run("remove", "yard", "1.0", "--json"), {"result": "removed", "name": "yard", "version": "1.0"}),
    ):
        assert (result.exit_code, json.loads(result.output)) == (0, said)
    refused = desk.run("update", "--json")
    assert json.loads(refused.output)["error"] == "model_unusable"


def test_the_list_is_a_table_in_the_readers_language(desk: Desk) -> None:
    desk.install(Made(), "--use")
    english, japanese = desk.run("list").output, desk.run("list", language="ja_JP.UTF-8").output
    assert "NAME" in english
    assert "Apache-2.0" in english
    assert "fine" in english
    assert "名前" in japanese
    assert "正常" in japanese


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Made(hashes={"model.onnx": "0" * 64}), "sha256"),
        (Made(files={"model.onnx": b"no model"}), "can't be used"),
        (Made(name="default"), "name"),
    ],
)
def test_what_can_not_be_used_is_not_installed(desk: Desk, made: Made, said: str) -> None:
    result = desk.install(made)
    assert result.exit_code == Exit.MODEL_UNUSABLE.value
    assert said in result.output
    assert len(desk.listed()) == 1


def test_with_keys_only_signed_models_are_taken(desk: Desk) -> None:
    assert desk.install(Made("unsigned")).exit_code == 0
    desk.set(model_keys=[PUBLIC])
    assert "not signed" in desk.install(Made()).output
    assert "signed by none" in desk.install(Made(key=OTHER_KEY)).output
    assert desk.install(Made(key=KEY), "--use").exit_code == 0
    rows = {row["name"]: row for row in desk.listed()}
    assert rows["yard"]["signed_by"]
    assert "not signed" in rows["unsigned"]["problem"]
    assert "not signed" in desk.run("use", "unsigned").output
    assert desk.in_use() == ["yard 1.0"]


def test_check_tries_each_and_fails_when_one_is_broken(desk: Desk, tmp_path: Path) -> None:
    desk.install(Made())
    result = desk.run("check")
    assert result.exit_code == 0, result.output
    (tmp_path / "data" / "models" / "yard" / "1.0" / "model.onnx").write_bytes(seeing(0.1))
    broken = desk.run("check")
    assert broken.exit_code == Exit.CHECK_FAILED.value
    assert "1 of 2" in broken.output
    assert "sha256" in broken.output
    as_json = desk.run("check", "yard", "--json")
    assert as_json.exit_code == Exit.CHECK_FAILED.value
    assert "sha256" in json.loads(as_json.output)[0]["problem"]
    assert desk.run("check", "default").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("use", "none"), ("use", "yard", "9"), ("remove", "yard", "9"), ("check", "none")]
)
def test_what_is_not_there_is_said(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.install(Made())
    result = desk.run(*arguments)
    assert result.exit_code != 0
    assert "camserver models list" in result.output


def test_settings_that_go_before_the_choice_are_named(desk: Desk, tmp_path: Path) -> None:
    desk.set(model_path=str(tmp_path / "own.tflite"))
    assert "analyzer.model_path" in desk.run("list").output
    desk.set(detector="remote", remote_url="http://192.0.2.1:9000")
    assert "192.0.2.1" in desk.run("list").output


def test_update_needs_an_address_and_a_key(desk: Desk) -> None:
    result = desk.run("update")
    assert result.exit_code != 0
    assert "analyzer.bundle_url" in result.output


def test_a_choice_that_names_nothing_is_shown(desk: Desk, tmp_path: Path) -> None:
    desk.install(Made())
    (tmp_path / "data" / "models" / "active.json").write_text("nonsense")
    assert "active.json" in desk.listed()[0]["problem"]


def test_what_the_settings_name_is_shown_tried_and_said_to_be_in_use(desk: Desk, tmp_path: Path) -> None:
    """And not what was chosen, which is not used then."""
    assert desk.install(Made(), "--use").exit_code == 0
    model = asset(assets.MODEL)
    desk.set(model_path=str(model), fast_model_path=str(tmp_path / "none.tflite"))
    assert desk.in_use() == [f"model_path {model.name}", "fast_model_path none.tflite"]
    checked = desk.run("check")
    assert checked.exit_code == Exit.CHECK_FAILED
    assert "there is no file" in checked.output
    assert desk.run("check", "model_path").exit_code == 0
    desk.set(model_path=str(model), model_sha256="0" * 64)
    assert "sha256" in desk.run("check", "model_path").output


def test_another_analyzer_is_shown_and_asked(desk: Desk) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    desk.set(detector="remote", remote_url=url)
    assert desk.in_use() == [f"remote_url {url}"]
    checked = desk.run("check", "remote_url")
    assert checked.exit_code == Exit.CHECK_FAILED


def test_a_chosen_model_that_can_not_be_used_is_not_said_to_be(desk: Desk) -> None:
    made = Made()
    assert desk.install(made, "--use").exit_code == 0
    (desk.folder / "data" / "models" / made.name / made.version / "model.onnx").write_bytes(b"damaged")
    assert desk.in_use() == ["default efficientdet-lite1"]
    assert [row["name"] for row in desk.listed() if row["chosen"]] == [made.name]
    (line,) = [line for line in desk.run("list").output.splitlines() if line.startswith(made.name)]
    assert "chosen, unusable" in line


def test_a_folder_becomes_a_signed_bundle(desk: Desk, tmp_path: Path) -> None:
    key = tmp_path / "model.key"
    pem = Ed25519PrivateKey.from_private_bytes(KEY).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key.write_bytes(pem)
    folder = Made(hashes={"model.onnx": "0" * 64}, signature=b"old").folder(tmp_path / "yard")
    (folder / "model.toml").write_text("# mine\n" + (folder / "model.toml").read_text())
    (folder / ".hidden").write_text("")
    desk.set(model_keys=[PUBLIC])
    assert desk.run("install", str(folder)).exit_code != 0
    packed = desk.run("pack", str(folder), "--key", str(key), "--json")
    assert packed.exit_code == 0, packed.output
    told = json.loads(packed.output)
    assert (told["public_key"], list(told["files"])) == (PUBLIC, ["model.onnx"])
    assert (folder / "model.toml").read_text().startswith("# mine\n")
    assert desk.run("install", str(folder)).exit_code == 0
    # Again, unsigned: a signature of before would be of another list.
    (folder / "notes.txt").write_text("more")
    assert "notes.txt" in json.loads(desk.run("pack", str(folder), "--json").output)["files"]
    assert not (folder / "model.sig").exists()
    assert "-" in desk.run("pack", str(folder)).output


def test_what_can_not_be_packed_is_said_and_left_alone(desk: Desk, tmp_path: Path) -> None:
    folder = Made(name="Wrong Name").folder(tmp_path / "yard")
    before = (folder / "model.toml").read_bytes()
    assert "name" in desk.run("pack", str(folder)).output
    assert (folder / "model.toml").read_bytes() == before
    (folder / "key").write_text("no key")
    assert "can't be used" in desk.run("pack", str(folder), "--key", str(folder / "key")).output
    (folder / "model.toml").unlink()
    assert "model.toml" in desk.run("pack", str(folder)).output
