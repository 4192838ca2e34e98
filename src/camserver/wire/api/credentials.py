"""Replacing the key that encrypts stored passwords."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.shapes import Answer, Asked


class RotationAsked(Asked):
    cursor: Annotated[str, Field(max_length=64)] | None = None  # null: from the beginning


class RotationStep(Answer):
    made_key: bool  # a new key was made just now
    key_id: str  # of the key that encrypts now
    moved: int
    unreadable: int  # encrypted with a key that is not there
    left: int  # not under the new key yet, unreadable ones among them
    next_cursor: str | None  # null: that was all
