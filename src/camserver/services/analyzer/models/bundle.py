"""A bundle: a folder or a zip with a model.toml, the files it lists and perhaps a signature of it.

Only what the model.toml lists is ever read, each file as long as the bound allows, and nothing is unpacked by the
names that a zip holds. The signature is over the model.toml, whose hashes cover everything else.
"""

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from camserver.base.errors import BadInput, ModelUnusable
from camserver.base.signing import is_signed
from camserver.services.analyzer.model_form import TOML_BYTES_MAX
from camserver.services.analyzer.models.manifest import MANIFEST, SIGNATURE, Manifest, parse_manifest

SIGNATURE_BYTES_MAX = 1000
# Of the list of files in a zip: hundreds of them.
DIRECTORY_BYTES_MAX = 65_536
# Where a zip says how long that list is: in its last record, which a comment may follow.
_ZIP_END = b"PK\x05\x06"
_ZIP_END_BYTES = 22
_ZIP_END_BYTES_MAX = _ZIP_END_BYTES + 65_535 + 20
_ZIP_DIRECTORY_SIZE_AT = 12
# Before it in a zip of more than 4 GB, which says it elsewhere.
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20

# The content of a file of the bundle, at most so many bytes of it; None when there is none of that name.
Read = Callable[[str, int], bytes | None]


@dataclass(frozen=True, slots=True)
class Bundle:
    """All of it in memory, as it was checked: what is installed and run are these bytes."""

    manifest: Manifest
    manifest_content: bytes
    signature: bytes | None
    contents: Mapping[str, bytes]

    @property
    def title(self) -> str:
        return f"{self.manifest.name} {self.manifest.version}"


def read_bundle(path: Path, bytes_max: int, keys: Sequence[str] = ()) -> Bundle:
    """A folder or a zip whose files are those that its model.toml lists; ModelUnusable says what is wrong.

    Where keys are given, one of them must have signed it, and it is read no further before that is known.
    """
    try:
        if path.is_dir():
            return _read(lambda name, most: _from_folder(path, name, most), bytes_max, keys)
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            return _read(_from_zip(archive), bytes_max, keys)
    except BadInput as error:
        raise ModelUnusable(f"the model bundle {path} can't be used: {error.message}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelUnusable(
            f"the model bundle {path} can't be used: it is neither a folder nor a whole zip ({error})"
        ) from error
    except OSError as error:
        raise ModelUnusable(f"the model bundle {path} can't be read: {error.strerror or error}") from error


def signer_of(bundle: Bundle, keys: Sequence[str]) -> str:
    """The one of the keys that signed it; ModelUnusable when none did."""
    try:
        return _signer(bundle.manifest, bundle.manifest_content, bundle.signature, keys)
    except BadInput as error:
        raise ModelUnusable(f"the model {bundle.title} can't be used: {error.message}") from error


def check_trusted(bundle: Bundle, keys: Sequence[str]) -> None:
    """Where keys are set, one of them must have signed it."""
    if keys:
        signer_of(bundle, keys)


def _signer(manifest: Manifest, content: bytes, signature: bytes | None, keys: Sequence[str]) -> str:
    if signature is None:
        raise BadInput(f"{manifest.name} {manifest.version} is not signed: it holds no {SIGNATURE}")
    text = signature.decode("ascii", "replace").strip()
    for key in keys:
        if is_signed(key, text, content):
            return key
    raise BadInput(
        f"{manifest.name} {manifest.version} is signed by none of analyzer.model_keys, or was changed since"
    )


def _read(read: Read, bytes_max: int, keys: Sequence[str]) -> Bundle:
    content = read(MANIFEST, TOML_BYTES_MAX)
    if content is None:
        raise BadInput(f"it holds no {MANIFEST}")
    manifest = parse_manifest(content)
    signature = read(SIGNATURE, SIGNATURE_BYTES_MAX)
    if keys:
        _signer(manifest, content, signature, keys)
    contents: dict[str, bytes] = {}
    left_bytes = bytes_max
    for name, expected in manifest.files.items():
        found = read(name, left_bytes)
        if found is None:
            raise BadInput(f"it holds no {name}, which its {MANIFEST} lists")
        left_bytes -= len(found)
        if left_bytes < 0:
            raise BadInput(f"it is larger than {bytes_max} bytes (analyzer.bundle_max_bytes)")
        if hashlib.sha256(found).hexdigest() != expected:
            raise BadInput(f"{name} is not what its {MANIFEST} says (sha256)")
        contents[name] = found
    return Bundle(manifest, content, signature, contents)


def _check_directory(path: Path) -> None:
    """Refuses a zip with a long list of files before that list is read: it would be held in memory whole."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _ZIP_END_BYTES_MAX, 0))
        end = file.read()
    at = end.rfind(_ZIP_END)
    if at < 0 or len(end) < at + _ZIP_END_BYTES:
        raise zipfile.BadZipFile("its end is missing")
    (directory_bytes,) = struct.unpack_from("<L", end, at + _ZIP_DIRECTORY_SIZE_AT)
    if directory_bytes > DIRECTORY_BYTES_MAX or _ZIP64_LOCATOR in end[max(at - _ZIP64_LOCATOR_BYTES, 0) : at]:
        raise BadInput("it holds too many files")


def _from_folder(folder: Path, name: str, most_bytes: int) -> bytes | None:
    """One byte more than the bound, so that it shows."""
    path = folder / name
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(most_bytes + 1)


def _from_zip(archive: zipfile.ZipFile) -> Read:
    """Files stand at the top of the zip, or all in one folder."""
    entries = archive.infolist()
    places = [entry.filename for entry in entries if entry.filename.rpartition("/")[2] == MANIFEST]
    if len(places) != 1 or places[0].count("/") > 1:
        raise BadInput(f"it holds no {MANIFEST}, or more than one")
    folder = places[0].removesuffix(MANIFEST)
    by_name = {entry.filename: entry for entry in entries if not entry.is_dir()}

    def read(name: str, most_bytes: int) -> bytes | None:
        entry = by_name.get(folder + name)
        if entry is None:
            return None
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Others may ask for gigabytes of memory before the first byte.
            raise BadInput(f"{name} is compressed in a way that is not read; use deflate")
        with archive.open(entry) as file:
            return file.read(most_bytes + 1)

    return read
