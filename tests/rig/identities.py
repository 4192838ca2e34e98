"""Identities of workers, made on the spot by a CA of one's own."""

from camserver.base.certificates import Authority, key_pem, load_authority, make_authority, new_key, request_for
from camserver.domain.certificates import DAY_MS, WorkerName
from camserver.services.worker.identity_file import Enrolled, put_together
from tests.rig.clock import START_MS


def new_authority() -> Authority:
    return load_authority(make_authority(), "the test's CA")


def new_identity(
    name: WorkerName, authority: Authority | None = None, not_before_ms: int = START_MS, days: int = 30
) -> Enrolled:
    signer = authority or new_authority()
    key = new_key()
    issued = signer.for_worker(request_for(key), name.uri, not_before_ms, not_before_ms + days * DAY_MS)
    return put_together(key_pem(key), issued.pem, signer.pem)
