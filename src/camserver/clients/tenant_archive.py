"""A tenant as one ZIP file, fetched page by page from the server and resumed where it was broken off.

The file grows as `.NAME.part`; beside it a journal says, page by page, what is whole in it. Whoever runs the export
again cuts off what lies behind the last whole page and goes on from there. Nothing is held in memory but a page: the
list of files is made from the journal at the end. Files are stored, not compressed: pictures are compressed already.
"""

import hashlib
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from camserver import __version__
from camserver.base.errors import BadInput, DataUnusable, NotFound
from camserver.clients.local_server import LocalServer

FORMAT = "camserver-tenant/1"
# ZIP: every entry in the format for large files, so that none has to be known before it is written.
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_ZIP64_END = struct.Struct("<4sQ2H2I4Q")
_ZIP64_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")
_VERSION, _UTF8, _FIRST_DAY, _IN_EXTRA = 45, 0x0800, 0x21, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Entry:
    """A whole file in the ZIP."""

    path: str
    offset: int
    bytes: int
    crc: int
    sha256: str


@dataclass(slots=True)
class Page:
    """What the journal says of one page."""

    table: str
    next_after: str | None
    rows: int
    end: int  # of the file, behind this page
    files: list[Entry]
    missing: list[str] = field(default_factory=list)


class _Measured(io.RawIOBase):
    """Hands on what is written, and knows length and hashes of it."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.bytes = 0
        self.crc = 0
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._target.write(data)
        self.bytes += len(data)
        self.crc = zlib.crc32(data, self.crc)
        self.sha256.update(data)
        return len(data)


class Zip:
    """The growing file. `end` is behind its last whole entry."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self.end = end
        file.seek(end)
        file.truncate()

    def begin(self, path: str) -> _Measured:
        # The header's length is known; what it says is written behind the content.
        self._file.write(_local(Entry(path, self.end, 0, 0, "")))
        return _Measured(self._file)

    def finish(self, path: str, content: _Measured) -> Entry:
        entry = Entry(path, self.end, content.bytes, content.crc, content.sha256.hexdigest())
        self._file.seek(self.end)
        self._file.write(_local(entry))
        self._file.seek(0, os.SEEK_END)
        self.end = self._file.tell()
        return entry

    def drop(self) -> None:
        """Takes back an entry that was begun."""
        self._file.seek(self.end)
        self._file.truncate()

    def add(self, path: str, lines: Iterator[bytes]) -> Entry:
        content = self.begin(path)
        for line in lines:
            content.write(line)
        return self.finish(path, content)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close_with(self, entries: Iterator[Entry]) -> None:
        """Writes the directory that makes it a whole ZIP."""
        begin, count = self.end, 0
        for entry in entries:
            self._file.write(_central(entry))
            count += 1
        end = self._file.tell()
        self._file.write(_ZIP64_END.pack(b"PK\6\6", 44, _VERSION, _VERSION, 0, 0, count, count, end - begin, begin))
        self._file.write(_ZIP64_LOCATOR.pack(b"PK\6\7", 0, end, 1))
        self._file.write(_END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, _IN_EXTRA, _IN_EXTRA, 0))
        self.sync()


def _local(entry: Entry) -> bytes:
    name = entry.path.encode()
    extra = struct.pack("<2H2Q", 1, 16, entry.bytes, entry.bytes)
    head = _LOCAL.pack(
        b"PK\3\4", _VERSION, _UTF8, 0, 0, _FIRST_DAY, entry.crc, _IN_EXTRA, _IN_EXTRA, len(name), len(extra)
    )
    return head + name + extra


def _central(entry: Entry) -> bytes:
    name = entry.path.encode()
    extra = struct.pack("<2H3Q", 1, 24, entry.bytes, entry.bytes, entry.offset)
    sizes = (entry.crc, _IN_EXTRA, _IN_EXTRA, len(name), len(extra), 0, 0, 0, 0o100644 << 16, _IN_EXTRA)
    return _CENTRAL.pack(b"PK\1\2", 3 << 8 | _VERSION, _VERSION, _UTF8, 0, 0, _FIRST_DAY, *sizes) + name + extra


