"""A ZIP file that is written while it is sent: nothing of it is held but the chunk under way and its list of names.

Files are stored, not compressed: pictures and clips are compressed already. Each file's hash is kept for a manifest.
"""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

from camserver.wire.case_file import FileLine

CHUNK_BYTES = 262_144
# Files above it need the larger format, and ZIP wants to know before.
_LARGE_BYTES = 2_000_000_000


class _Sink(io.RawIOBase):
    """Collects what the ZIP writer writes until it is taken. It can't seek, so the writer does not try."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(data)  # type: ignore[call-overload]  # the writer gives buffers
        self._parts.append(part)
        return len(part)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


@dataclass(slots=True)
class _Open:
    name: str
    target: IO[bytes]
    hash: "hashlib._Hash"
    bytes: int = 0


class ZipStream:
    """Its methods block only as long as hashing a chunk takes; call them in a thread."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._open: _Open | None = None
        self.files: list[FileLine] = []
        self.names: set[str] = set()

    def begin(self, name: str, at_ms: int, size_bytes: int) -> None:
        info = zipfile.ZipInfo(name, datetime.fromtimestamp(max(at_ms / 1000, 315_619_200), UTC).timetuple()[:6])
        info.external_attr = 0o644 << 16
        target = self._zip.open(info, "w", force_zip64=size_bytes >= _LARGE_BYTES)
        self._open = _Open(name, target, hashlib.sha256())
        self.names.add(name)

    def write(self, data: bytes) -> bytes:
        """Adds to the file that was begun; what is to be sent by now."""
        assert self._open is not None
        self._open.target.write(data)
        self._open.hash.update(data)
        self._open.bytes += len(data)
        return self._sink.take()

    def end(self) -> bytes:
        assert self._open is not None
        self._open.target.close()
        self.files.append(FileLine(path=self._open.name, bytes=self._open.bytes, sha256=self._open.hash.hexdigest()))
        self._open = None
        return self._sink.take()

    def close(self) -> bytes:
        self._zip.close()
        return self._sink.take()

    def abandon(self) -> None:
        """Lets go of everything; nothing more is sent. After `close` it does nothing."""
        if self._open is not None:
            self._open.target.close()
            self._open = None
        self._zip.close()
        self._sink.take()
