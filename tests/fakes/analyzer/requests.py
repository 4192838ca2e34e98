"""Reading requests by the contract: what is not in it is refused with 400, in words."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from aiohttp import web

from tests.fakes.analyzer.answers import Question
from tests.fakes.analyzer.vocabulary import Stored

IMAGE_BYTES_MAX = 5_000_000
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
PROFILES = ("fast", "standard")


class BadRequest(Exception):
    """The request is outside the contract."""


Form = Mapping[str, str | bytes]


async def read_form(request: web.Request) -> Form:
    """The parts of a multipart body: files as bytes, fields as text."""
    if request.content_type != "multipart/form-data":
        raise BadRequest(f"the body is {request.content_type}, not multipart/form-data")
    try:
        posted = await request.post()
    except ValueError as error:
        raise BadRequest(f"the multipart body can't be read: {error}") from error
    form: dict[str, str | bytes] = {}
    for name, value in posted.items():
        if isinstance(value, web.FileField):
            with value.file as file:
                form[name] = file.read()
        else:
            form[name] = value if isinstance(value, str) else bytes(value)
    return form


def read_question(form: Form) -> Question:
    captured_at = _text(form, "captured_at")
    _check_utc(captured_at)
    if (profile := _text_or_none(form, "profile")) is not None and profile not in PROFILES:
        raise BadRequest(f"profile is {profile!r}, not one of {PROFILES}")
    boxes = (_text_or_none(form, "return_bboxes") or "true").lower()
    if boxes not in BOOLEANS:
        raise BadRequest(f"return_bboxes is {boxes!r}, not true or false")
    picture = _picture(form, "infer_image")
    if picture is None:
        raise BadRequest("infer_image is missing")
    return Question(
        camera_id=_text(form, "camera_id"),
        captured_at=captured_at,
        schema_version=_text(form, "schema_version"),
        picture=picture,
        prev_picture=_picture(form, "prev_infer_image"),
        request_id=_text_or_none(form, "request_id"),
        return_bboxes=BOOLEANS[boxes],
        hints=_hints(form),
    )


async def read_vocabulary(request: web.Request, received_at: str) -> Stored:
    try:
        body = await request.json()
    except ValueError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is no JSON object")
    version, schema = body.get("schema_version"), body.get("schema")
    if not isinstance(version, str) or not version:
        raise BadRequest("schema_version is missing or no string")
    if not isinstance(schema, dict):
        raise BadRequest("schema is missing or no object")
    if schema.get("schema_version", version) != version:
        raise BadRequest(f"schema_version {version!r} differs from the schema's own {schema['schema_version']!r}")
    return Stored(version, schema, received_at)


def _text(form: Form, name: str) -> str:
    value = _text_or_none(form, name)
    if not value:
        raise BadRequest(f"{name} is missing or empty")
    return value


def _text_or_none(form: Form, name: str) -> str | None:
    value = form.get(name)
    if isinstance(value, bytes):
        raise BadRequest(f"{name} is a file, not a text")
    return value


def _picture(form: Form, name: str) -> bytes | None:
    value = form.get(name)
    if isinstance(value, str):
        raise BadRequest(f"{name} is a text, not a file")
    if value is not None and len(value) > IMAGE_BYTES_MAX:
        raise BadRequest(f"{name} has {len(value)} bytes, more than {IMAGE_BYTES_MAX}")
    return value


def _check_utc(text: str) -> None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(f"captured_at is {text!r}, not ISO 8601") from error
    if moment.utcoffset() != timedelta(0):
        raise BadRequest(f"captured_at is {text!r}, not in UTC")


def _hints(form: Form) -> Mapping[str, object]:
    text = _text_or_none(form, "hints_json")
    if text is None:
        return {}
    try:
        hints = json.loads(text)
    except ValueError as error:
        raise BadRequest(f"hints_json is no JSON: {error}") from error
    if not isinstance(hints, dict):
        raise BadRequest("hints_json is no JSON object")
    return hints
