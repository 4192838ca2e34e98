"""Long answers without a model for each of their parts: plain dicts, written as JSON in one go.

A model of every row of a list takes longer than reading the list. What is answered is still of the model that the
OpenAPI document names: tests switch `CHECKED` on, and then every such answer is held against it.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Response
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from camserver.base.errors import Bug

CHECKED = False


def plain_answer(model: type[BaseModel], content: Mapping[str, Any]) -> Response:
    """The answer that an object of `model` with this content would be."""
    body = orjson.dumps(content, default=to_jsonable_python)
    if CHECKED:
        _check(model, body)
    return Response(body, media_type="application/json")


def _check(model: type[BaseModel], body: bytes) -> None:
    expected = model.model_validate_json(body, strict=True).model_dump_json(by_alias=True)
    if json.loads(expected) != json.loads(body):
        raise Bug(f"an answer is not what {model.__name__} would be: {body[:2000]!r}")
