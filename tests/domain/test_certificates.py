"""What a certificate may do at a moment, when it is renewed, and whom it names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.certificates import (
    DAY_MS,
    CertificatePolicy,
    Use,
    Validity,
    WorkerName,
    name_in,
    renewal_due_ms,
    use_of,
)

POLICY = CertificatePolicy()
ISSUED = 1_800_000_000_000
MONTH = Validity(ISSUED, ISSUED + 30 * DAY_MS)


@pytest.mark.parametrize(
    ("after_days", "use"),
    [
        (-0.001, Use.NOTHING),
        (0, Use.WORK),
        (29.999, Use.WORK),
        (30, Use.RENEW),
        (119.999, Use.RENEW),
        (120, Use.NOTHING),
        (4000, Use.NOTHING),
    ],
)
def test_what_a_certificate_may_do(after_days: float, use: Use) -> None:
    now_ms = ISSUED + round(after_days * DAY_MS)
    assert use_of(MONTH, False, now_ms, POLICY) is use
    assert use_of(MONTH, True, now_ms, POLICY) is Use.NOTHING, "a revoked one may nothing at any time"


def test_it_is_renewed_when_a_third_is_over() -> None:
    assert renewal_due_ms(MONTH) == ISSUED + 10 * DAY_MS


@given(st.integers(1, 365), st.integers(0, 365), st.integers(0, 800 * DAY_MS))
def test_a_worker_that_renews_in_time_never_stops_working(lifetime: int, grace: int, later_ms: int) -> None:
    policy = CertificatePolicy(lifetime_days=lifetime, renew_grace_days=grace)
    life = Validity(ISSUED, ISSUED + policy.lifetime_ms)
    assert use_of(life, False, renewal_due_ms(life), policy) is Use.WORK
    uses = [use_of(life, False, ISSUED + ms, policy) for ms in sorted((0, later_ms, later_ms + DAY_MS))]
    order = [Use.WORK, Use.RENEW, Use.NOTHING]
    assert uses == sorted(uses, key=order.index), "what it may do only gets less"


WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=36)
WORKER = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)


@given(WORD, WORD, WORKER)
def test_a_name_survives_its_uri(tenant: str, site: str, worker_id: str) -> None:
    name = WorkerName(tenant, site, worker_id)
    assert name_in(name.uri) == name


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://t/s/w",
        "camserver://t/s",
        "camserver://t/s/w/x",
        "camserver://t//w",
        "camserver://t/s/.w",
        "camserver://t/s/w\n",
        "camserver://t/s/" + "w" * 65,
    ],
)
def test_other_uris_name_nobody(uri: str) -> None:
    assert name_in(uri) is None
