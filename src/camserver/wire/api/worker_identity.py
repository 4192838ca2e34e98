"""Tokens by which workers at other sites get their certificates, and the end of those."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.delegation import WORKER_ID_PATTERN
from camserver.wire.api.shapes import Answer, Asked


class EnrolmentAsked(Asked):
    site: Annotated[str, Field(max_length=128)] | None = None  # name or id; null: the only one there is
    worker_id: Annotated[str, Field(pattern=WORKER_ID_PATTERN)] | None = None  # null: the worker chooses a new one
    ttl_sec: Annotated[int, Field(ge=60, le=604_800)] | None = None  # null: as in the settings


class Enrolment(Answer):
    token: str  # shown once
    site: str
    worker_id: str | None
    expires_at: int
    ca_sha256: str


class WorkerRevoked(Answer):
    worker_id: str
    certificates: int  # how many were revoked
