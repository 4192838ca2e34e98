"""The API's description, from which the UI's types are made: docs/ref/openapi.json and GET /api/openapi.json.

FastAPI describes the routes; the change feed's socket, for which OpenAPI has no word, is added here. `python -m
camserver.services.web.openapi [FOLDER]` writes the file of the checkout; a test fails while it is old.
"""

import json
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from camserver.services.web.routing import NEED, GuardedSocket
from camserver.wire import api

FILE = Path("docs/ref/openapi.json")
_FEED_NOTE = (
    "A WebSocket. Each message from the server is a FeedMessage; clients send nothing. Without `after` it starts "
    "now. Close codes: 4008 too slow, connect again with the last cursor; 4401 signed out; 4403 not permitted any "
    "more; 1012 and 1013 come again a little later."
)


def described(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    document: dict[str, Any] = json.loads(json.dumps(app.openapi()))
    _, messages = models_json_schema(
        [(api.FeedMessage, "serialization")], ref_template="#/components/schemas/{model}"
    )
    for name, schema in messages["$defs"].items():
        document["components"]["schemas"].setdefault(name, schema)
    for route in app.routes:
        if isinstance(route, GuardedSocket):
            document["paths"][route.path] = {"get": _socket(route)}
    return document


def _socket(route: GuardedSocket) -> dict[str, Any]:
    return {
        "summary": "Follow",
        "description": _FEED_NOTE,
        "operationId": route.name,
        "parameters": [
            {"name": "after", "in": "query", "required": False, "schema": {"type": "integer", "minimum": 0}}
        ],
        "responses": {
            "101": {
                "description": "the socket is open",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FeedMessage"}}},
            },
            "default": {
                "description": "what went wrong",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
            },
        },
        NEED: route.needs.value,
    }


def document_text() -> str:
    """What docs/ref/openapi.json holds."""
    from camserver.services.web.app import build_api

    return json.dumps(described(build_api()), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()
    (root / FILE).write_text(document_text(), encoding="utf-8")
