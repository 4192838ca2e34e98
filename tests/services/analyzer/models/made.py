"""Bundles with small real models, made for a test: whole, signed, or wrong in one way."""

import hashlib
import io
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from camserver.base.signing import public_key, sign
from camserver.services.analyzer.models.bundle import Bundle, read_bundle
from tests.services.analyzer.onnx_models import saying

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
PUBLIC = public_key(KEY)
BYTES_MAX = 10_000_000


@cache
def seeing(score: float) -> bytes:
    """A model that sees one person, as sure as that, in every picture."""
    return saying(np.array([[16, 24, 48, 40, score, 0]], np.float32))


@dataclass
class Made:
    """What goes into a bundle; change it before it is written."""

    name: str = "yard"
    version: str = "1.0"
    files: dict[str, bytes] = field(default_factory=lambda: {"model.onnx": seeing(0.9)})
    hashes: dict[str, str] = field(default_factory=dict)  # where they shall be wrong
    more: str = ""
    label: str = "Person"
    key: bytes | None = None
    signature: bytes | None = None

    @property
    def manifest(self) -> bytes:
        listed = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()} | self.hashes
        files = "\n".join(f'"{name}" = "{value}"' for name, value in listed.items())
        head = f'name = "{self.name}"\nversion = "{self.version}"\nruntime = "onnx"\nlicence = "Apache-2.0"\n'
        reading = '[onnx]\noutput = "nms_inside"\nwidth = 64\nheight = 64\n'
        described = f'model = "model.onnx"\nlabels = ["{self.label}"]\n{self.more}\n'
        return f"{head}{described}[files]\n{files}\n{reading}".encode()

    def contents(self) -> dict[str, bytes]:
        made = {**self.files, "model.toml": self.manifest}
        if self.signature is not None:
            made["model.sig"] = self.signature
        elif self.key is not None:
            made["model.sig"] = sign(self.key, self.manifest).encode() + b"\n"
        return made

    def folder(self, path: Path) -> Path:
        path.mkdir(parents=True)
        for name, content in self.contents().items():
            (path / name).write_bytes(content)
        return path

    def zipped(self, inside: str = "") -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.contents().items():
                archive.writestr(inside + name, content)
        return out.getvalue()

    def bundle(self, folder: Path) -> Bundle:
        path = folder / f"{self.name}-{self.version}.zip"
        path.write_bytes(self.zipped())
        return read_bundle(path, BYTES_MAX)
