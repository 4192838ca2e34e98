"""Makes a bundle of a folder: hashes of its files in its model.toml, and a signature. Files: work for a thread."""

import hashlib
import re
from pathlib import Path

from camserver.base.errors import BadInput, DataUnusable
from camserver.base.folders import write_whole
from camserver.base.signing import sign
from camserver.services.analyzer.model_form import TOML_BYTES_MAX
from camserver.services.analyzer.models.bundle import Bundle, read_bundle
from camserver.services.analyzer.models.manifest import MANIFEST, SIGNATURE, parse_manifest

_FILES_TABLE = re.compile(r"\s*\[files\]\s*(#.*)?\Z")
_TABLE = re.compile(r"\s*\[")


def pack(folder: Path, key: bytes | None, bytes_max: int) -> Bundle:
    """Lists every file of the folder, but hidden ones, and signs the list with a key of 32 bytes if one is given.

    What `[files]` said before is replaced, all else in model.toml stays as it was written. BadInput or ModelUnusable
    says what is wrong, and then nothing was changed.
    """
    try:
        with (folder / MANIFEST).open("rb") as file:
            written = file.read(TOML_BYTES_MAX + 1).decode("utf-8")
        hashes = {path.name: _sha256(path) for path in sorted(folder.iterdir()) if _is_listed(path)}
    except UnicodeDecodeError:
        raise BadInput(f"{folder / MANIFEST} is no text in UTF-8") from None
    except OSError as error:
        raise BadInput(
            f"{error.filename} can't be read: {error.strerror}; a bundle has a {MANIFEST} and a model"
        ) from None
    content = _with_files(written, hashes).encode()
    parse_manifest(content)
    try:
        write_whole(folder / MANIFEST, content)
        if key is None:
            (folder / SIGNATURE).unlink(missing_ok=True)  # one that was there is of another list
        else:
            write_whole(folder / SIGNATURE, f"{sign(key, content)}\n".encode())
    except OSError as error:
        raise DataUnusable(f"the bundle in {folder} can't be written: {error.strerror or error}") from error
    return read_bundle(folder, bytes_max)


def _is_listed(path: Path) -> bool:
    return path.is_file() and path.name not in (MANIFEST, SIGNATURE) and not path.name.startswith(".")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_files(written: str, hashes: dict[str, str]) -> str:
    kept, inside = [], False
    for line in written.splitlines():
        inside = bool(_FILES_TABLE.match(line)) or (inside and not _TABLE.match(line))
        if not inside:
            kept.append(line)
    files = [f'"{name}" = "{value}"' for name, value in hashes.items()]
    return "\n".join(["\n".join(kept).rstrip(), "", "[files]", *files, ""])
