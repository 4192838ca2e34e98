"""A tenant's file: whole for every reader of ZIP files, and the same whether it was broken off or not."""

import asyncio
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from camserver.base.errors import BadInput, NotFound
from camserver.clients.tenant_archive import TenantExport

PAGES = 3


class Server:
    """Two tables of three pages; of each page's objects one is there. Dies after so many answers."""

    def __init__(self, answers: int = 1_000) -> None:
        self.left = answers

    def _answer(self) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"tenant_uuid": "u1", "name": "acme", "tables": {"frames": PAGES * 2, "sites": PAGES * 2}}

    async def get(self, path: str) -> dict[str, Any]:
        self._answer()
        table = path.partition("/tables/")[2].partition("?")[0]
        at = int(path.rpartition("=")[2]) if "?" in path else 0
        rows = [{"id": at * 2 + n, "name": "庭"} for n in (0, 1)]
        keys = [f"e1/t1/{at}.jpg", f"e1/t1/{at}.gone.jpg"] if table == "frames" else []
        objects = [{"key": key, "bytes": 3} for key in keys]
        return {"rows": rows, "objects": objects, "next_after": str(at + 1) if at + 1 < PAGES else None}

    async def download(self, path: str, file: BinaryIO) -> int:
        if "gone" in path:
            raise NotFound("there is none")
        self._answer()
        return await asyncio.to_thread(file.write, path.encode())


async def export(server: Server, target: Path, with_objects: bool = True) -> dict[str, Any]:
    return await TenantExport(server, "acme", target, with_objects, lambda *_: None, lambda: 7).run()  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(target: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(target) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.mark.parametrize("answers", [2, 3, 5])
async def test_an_export_that_is_broken_off_goes_on(tmp_path: Path, answers: int) -> None:
    whole, target = tmp_path / "whole.zip", tmp_path / "acme.zip"
    await export(Server(), whole)
    for _ in range(30):
        try:
            # A page with its object takes two answers; what is less than a page begins anew.
            await export(Server(answers), target)
            break
        except KeyboardInterrupt:
            with (tmp_path / ".acme.zip.part").open("ab") as file:
                file.write(b"half an entry")
            with (tmp_path / ".acme.zip.journal").open("ab") as file:
                file.write(b'{"table": "fra')
    assert contents(target) == contents(whole)
    assert names(tmp_path) == ["acme.zip", "whole.zip"]


async def test_the_manifest_vouches_for_every_file(tmp_path: Path) -> None:
    target = tmp_path / "acme.zip"
    manifest = await export(Server(), target)
    files = contents(target)
    assert json.loads(files["manifest.json"]) == manifest
    assert hashlib.sha256(files["files.jsonl"]).hexdigest() == manifest["files_sha256"]
    listed = [json.loads(line) for line in files["files.jsonl"].splitlines()]
    assert {one["path"] for one in listed} == set(files) - {"manifest.json", "files.jsonl", "missing.jsonl"}
    for one in listed:
        assert hashlib.sha256(files[one["path"]]).hexdigest() == one["sha256"]
    assert len(files["missing.jsonl"].splitlines()) == PAGES
    assert manifest["rows"] == {"frames": 6, "sites": 6}


async def test_another_export_does_not_go_on_with_it(tmp_path: Path) -> None:
    target = tmp_path / "acme.zip"
    with pytest.raises(KeyboardInterrupt):
        await export(Server(2), target)
    with pytest.raises(BadInput, match="another export"):
        await export(Server(), target, with_objects=False)
