"""Bundles that are whole, and those that are not."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from camserver.base.errors import ModelUnusable
from camserver.services.analyzer.models.bundle import check_trusted, read_bundle, signer_of
from camserver.services.analyzer.models.manifest import number_of
from tests.services.analyzer.models.made import BYTES_MAX, KEY, OTHER_KEY, PUBLIC, Made, seeing


@pytest.mark.parametrize("inside", ["", "yard-1.0/"])
def test_a_zip_is_read_with_or_without_a_folder_in_it(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(Made(key=KEY).zipped(inside))
    bundle = read_bundle(path, BYTES_MAX)
    assert (bundle.title, bundle.contents) == ("yard 1.0", {"model.onnx": seeing(0.9)})
    assert signer_of(bundle, [PUBLIC]) == PUBLIC


def test_a_folder_is_read_and_what_is_not_listed_is_left_alone(tmp_path: Path) -> None:
    folder = Made().folder(tmp_path / "bundle")
    (folder / "README").write_text("not listed")
    assert set(read_bundle(folder, BYTES_MAX).contents) == {"model.onnx"}


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (Made(hashes={"model.onnx": "0" * 64}), "sha256"),
        (Made(hashes={"missing.bin": "0" * 64}), "holds no missing.bin"),
        (Made(hashes={"../model.onnx": "0" * 64}), "files"),
        (Made(hashes={"model.toml": "0" * 64}), "can't be among files"),
        (Made(name="../yard"), "name"),
        (Made(name="yard\n"), "no TOML"),
        (Made(version="1.0-rc"), "version"),
        (Made(version="01"), "version"),
        (Made(more='lisence = "MIT"'), "lisence"),
        (Made(more='labels_file = "model.onnx"'), "either"),
        (Made(files={"other.onnx": b"x"}), "model.onnx is not among files"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, made: Made, cause: str) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(made.zipped())
    for place in (path, made.folder(tmp_path / "folder" / "inner" / "bundle")):
        with pytest.raises(ModelUnusable) as refused:
            read_bundle(place, BYTES_MAX)
        assert cause in refused.value.message
        assert str(place) in refused.value.message


@pytest.mark.parametrize("cut_bytes", [1, 100, 400])
def test_a_zip_that_is_cut_off_is_refused(tmp_path: Path, cut_bytes: int) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(Made().zipped()[:-cut_bytes])
    with pytest.raises(ModelUnusable):
        read_bundle(path, BYTES_MAX)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04"])
def test_what_is_no_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(content)
    with pytest.raises(ModelUnusable, match="neither a folder nor a whole zip"):
        read_bundle(path, BYTES_MAX)


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(Made(files={"model.onnx": bytes(5_000_000), "more.bin": bytes(5_000_001)}).zipped())
    assert path.stat().st_size < 100_000
    with pytest.raises(ModelUnusable, match="larger than 10000000 bytes"):
        read_bundle(path, BYTES_MAX)


@pytest.mark.parametrize("name", ["deep/er/model.toml", "two/model.toml"])
def test_the_manifest_stands_at_one_place(tmp_path: Path, name: str) -> None:
    out = io.BytesIO(Made().zipped())
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(name, b"")
    path = tmp_path / "bundle.zip"
    path.write_bytes(out.getvalue())
    with pytest.raises(ModelUnusable, match="more than one"):
        read_bundle(path, BYTES_MAX)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = Made().folder(tmp_path / "bundle")
    (folder / "model.onnx").rename(tmp_path / "outside.onnx")
    (folder / "model.onnx").symlink_to(tmp_path / "outside.onnx")
    with pytest.raises(ModelUnusable, match=r"holds no model\.onnx"):
        read_bundle(folder, BYTES_MAX)


def test_the_signature_covers_every_file(tmp_path: Path) -> None:
    signed = Made(key=KEY)
    changed = replace(signed, files={"model.onnx": seeing(0.8)}, signature=signed.contents()["model.sig"])
    assert signer_of(signed.bundle(tmp_path), ["00" * 32, PUBLIC]) == PUBLIC
    with pytest.raises(ModelUnusable, match=r"none of analyzer\.model_keys"):
        signer_of(changed.bundle(tmp_path), [PUBLIC])


@pytest.mark.parametrize(
    "made",
    [Made(), Made(key=OTHER_KEY), Made(signature=b""), Made(signature=b"\xff" * 64), Made(signature=b"00" * 64)],
)
def test_where_keys_are_set_one_of_them_must_have_signed(tmp_path: Path, made: Made) -> None:
    bundle = made.bundle(tmp_path)
    check_trusted(bundle, [])
    with pytest.raises(ModelUnusable, match=r"yard 1\.0"):
        check_trusted(bundle, [PUBLIC])


def test_versions_are_compared_as_numbers() -> None:
    ordered = ["0", "0.9", "0.10", "1", "1.0.1", "2.0", "10"]
    assert sorted(ordered, key=number_of) == ordered
    assert number_of("1.0.0") == number_of("1")


def test_an_unsigned_bundle_is_read_no_further_than_its_manifest(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(Made(hashes={"missing.bin": "0" * 64}).zipped())
    with pytest.raises(ModelUnusable, match="not signed"):
        read_bundle(path, BYTES_MAX, [PUBLIC])
    path.write_bytes(Made(key=KEY).zipped())
    assert read_bundle(path, BYTES_MAX, [PUBLIC]).title == "yard 1.0"


@pytest.mark.parametrize("comment", [b"", b"made for a test"])
def test_a_zip_with_very_many_files_is_refused(tmp_path: Path, comment: bytes) -> None:
    out = io.BytesIO(Made().zipped())
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = comment
    path = tmp_path / "bundle.zip"
    path.write_bytes(out.getvalue())
    assert read_bundle(path, BYTES_MAX).title == "yard 1.0"
    with zipfile.ZipFile(out, "a") as archive:
        for number in range(1000):
            archive.writestr(f"a-file-with-a-long-name-{number}", b"")
    path.write_bytes(out.getvalue())
    with pytest.raises(ModelUnusable, match="too many files"):
        read_bundle(path, BYTES_MAX)


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_unusual_compression_is_refused(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in Made().contents().items():
            archive.writestr(name, content)
    with pytest.raises(ModelUnusable, match="use deflate"):
        read_bundle(path, BYTES_MAX)
