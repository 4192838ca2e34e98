"""The words of an MQTT receiver: what can stand in its config."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from camserver.base.errors import BadInput
from camserver.domain.mqtt_topics import PREFIX_MAX_CHARS, check_prefix

_HOST = re.compile(r"[A-Za-z0-9_.:%-]+")


def _prefix(value: str) -> str:
    try:
        return check_prefix(value)
    except BadInput as error:
        raise ValueError(error.message) from None


def _optional_prefix(value: str) -> str:
    return _prefix(value) if value else ""


def _host(value: str) -> str:
    if _HOST.fullmatch(value) is None:
        raise ValueError("must be a host name or an address, without mqtt:// and port")
    return value


def _certificate(value: str) -> str:
    if value and "-----BEGIN CERTIFICATE-----" not in value:
        raise ValueError("must be a certificate in PEM, beginning with -----BEGIN CERTIFICATE-----")
    return value


Host = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_host)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Prefix = Annotated[str, Field(max_length=PREFIX_MAX_CHARS), AfterValidator(_prefix)]
OptionalPrefix = Annotated[str, Field(max_length=PREFIX_MAX_CHARS), AfterValidator(_optional_prefix)]
Certificate = Annotated[str, Field(max_length=20_000), AfterValidator(_certificate)]
# One level of a topic.
Installation = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")]
ClientId = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.-]*$")]
