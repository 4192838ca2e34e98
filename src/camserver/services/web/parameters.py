"""What a handler is given of a request: the values in its path and query and its body, checked as the handler says.

FastAPI finds out what each parameter is like with every request, which for a search with a dozen filters took longer
than to search. Here that is found out once, when the route is made; each value is checked by the same validator, and
what is wrong is told in the same words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson
from fastapi import params
from fastapi._compat import ModelField, field_annotation_is_sequence
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import Request

from camserver.base.errors import BadInput

JSON = "application/json"
NAME_SHOWN_MAX = 64


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    alias: str
    place: str  # path, query
    many: bool
    is_required: bool
    default: Any
    field: ModelField

    def read(self, given: Mapping[str, list[str]], values: dict[str, Any], errors: list[Any]) -> None:
        found = given.get(self.alias)
        if found is None:
            if self.is_required:
                errors.append({"type": "missing", "loc": (self.place, self.alias), "msg": "Field required"})
            else:
                # A list of a handler's own, which it may change.
                values[self.name] = [*self.default] if self.many and self.default is not None else self.default
            return
        value, wrong = self.field.validate(found if self.many else found[-1], loc=(self.place, self.alias))
        if wrong:
            errors += wrong
        else:
            values[self.name] = value


class Parameters:
    """Of a handler, and of what it depends on."""

    def __init__(self, dependant: Dependant, gives_call: bool = False) -> None:
        """`gives_call`: where a request is asked for, its call is given."""
        self._path = [_parameter(field, "path") for field in dependant.path_params]
        self._query = [_parameter(field, "query") for field in dependant.query_params]
        self._request_name = dependant.request_param_name
        self._gives_call = gives_call
        self._body = dependant.body_params[0] if dependant.body_params else None
        self._parts: list[tuple[str | None, Callable[..., Any], Parameters]] = [
            (part.name, _call_of(part), Parameters(part)) for part in dependant.dependencies
        ]

    async def read(self, request: Request) -> dict[str, Any]:
        """The handler's arguments; RequestValidationError when something is wrong with them, or ValueError when its
        body is no JSON, RecursionError when it is too deep."""
        query: dict[str, list[str]] = {}
        for name, value in _pairs(request.scope["query_string"]):
            query.setdefault(name, []).append(value)
        errors: list[Any] = []
        values = await self._read(request, query, errors)
        if self._body is not None:
            given = orjson.loads(await request.body())
            values[self._body.name], wrong = self._body.validate(given, loc=("body",))
            errors += wrong or ()
        if errors:
            raise RequestValidationError(errors)
        return values

    async def _read(self, request: Request, query: Mapping[str, list[str]], errors: list[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, call, part in self._parts:
            before = len(errors)
            given = await part._read(request, query, errors)
            if len(errors) == before and name is not None:
                values[name] = await call(**given)
        if self._path:
            path = {name: [str(value)] for name, value in request.scope["path_params"].items()}
            for parameter in self._path:
                parameter.read(path, values, errors)
        for parameter in self._query:
            parameter.read(query, values, errors)
        if self._request_name is not None:
            values[self._request_name] = request.scope["state"]["call"] if self._gives_call else request
        return values


class QueryNames:
    """What a route knows of the part of an address behind the question mark. A filter that is written wrong and then
    left out would be answered with everything, so others are refused; so is a second value of what takes one, since
    only one of them could be heeded."""

    def __init__(self, dependant: Dependant) -> None:
        fields = _query_fields(dependant)
        self._known = frozenset(field.alias for field in fields)
        self._lists = frozenset(
            one.alias for one in fields if field_annotation_is_sequence(one.field_info.annotation)
        )

    def check(self, query_string: bytes) -> None:
        given = set()
        for name, _ in _pairs(query_string):
            if name not in self._known:
                self._refuse(name[:NAME_SHOWN_MAX])
            if name in given and name not in self._lists:
                raise BadInput(
                    f"{name} is given more than once and takes one value; leave the others out",
                    reason="parameter_twice",
                    named=name,
                )
            given.add(name)

    def _refuse(self, name: str) -> None:
        if not self._known:
            raise BadInput(
                f"{name} is not known here: this address takes nothing behind a question mark; leave it out",
                reason="no_parameters",
                named=name,
            )
        known = ", ".join(sorted(self._known))
        raise BadInput(
            f"{name} is not known here; known behind the question mark are {known}",
            reason="unknown_parameter",
            named=name,
            known=known,
        )


def _query_fields(dependant: Dependant) -> list[ModelField]:
    return [*dependant.query_params, *(field for part in dependant.dependencies for field in _query_fields(part))]


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    return parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)


def reads_address_only(dependant: Dependant) -> bool:
    """Whether nothing but the address, and the request itself, is asked for."""
    return not dependant.body_params and _reads_nothing_else(dependant)


def reads_body(dependant: Dependant) -> bool:
    """Whether a model of the whole body is asked for, the address and the request itself, and nothing else."""
    if len(dependant.body_params) != 1 or not _reads_nothing_else(dependant):
        return False
    info = dependant.body_params[0].field_info
    is_model = isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
    is_whole = isinstance(info, params.Body) and not isinstance(info, params.Form) and not info.embed
    return is_model and is_whole and info.is_required()


def body_type(dependant: Dependant) -> object:
    """What a route takes as its whole body; None when it takes none."""
    return dependant.body_params[0].field_info.annotation if len(dependant.body_params) == 1 else None


def _reads_nothing_else(dependant: Dependant) -> bool:
    others = (
        dependant.header_params,
        dependant.cookie_params,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
        dependant.http_connection_param_name,
        dependant.websocket_param_name,
        dependant.security_scopes_param_name,
    )
    return not any(others) and all(reads_address_only(part) for part in dependant.dependencies)


def _call_of(part: Dependant) -> Callable[..., Any]:
    assert part.call is not None
    return part.call


def _parameter(field: ModelField, place: str) -> _Parameter:
    info = field.field_info
    return _Parameter(
        name=field.name,
        alias=field.alias,
        place=place,
        many=field_annotation_is_sequence(info.annotation),
        is_required=info.is_required(),
        default=None if info.is_required() else field.default,
        field=field,
    )
