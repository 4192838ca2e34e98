"""Errors as answers: {error_code, message, details}, in the reader's language and without anything internal."""

import json
from collections.abc import Collection, Mapping

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from camserver.base.errors import (
    BadInput,
    CamError,
    Conflict,
    Fatal,
    NotFound,
    Reject,
    Retry,
    StoreBusy,
    Unauthenticated,
)
from camserver.base.log import get_logger
from camserver.base.secrets import scrub
from camserver.services.web.field_problems import field_of, fields_at, known_fields, problem_in_words
from camserver.services.web.languages import language_of
from camserver.services.web.messages import Language, message_for
from camserver.wire.api import ErrorAnswer

log = get_logger(__name__)

FIELDS_SHOWN_MAX = 20
# Of those whose known fields are named.
PLACES_SHOWN_MAX = 3
RETRY_AFTER_SEC = 5
RETRY_AFTER_BUSY_SEC = 1
# What a driver or the disk says is for the log: it may name hosts and folders.
_OUTWARD = {
    "store_busy": "the server is busy: no database connection became free in time; try again shortly",
    "store_unavailable": "the database is away at the moment; try again shortly",
    "unavailable": "a part of the server is away at the moment; try again shortly",
    "conflict": "somebody else changed the same thing at the same moment; look again and try again",
}


class WrongMethod(Reject):
    """Its details have the `allowed` ones."""

    code = "wrong_method"
    http_status = 405


class NeedsSocket(Reject):
    code = "needs_socket"
    http_status = 426


class NotJson(Reject):
    code = "not_json"
    http_status = 415


def answer_error(request: HTTPConnection, error: Exception, body: object = None) -> JSONResponse:
    """The answer to a request that failed. `body` is the type of its body, where it has one."""
    language = language_of(request)
    request_id: str = request.state.request_id
    return error_response(_outward(error, request_id, language, body), language)


def told_later(request: HTTPConnection, error: Retry) -> tuple[str, int, Mapping[str, str]]:
    """Words, status and headers of the answer to what may be tried again, for a page that says them."""
    language = language_of(request)
    outward = _outward(error, request.state.request_id, language, None)
    return scrub(message_for(outward, language)), outward.http_status, _headers_of(outward)


def error_response(error: CamError, language: Language) -> JSONResponse:
    body = ErrorAnswer(
        error_code=error.code, message=scrub(message_for(error, language)), details=_plain(error.details)
    )
    return JSONResponse(body.model_dump(), status_code=error.http_status, headers=_headers_of(error))


def _headers_of(error: CamError) -> Mapping[str, str]:
    """What a program reads of an error without its body."""
    if isinstance(error, Retry):
        usual = RETRY_AFTER_BUSY_SEC if isinstance(error, StoreBusy) else RETRY_AFTER_SEC
        return {"Retry-After": str(error.details.get("retry_after_sec", usual))}
    if isinstance(error, Unauthenticated):
        # For this scheme browsers ask nobody for a password, as they would for others.
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, WrongMethod):
        return {"Allow": str(error.details["allowed"])}
    if isinstance(error, NeedsSocket):
        return {"Upgrade": "websocket", "Connection": "Upgrade"}
    return {}


def _outward(error: Exception, request_id: str, language: Language, body: object) -> CamError:
    """The error that is told; what is not for the caller's eyes goes to the log."""
    if isinstance(error, RequestValidationError):
        # FastAPI leaves a body as it came where its type is another one.
        if isinstance(error.body, bytes) and error.body:
            return NotJson(
                "the body does not say that it is JSON; send it with Content-Type: application/json",
                reason="not_json",
            )
        return _bad_fields(error, language, body)
    if isinstance(error, HTTPException):
        return _of_framework(error)
    if isinstance(error, Fatal) or not isinstance(error, CamError):
        log.error("a request failed", exc_info=error)
        return CamError(
            f"something went wrong inside the server; its log says more under {request_id}",
            reason="internal",
            request_id=request_id,
        )
    if isinstance(error, Retry | Conflict) and "reason" not in error.details:
        log.warning("a request could not be served", code=error.code, cause=error.message)
        return type(error)(_OUTWARD.get(error.code, "try again shortly"))
    return error


def _bad_fields(error: RequestValidationError, language: Language, body: object) -> BadInput:
    """Names fields and rules only: the values given may hold a password."""
    problems = error.errors()[:FIELDS_SHOWN_MAX]
    fields = [{"field": field_of(problem), "problem": problem["type"]} for problem in problems]
    told = [
        problem_in_words(field["field"], problem, language) for field, problem in zip(fields, problems, strict=True)
    ]
    unknown = dict.fromkeys(problem["loc"][:-1] for problem in problems if problem["type"] == "extra_forbidden")
    for place in list(unknown)[:PLACES_SHOWN_MAX]:
        known = fields_at(body, place[1:])
        if known is not None:
            told.append(known_fields(known, language, ".".join(map(str, place)) if len(unknown) > 1 else ""))
    named = "; ".join(told)
    return BadInput(f"the request is malformed: {named}", reason="bad_fields", fields=fields, named=named)


def unrouted(error: Exception, method: str, allowed: Collection[str], is_socket: bool) -> Exception:
    """What is told of a request that no route answers, by the methods that its address is asked with."""
    if method in allowed and is_socket:
        return NeedsSocket(
            "this address is a WebSocket: connect to it as one (proxies on the way must let it through), or follow "
            "/api/feed/events without",
            reason="needs_socket",
        )
    if allowed:
        listed = ", ".join(sorted(allowed))
        return WrongMethod(
            f"{method} is not taken at this address; it takes {listed}",
            reason="wrong_method",
            method=method,
            allowed=listed,
        )
    return error


def _of_framework(error: HTTPException) -> CamError:
    if error.status_code == 404:
        return NotFound("there is nothing at this address", reason="no_route")
    return BadInput("the request's body can't be read; send JSON", reason="bad_body")


def _plain(details: object) -> dict[str, object]:
    """Details as JSON holds them."""
    plain: dict[str, object] = json.loads(scrub(json.dumps(details, default=str)))
    return plain
