"""The model.toml of a bundle: what the model is called, what runs it, and the hash of each of its files."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from camserver.services.analyzer.model_form import FileName, Labels, OnnxForm, Table, parse_table

MANIFEST = "model.toml"
SIGNATURE = "model.sig"
FILES_MAX = 20

# Stands for the model that comes with camserver where one is named.
SHIPPED = "default"
# Stand for what the settings of these names say.
MODEL_PATH, FAST_MODEL_PATH, REMOTE = "model_path", "fast_model_path", "remote_url"
RESERVED = (SHIPPED, MODEL_PATH, FAST_MODEL_PATH, REMOTE)
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}\Z"
# Numbers, so that the newer of two can be told.
VERSION = r"^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,3}\Z"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1, max_length=200)]


def _name(text: str) -> str:
    if not re.match(NAME, text) or text in RESERVED:
        reserved = ", ".join(RESERVED)
        raise ValueError(f"a name has up to 64 of a-z, 0-9, dot, underscore and hyphen, and is none of {reserved}")
    return text


def _version(text: str) -> str:
    if not re.match(VERSION, text):
        raise ValueError("a version is up to four numbers with dots between, such as 1.4.0")
    return text


class Manifest(Table):
    name: Annotated[str, AfterValidator(_name)]
    version: Annotated[str, AfterValidator(_version)]
    runtime: Literal["litert", "onnx"]
    licence: Text
    model: FileName
    files: Annotated[dict[FileName, Sha256], Field(min_length=1, max_length=FILES_MAX)]
    labels: Labels | None = None
    labels_file: FileName | None = None
    onnx: OnnxForm | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name in (self.model, self.labels_file):
            if name is not None and name not in self.files:
                raise ValueError(f"{name} is not among files")
        if MANIFEST in self.files or SIGNATURE in self.files:
            raise ValueError(f"{MANIFEST} and {SIGNATURE} can't be among files")
        if self.labels is not None and self.labels_file is not None:
            raise ValueError("give either labels or labels_file")
        if self.runtime == "onnx" and self.onnx is None:
            raise ValueError("a model for onnx needs the table [onnx]")
        if self.runtime != "onnx" and self.onnx is not None:
            raise ValueError("the table [onnx] is for the runtime onnx")
        return self

    @property
    def number(self) -> tuple[int, ...]:
        return number_of(self.version)


def number_of(version: str) -> tuple[int, ...]:
    """What versions are compared by: 1.10 is newer than 1.9, and 1.0 is 1."""
    parts = [int(part) for part in version.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def parse_manifest(content: bytes) -> Manifest:
    """BadInput names the first key that is wrong."""
    return parse_table(Manifest, content, MANIFEST)
