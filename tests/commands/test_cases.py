"""`camserver case` and `camserver retention` against a real store, and objects that are missing."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.errors import Conflict
from camserver.base.exits import Exit
from camserver.commands.object_check import missing_objects
from camserver.domain.picture_keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.store import Store
from tests.store.casework import Evidence
from tests.store.scenery import NOW_MS


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("CAMSERVER_WEB_PORT", "1")  # nobody answers there: each command has a server of its own


def run(*arguments: str, expected: Exit = Exit.OK) -> Result:
    result = CliRunner().invoke(cli.main, ["--data-dir", "data", *arguments])
    assert result.exit_code == expected.value, result.output
    return result


def said(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").output)


def test_a_case_from_its_opening_to_a_verified_export(tmp_path: Path) -> None:
    case = run("case", "create", "Bicycle in the yard", "--note", "Reported on Monday").output.strip()
    run("case", "note", case, "The owner was called.")
    assert "Bicycle in the yard" in run("case", "list").output
    missing = run("case", "add", case, "frame", "0198c0de-0000-7000-8000-00000000dead", expected=Exit.REFUSED)
    assert "past its retention" in missing.output
    run("case", "hold", case)
    run("case", "close", case)
    [listed] = said("case", "list", "--state", "closed")
    assert (listed["hold"], listed["notes"]) == (True, 2)
    assert listed["created_by"] == "local admin"
    run("case", "export", case, "-o", "bicycle.zip")
    with zipfile.ZipFile("bicycle.zip") as file:
        texts = {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}
    manifest = json.loads(texts["manifest.json"])
    assert manifest["exported_by"] == "local admin"
    told = json.loads(texts["case.json"])
    assert told["created_by"] == "local admin"
    assert {note["by"] for note in json.loads(texts["notes.json"])} == {"local admin"}
    assert "already" in run("case", "export", case, "-o", "bicycle.zip", expected=Exit.REFUSED).output
    assert "signature is right" in run("case", "verify", "bicycle.zip").output
    key = run("case", "key").output.strip()
    assert said("case", "verify", "bicycle.zip", "--key", key)["differences"] == []
    wrong = run("case", "verify", "bicycle.zip", "--key", "ab" * 32, expected=Exit.CHECK_FAILED)
    assert "other_key" in wrong.output
    assert "64 hexadecimal" in run("case", "verify", "bicycle.zip", "--key", "12", expected=Exit.REFUSED).output
    nowhere = run("case", "export", case, "-o", "nowhere/bicycle.zip", expected=Exit.REFUSED)
    assert "nothing can be written to the folder nowhere" in nowhere.output
    (tmp_path / "bicycle.zip").write_bytes((tmp_path / "bicycle.zip").read_bytes()[:-30])
    run("case", "verify", "bicycle.zip", expected=Exit.CHECK_FAILED)
    run("case", "close", case, "--reopen")
    run("case", "hold", case, "--off")
    assert not list(tmp_path.glob(".*.part"))


def test_retention_is_shown_and_tried_without_deleting() -> None:
    assert "floor" in run("retention", "show").output
    assert "as of" in run("retention", "show", "--now").output
    assert said("retention", "show")["counted_at"] is not None
    assert "Nothing would go" in run("retention", "run", "--dry-run").output
    assert said("retention", "run", "--dry-run")["frames"] == 0
    assert "no camserver runs" in run("retention", "run", expected=Exit.SERVER_AWAY).output


async def test_missing_objects_are_counted_and_noted_as_gone(store: Store, tmp_path: Path) -> None:
    evidence = await Evidence.gather(store, 1)
    objects = LocalObjects(tmp_path / "objects")
    event = await evidence.event(NOW_MS, frames=3)
    clip = await evidence.clip(event, NOW_MS)
    rows = await evidence.rows("SELECT * FROM frames ORDER BY frame_id")
    for row in rows[1:]:
        for kind in Kind:
            await objects.put(_key(row, kind), b"x")
    assert clip
    [found] = await missing_objects(store, objects, False)
    assert (found.kind, found.count) == ("object_missing", 3)
    [found] = await missing_objects(store, objects, True)
    assert await missing_objects(store, objects, False) == ()
    [first, *_] = await evidence.rows("SELECT epoch_id, infer_bytes, full_bytes FROM frames ORDER BY frame_id")
    assert first == {"epoch_id": None, "infer_bytes": None, "full_bytes": None}
    assert await evidence.rows("SELECT state, object_key FROM clips") == [{"state": "none", "object_key": None}]
    for row in rows[1:]:
        for kind in Kind:
            await objects.delete(_key(row, kind))
    with pytest.raises(Conflict, match="mounted"):
        await missing_objects(store, objects, True)
    [found] = await missing_objects(store, objects, False)
    assert found.count == 4


def _key(row: dict[str, Any], kind: Kind) -> str:
    return frame_key(
        row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind
    )
