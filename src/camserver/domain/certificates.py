"""What a worker's certificate says, what it may be used for at a moment, and when it is renewed (decision 42).

    issued ──── a third is over: the worker renews ──── not_after ──── grace ends
    |---------------- everything -----------------------|-- renew only --|  nothing

A revoked certificate may nothing, whatever its times. Keys, signatures and rows are dealt with elsewhere.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.policy import setting

DAY_MS = 86_400_000
SCHEME = "camserver"
_URI = re.compile(
    rf"{SCHEME}://(?P<tenant>[0-9A-Za-z-]{{1,36}})/(?P<site>[0-9A-Za-z-]{{1,36}})"
    r"/(?P<worker_id>[A-Za-z0-9][A-Za-z0-9._-]{0,63})"
)


@dataclass(frozen=True, slots=True)
class CertificatePolicy:
    """The certificates by which workers at other sites sign in."""

    lifetime_days: int = setting(
        30,
        "How long a worker's certificate lives. The worker renews it when a third of that is over.",
        min=1,
        max=365,
    )
    renew_grace_days: int = setting(
        90, "How long after its end a certificate may still be renewed, and do nothing else.", min=0, max=365
    )
    token_ttl_sec: int = setting(
        3600, "How long a token of `camserver worker token` works when nothing else is said.", min=60, max=604_800
    )

    @property
    def lifetime_ms(self) -> int:
        return self.lifetime_days * DAY_MS

    @property
    def renew_grace_ms(self) -> int:
        return self.renew_grace_days * DAY_MS


class Use(StrEnum):
    WORK = "work"  # everything a worker does
    RENEW = "renew"  # nothing but asking for the next one
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Validity:
    not_before_ms: int
    not_after_ms: int


def use_of(validity: Validity, revoked: bool, now_ms: int, policy: CertificatePolicy) -> Use:
    """What a certificate of our CA may be used for now."""
    if revoked or now_ms < validity.not_before_ms:
        return Use.NOTHING
    if now_ms < validity.not_after_ms:
        return Use.WORK
    return Use.RENEW if now_ms < validity.not_after_ms + policy.renew_grace_ms else Use.NOTHING


def renewal_due_ms(validity: Validity) -> int:
    """When a third of its life is over: two thirds are left for a server or a line that is away."""
    return validity.not_before_ms + (validity.not_after_ms - validity.not_before_ms) // 3


@dataclass(frozen=True, slots=True)
class WorkerName:
    """Whom a certificate names. Tenant and site are their public ids."""

    tenant: str
    site: str
    worker_id: str

    @property
    def uri(self) -> str:
        return f"{SCHEME}://{self.tenant}/{self.site}/{self.worker_id}"


def name_in(uri: str) -> WorkerName | None:
    """The worker that a certificate's URI names; None when it is no such URI."""
    found = _URI.fullmatch(uri)
    return None if found is None else WorkerName(**found.groupdict())
