"""The API keeps to its description, whoever asks and whatever is sent.

schemathesis makes requests out of the OpenAPI document, some as it allows and some as it forbids. They go to the
application itself, over rows of every kind, as an administrator and again as a viewer. Nothing may end in a 5xx,
whatever is answered must be described, what the description forbids must be refused, and a refusal has the one shape
of errors and names the field.
"""

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

import hypothesis
import pytest
import requests
import schemathesis
from pydantic import ValidationError
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema

from camserver.services.web import service
from camserver.services.web.access import SESSION_COOKIE
from camserver.services.web.calls import Web
from camserver.services.web.edge import App, Message
from camserver.services.web.openapi import document_text
from camserver.services.web.ui_files import UiFiles
from camserver.wire.api import ErrorAnswer
from tests.rig.effort import THOROUGH, times
from tests.services.web.rig import PASSWORD
from tests.services.web.test_matrix import Town, town, web

__all__ = ["town", "web"]  # fixtures

# Of the requests at the edges of an operation's fields every so many-th is made, and so many random ones. Random ones
# that break the description take long to make, and the edges hold many of them.
EVERY = times(6, 1)
EXAMPLES = times(2, 10)
RANDOM_MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE) if THOROUGH else (GenerationMode.POSITIVE,)
SEED = 8
# For a server that does not answer at all; the clock of tests stands still.
ANSWER_SEC = 60
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
TOO_LONG = (413, 414)
# A socket, which OpenAPI has no word for; tests/services/web/test_feed.py.
SOCKETS = {"GET /api/feed"}
# For people without the UI: what is wrong is said on a page, too.
PAGES = {"GET /share/{token}"}
# These end the sign-in that asks, or the person's own account: last, so that the others are asked by somebody.
LAST = ("DELETE ", "POST /api/session")


@cache
def description() -> OpenApiSchema:
    return schemathesis.openapi.from_dict(json.loads(document_text()))


@cache
def requests_made() -> list[Case]:
    """The same in every run, and for everybody who asks."""
    operations = [found.ok() for found in description().get_all_operations()]
    operations.sort(key=lambda one: one.label.startswith(LAST))
    return [case for one in operations if one.label not in SOCKETS for case in (*_edges(one), *_random(one))]


def _edges(operation: APIOperation) -> Iterator[Case]:
    """The least, the most, one more, nothing, another type: field by field."""
    config = operation.schema.config.generation_for(operation=operation, phase="coverage")
    cases = operation.schema.iter_coverage_cases(
        operation, generation_modes=list(GenerationMode), generation_config=config
    )
    # Other methods are answered by other operations, or by none.
    own = (case for case in cases if case.method == operation.method.upper())
    return itertools.islice(own, 0, None, EVERY)


def _random(operation: APIOperation) -> Iterator[Case]:
    """Whatever else the description allows and forbids."""
    for mode in RANDOM_MODES:
        made: list[Case] = []

        @hypothesis.seed(SEED)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(operation.as_strategy(generation_mode=mode, feedback=FeedbackSources()))
        def collect(case: Case) -> None:
            made.append(case)  # noqa: B023

        try:
            collect()
        except hypothesis.errors.Unsatisfiable:
            # Nothing is asked for that could be given wrongly.
            assert mode is GenerationMode.NEGATIVE, operation.label
        yield from made


