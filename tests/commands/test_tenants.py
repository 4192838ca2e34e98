"""`camserver tenant` on a data folder without a running server."""

import json
import zipfile
from pathlib import Path

from tests.commands.test_people import run


def test_a_tenant_is_added_bounded_exported_and_erased(tmp_path: Path) -> None:
    added = run(tmp_path, "tenant", "add", "acme", "--admin", "kato", "--cameras-max", "0", "--people-max", "5")
    assert added.exit_code == 0, added.output
    assert "/password#token=" in added.stdout
    assert run(tmp_path, "tenant", "change", "acme").exit_code == 2, "nothing to change"
    assert run(tmp_path, "tenant", "change", "acme", "--people-max", "none", "--off").exit_code == 0
    listed = run(tmp_path, "tenant", "list", language="ja_JP.UTF-8")
    assert "停止中" in listed.stdout
    assert "cameras_max" in listed.stderr, "a quota that is reached is told"
    target = tmp_path / "acme.zip"
    exported = run(tmp_path, "tenant", "export", "acme", "-o", str(target), "--json")
    assert exported.exit_code == 0, exported.output
    manifest = json.loads(exported.stdout)
    assert (manifest["tenant"], manifest["rows"]["users"], manifest["rows"]["tenants"]) == ("acme", 1, 1)
    with zipfile.ZipFile(target) as opened:
        names = [name for name in opened.namelist() if name.startswith("tables/users/")]
        assert json.loads(opened.read(names[0]))["login"] == "kato"
    assert run(tmp_path, "tenant", "export", "acme", "-o", str(target)).exit_code != 0, "it is there already"
    begun = run(tmp_path, "tenant", "erase", "acme", "--yes-erase", "acme", "--json")
    assert json.loads(begun.stdout)["erasing_at"] is not None, begun.output


def test_the_way_into_a_tenant_is_found_again(tmp_path: Path) -> None:
    assert run(tmp_path, "tenant", "add", "acme", "--admin", "kato").exit_code == 0
    again = run(tmp_path, "tenant", "reset", "acme", "kato", "--json")
    assert again.exit_code == 0, again.output
    told = json.loads(again.stdout)
    assert (told["login"], told["made"]) == ("kato", False)
    assert "/password#token=" in told["password_link"]["url"]
    made = run(tmp_path, "tenant", "reset", "acme", "sato", language="ja_JP.UTF-8")
    assert "管理者 sato を追加しました" in made.stdout
    assert "/password#token=" in made.stdout
    assert run(tmp_path, "tenant", "reset", "nowhere", "kato").exit_code != 0