class Journal:
    """What is whole, a line a page; the first line says of what."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def head(self) -> dict[str, Any] | None:
        try:
            with self.path.open("rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def begin(self, head: dict[str, Any]) -> None:
        self.path.unlink(missing_ok=True)
        self._append(head)

    def note(self, page: Page) -> None:
        self._append(asdict(page))

    def _append(self, value: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def pages(self) -> Iterator[Page]:
        """Those whose lines are whole."""
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                if not line.endswith(b"\n"):
                    return
                found = json.loads(line)
                yield Page(**found | {"files": [Entry(**one) for one in found["files"]]})

    def cut(self) -> None:
        """Removes a last line that was not written to its end."""
        with self.path.open("r+b") as file:
            whole = 0
            for line in file:
                whole += len(line) if line.endswith(b"\n") else 0
            file.truncate(whole)


@dataclass(slots=True)
class TenantExport:
    """One export into `target`. `told` gets how many rows of how many are there."""

    server: LocalServer
    tenant: str
    target: Path
    with_objects: bool
    told: Callable[[int, int], None]
    now_ms: Callable[[], int]

    @property
    def part(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def journal(self) -> Journal:
        return Journal(self.target.with_name(f".{self.target.name}.journal"))

    async def run(self) -> dict[str, Any]:
        """Makes the file, or goes on with it; the manifest."""
        plan = await self.server.post(f"{self._path}/export", {})
        head = self._head(plan)
        done: dict[str, str | None] = {}
        rows, end = 0, 0
        for page in self.journal.pages():
            done[page.table] = page.next_after
            rows, end = rows + page.rows, page.end
        if not self.part.exists() or self.part.stat().st_size < end:
            raise DataUnusable(f"{self.part} is shorter than its journal says; remove both and export anew")
        total = sum(plan["tables"].values())
        with self.part.open("r+b") as file:
            growing = Zip(file, end)
            for table in plan["tables"]:
                after = done.get(table, "")
                while after is not None:
                    page = await self._page(growing, table, after)
                    self.journal.note(page)
                    rows, after = rows + page.rows, page.next_after
                    self.told(min(rows, total), total)
            manifest = self._finish(growing, head)
        self.part.rename(self.target)
        self.journal.path.unlink()
        return manifest

    @property
    def _path(self) -> str:
        return f"/api/tenants/{quote(self.tenant, safe='')}"

    def _head(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Of the export that was begun; begins one where there is none."""
        head = self.journal.head()
        if head is None:
            head = {
                "format": FORMAT,
                "tenant_uuid": plan["tenant_uuid"],
                "tenant": plan["name"],
                "with_objects": self.with_objects,
                "started_at": self.now_ms(),
            }
            self.part.write_bytes(b"")
            self.journal.begin(head)
        if (head["tenant_uuid"], head["with_objects"]) != (plan["tenant_uuid"], self.with_objects):
            raise BadInput(f"{self.part} was begun for another export; remove it and {self.journal.path}")
        self.journal.cut()
        return head

    async def _page(self, growing: Zip, table: str, after: str) -> Page:
        query = f"?{urlencode({'after': after})}" if after else ""
        got = await self.server.get(f"{self._path}/export/tables/{table}{query}")
        page = Page(table, got["next_after"], len(got["rows"]), 0, [])
        if got["rows"]:
            lines = (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in got["rows"])
            # Where it lies in the file is a number that no other page has.
            page.files.append(growing.add(f"tables/{table}/{growing.end:016d}.jsonl", lines))
        for one in got["objects"] if self.with_objects else ():
            await self._object(growing, one["key"], page)
        growing.sync()
        page.end = growing.end
        return page

    async def _object(self, growing: Zip, key: str, page: Page) -> None:
        path = f"objects/{key}"
        content = growing.begin(path)
        try:
            query = urlencode({"key": key})
            await self.server.download(f"{self._path}/export/object?{query}", content)  # type: ignore[arg-type]
        except NotFound:
            growing.drop()
            page.missing.append(key)
            return
        page.files.append(growing.finish(path, content))

    def _finish(self, growing: Zip, head: dict[str, Any]) -> dict[str, Any]:
        listed = growing.add("files.jsonl", self._file_lines())
        missing = growing.add("missing.jsonl", self._missing_lines())
        rows: dict[str, int] = {}
        files = 0
        for page in self.journal.pages():
            rows[page.table] = rows.get(page.table, 0) + page.rows
            files += len(page.files)
        manifest = head | {
            "finished_at": self.now_ms(),
            "camserver_version": __version__,
            "rows": rows,
            "files": files,
            "files_sha256": listed.sha256,
            "missing_sha256": missing.sha256,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1).encode() + b"\n"
        about = growing.add("manifest.json", iter([text]))

        def entries() -> Iterator[Entry]:
            for page in self.journal.pages():
                yield from page.files
            yield from (listed, missing, about)

        growing.close_with(entries())
        return manifest

    def _file_lines(self) -> Iterator[bytes]:
        for page in self.journal.pages():
            for one in page.files:
                yield json.dumps({"path": one.path, "bytes": one.bytes, "sha256": one.sha256}).encode() + b"\n"

    def _missing_lines(self) -> Iterator[bytes]:
        for page in self.journal.pages():
            for key in page.missing:
                yield json.dumps({"key": key}).encode() + b"\n"
