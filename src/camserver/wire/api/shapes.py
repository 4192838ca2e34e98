"""What all messages share: how a request and an answer are read, and words that several use."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

CAMERA_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# Of frames, events and incidents; looser than a UUID, strict about what may stand in a path or a signature.
UUID_PATTERN = r"^[A-Za-z0-9-]{1,36}$"
Language = Literal["ja", "en"]
# infer: the small one that is analyzed, of every look that worked; full: as the camera gave it, of looks that passed.
PictureKind = Literal["infer", "full"]
# thumb: a small one, made of those on request.
ShownKind = Literal["infer", "full", "thumb"]
# `clip` of a frame is that of its event.
MediaKind = Literal["infer", "full", "thumb", "clip"]


# What moments may be told as: 64 bits hold them on every database.
MOMENT_MAX_MS = 2**62


def _take_as_written(schema: Any) -> None:
    """Strict where JSON has a word of its own. Texts that become something else here (names of kinds) are left."""
    if isinstance(schema, dict):
        if schema.get("type") in ("int", "float", "bool"):
            schema["strict"] = True
        for part in schema.values():
            _take_as_written(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _take_as_written(part)


class Asked(BaseModel):
    """A request's body. Unknown fields are refused, so that a misspelt one is not ignored.

    Numbers and truths are taken as JSON writes them: neither true nor "5" is a number, and 1 is not true.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _take_as_written(schema)
        return schema


class Answer(BaseModel):
    # Every field is always sent, so readers of the description need not ask whether it is there.
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class ErrorAnswer(Answer):
    """Every error's body. `error_code` and `details` are for programs, `message` is for people, in their language."""

    error_code: str
    message: str
    details: dict[str, object] = {}


class Label(Answer):
    """A word of the vocabulary, or one of ours, as people read it."""

    id: str
    label_ja: str
    label_en: str


class Tag(Label):
    """A tag. Those of the group investigation_only are shown only to people who may investigate."""

    group: Literal["notify_safe", "investigation_only"]
    severity_default: int