@dataclass
class Asker:
    """Speaks to the application as a server does, with a person's cookie."""

    app: App
    town: Town
    login: str
    cookie: str = ""
    csrf_token: str = ""

    async def sign_in(self) -> None:
        body = json.dumps({"login": self.login, "password": PASSWORD}).encode()
        headers = {"content-type": "application/json"}
        status, sent, content = await self._exchange("POST", "/api/session", headers, body, "127.0.0.1")
        assert status == 201, content
        [self.cookie] = [
            value.partition(";")[0]
            for name, value in sent
            if name == "set-cookie" and value.startswith(SESSION_COOKIE)
        ]
        self.csrf_token = json.loads(content)["csrf_token"]

    async def ask(self, case: Case) -> Response:
        made = requests.Request(**case.as_transport_kwargs(base_url="http://127.0.0.1")).prepare()
        assert made.url is not None
        assert made.method is not None
        body = made.body.encode() if isinstance(made.body, str) else made.body or b""
        target = made.url.removeprefix("http://127.0.0.1")
        headers = {name.lower(): value for name, value in made.headers.items()}
        status, sent, content = await self._exchange(made.method, target, headers, body)
        together: dict[str, list[str]] = {}
        for name, value in sent:
            together.setdefault(name, []).append(value)
        return Response(status, together, content, made, elapsed=0.0, verify=False)

    async def _exchange(
        self, method: str, target: str, headers: dict[str, str], body: bytes, address: str = "192.0.2.7"
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        parts = urlsplit(target)
        given = {**headers, "host": "127.0.0.1", "cookie": self.cookie, "x-csrf-token": self.csrf_token}
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode("ascii"),
            "root_path": "",
            "query_string": parts.query.encode("ascii"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()],
            "client": (address, 50_000),
            "server": ("127.0.0.1", 80),
        }
        asked: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        over = asyncio.Event()
        answered: list[Message] = []

        async def receive() -> Message:
            if asked:
                return asked.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            answered.append(message)
            if message["type"] == "http.response.body" and _has_no_end(answered[0]):
                over.set()

        async with asyncio.timeout(ANSWER_SEC):
            await self.app(scope, receive, send)
        start, *pieces = answered
        sent = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
        return start["status"], sent, b"".join(piece.get("body", b"") for piece in pieces)


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> list[App]:
    """The applications that services are started with."""
    kept: list[App] = []
    build = service.build_app

    def build_and_keep(web: Web, ui: UiFiles) -> App:
        kept.append(build(web, ui))
        return kept[-1]

    monkeypatch.setattr(service, "build_app", build_and_keep)
    return kept


def _has_no_end(start: Message) -> bool:
    """Such an answer is left after its first piece."""
    return any(name == b"content-type" and b"event-stream" in value for name, value in start["headers"])


def aimed(case: Case, number: int, town: Town) -> Case:
    """Every second request names something that is there, where its address names anything."""
    meta = case.meta
    path = None if meta is None else meta.components.get(ParameterLocation.PATH)
    if number % 2 and path is not None and path.mode is GenerationMode.POSITIVE:
        for name in case.path_parameters:
            case.path_parameters[name] = town.named(name, "near")
    # The clock stands still, so an answer that waits would never come.
    case.query.pop("wait_sec", None)
    return case


def problems(case: Case, reply: Response) -> Iterator[str]:
    # What is too long is refused before it is looked at; schemathesis does not count these among the refusals.
    checks = [check for check in CHECKS if reply.status_code not in TOO_LONG or check is not negative_data_rejection]
    try:
        case.validate_response(reply, checks=checks)
    except FailureGroup as found:
        yield from (str(one) for one in found.exceptions)
    described = case.operation.definition.raw["responses"]
    if reply.status_code < 400:
        if str(reply.status_code) not in described:
            yield f"{reply.status_code} is not described"
        return
    if str(reply.status_code) in described or case.operation.label in PAGES:
        return
    try:
        error = ErrorAnswer.model_validate_json(reply.content)
    except ValidationError:
        yield "an error of another shape"
        return
    if not error.message:
        yield "an error without a message"
    if error.details.get("reason") == "bad_fields" and not error.details.get("fields"):
        yield "a wrong field is not named"


@pytest.mark.parametrize(
    ("status", "kind", "content"),
    [
        (500, "application/json", b'{"error_code": "internal", "message": "m", "details": {}}'),
        (200, "application/json", b"{}"),
        (200, "text/html", b"<p>"),
        (202, "application/json", b'{"cameras": [], "next_after": null}'),
        (400, "application/json", b'{"detail": "m"}'),
        (400, "application/json", b'{"error_code": "bad_input", "message": "", "details": {}}'),
        (400, "application/json", b'{"error_code": "a", "message": "m", "details": {"reason": "bad_fields"}}'),
    ],
)
def test_what_is_not_as_described_is_noticed(status: int, kind: str, content: bytes) -> None:
    case = description()["/api/cameras"]["GET"].Case()
    sent = requests.Request("GET", "http://127.0.0.1/api/cameras").prepare()
    assert list(problems(case, Response(status, {"content-type": [kind]}, content, sent, elapsed=0.0, verify=False)))


@pytest.mark.parametrize("login", ["viewer", "installation"])
async def test_the_api_keeps_to_its_description(apps: list[App], town: Town, login: str) -> None:
    found: list[str] = []
    asker = Asker(apps[0], town, login)
    await asker.sign_in()
    for number, case in enumerate(requests_made()):
        reply = await asker.ask(aimed(case, number, town))
        if reply.status_code == 401:
            await asker.sign_in()
            reply = await asker.ask(case)
        found += [f"{case.operation.label} {case!r}: {one}" for one in problems(case, reply)]
    assert not found, f"{len(found)} problems:\n" + "\n".join(found)
