"""`camserver user`, `token` and `site` on a data folder without a running server."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from camserver import cli
from tests.rig.ports import free_port


def run(folder: Path, *arguments: str, language: str = "C.UTF-8", given: str | None = None, more: str = "") -> Result:
    # Nobody listens there, so the command opens the store itself: each is a start of its own.
    config = folder / "c.toml"
    config.write_text(f"[web]\nport = {free_port()}\n{more}")
    words = ["--config", str(config), "--data-dir", str(folder / "data"), *arguments]
    return CliRunner(env={"LC_ALL": language}).invoke(cli.main, words, input=given)


def test_somebody_is_added_changed_and_removed(tmp_path: Path) -> None:
    assert "setup-link" in run(tmp_path, "user", "list").output
    assert run(tmp_path, "site", "add", "depot", "--timezone", "Asia/Tokyo").exit_code == 0
    added = run(tmp_path, "user", "add", "guard", "--site", "depot", "--name", "警備")
    assert added.exit_code == 0, added.output
    assert "/password#token=" in added.stdout
    listed = run(tmp_path, "user", "list", language="ja_JP.UTF-8").stdout
    assert "警備" in listed
    assert "パスワード未設定" in listed
    assert "depot" in listed
    assert run(tmp_path, "user", "change", "guard", "--all-sites", "--role", "site_manager").exit_code == 0
    [guard] = json.loads(run(tmp_path, "user", "list", "--json").stdout)["users"]
    assert (guard["role"], guard["grants"]) == ("site_manager", None)
    assert "/password#token=" in run(tmp_path, "user", "reset", "guard").stdout
    assert run(tmp_path, "user", "change", "guard").exit_code == 2, "nothing to change"
    assert run(tmp_path, "user", "change", "nobody", "--off").exit_code != 0
    assert run(tmp_path, "user", "remove", "guard", given="n\n").exit_code != 0
    assert run(tmp_path, "user", "remove", "guard", "--yes").exit_code == 0
    assert json.loads(run(tmp_path, "user", "list", "--json").stdout)["users"] == []


def test_a_password_comes_in_by_standard_input(tmp_path: Path) -> None:
    added = run(tmp_path, "user", "add", "robot", "--password-stdin", given="a good long secret\n")
    assert added.exit_code == 0, added.output
    assert "token=" not in added.stdout
    weak = run(tmp_path, "user", "add", "other", "--password-stdin", given="weakling\n")
    assert weak.exit_code != 0
    assert "too short" in weak.output


# Nobody is asked: who somebody is at the provider is only written down.
PROVIDER = '[oidc]\nissuer = "http://127.0.0.1:9/"\nclient_id = "cams"\nallow_loopback = true\n'


def test_somebody_is_known_by_a_provider(tmp_path: Path) -> None:
    refused = run(tmp_path, "user", "add", "kato", "--oidc-subject", "9f1c2b7e")
    assert "[oidc] issuer" in refused.output
    added = run(tmp_path, "user", "add", "kato", "--oidc-subject", "9f1c2b7e", more=PROVIDER)
    assert added.exit_code == 0, added.output
    assert run(tmp_path, "user", "add", "tanaka", more=PROVIDER).exit_code == 0
    taken = run(tmp_path, "user", "change", "tanaka", "--oidc-subject", "9f1c2b7e", more=PROVIDER)
    assert taken.exit_code != 0, "he would be somebody else"
    changed = run(tmp_path, "user", "change", "tanaka", "--oidc-subject", "55d0aa31", more=PROVIDER)
    assert changed.exit_code == 0, changed.output


def test_a_token_is_made_shown_once_and_revoked(tmp_path: Path) -> None:
    assert run(tmp_path, "user", "add", "robot").exit_code == 0
    added = json.loads(run(tmp_path, "token", "add", "exporter", "--user", "robot", "--json").stdout)
    listed = run(tmp_path, "token", "list").stdout
    assert "exporter" in listed
    assert added["secret"] not in listed
    assert run(tmp_path, "token", "add", "x", "--user", "robot", "--scope", "manage_people").exit_code != 0
    assert run(tmp_path, "token", "revoke", added["token"]["token_uuid"]).exit_code == 0
    assert "exporter" not in run(tmp_path, "token", "list").stdout


def test_sites_are_listed_and_changed(tmp_path: Path) -> None:
    assert run(tmp_path, "site", "change", "main", "--timezone", "Asia/Tokyo", "--rename", "本社").exit_code == 0
    assert "本社" in run(tmp_path, "site", "list").stdout
    refused = run(tmp_path, "site", "remove", "本社")
    assert refused.exit_code != 0
    assert "only site" in refused.output
    assert run(tmp_path, "site", "change", "本社").exit_code == 2
