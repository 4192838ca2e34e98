"""The CA and what it signs: for whom, for what, and what it refuses to sign."""

import base64
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from camserver.base import tls
from camserver.base.certificates import (
    belongs_to,
    fingerprint,
    key_pem,
    load_authority,
    make_authority,
    new_key,
    read_pem,
    request_for,
)
from camserver.base.errors import BadInput, DataUnusable
from camserver.base.secrets import load_or_make
from tests.rig.identities import new_authority

NOW_MS = 1_800_000_000_000


def test_a_worker_gets_what_the_server_says_and_nothing_it_asked_for() -> None:
    authority = new_authority()
    key = new_key()
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root of all")])
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    greedy = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    issued = authority.for_worker(greedy, "camserver://t/s/w", NOW_MS, NOW_MS + 1_000_000)
    made = x509.load_pem_x509_certificate(issued.pem.encode())
    assert made.subject.rfc4514_string() == "CN=camserver worker"
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    seen = read_pem(issued.pem)
    assert (seen.uri, seen.serial) == ("camserver://t/s/w", issued.serial)
    assert (seen.not_before_ms, seen.not_after_ms) == (NOW_MS, NOW_MS + 1_000_000)
    assert len(issued.serial) == 40
    assert issued.sha256 == fingerprint(issued.pem)
    assert belongs_to(issued.pem, key)
    assert not belongs_to(issued.pem, new_key())


def _other_curve() -> str:
    return request_for(ec.generate_private_key(ec.SECP384R1()))


def _rsa() -> str:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "w")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def _changed() -> str:
    der = bytearray(x509.load_pem_x509_csr(request_for(new_key()).encode()).public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    body = base64.encodebytes(bytes(der)).decode()
    return f"-----BEGIN CERTIFICATE REQUEST-----\n{body}-----END CERTIFICATE REQUEST-----\n"


@pytest.mark.parametrize("request_pem", [_other_curve(), _rsa(), _changed(), "", "nonsense"])
def test_other_requests_are_refused(request_pem: str) -> None:
    with pytest.raises(BadInput, match="request for a certificate"):
        new_authority().for_worker(request_pem, "camserver://t/s/w", NOW_MS, NOW_MS + 1)


def test_a_ca_is_made_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "worker_ca"
    first = load_or_make(path, make=make_authority)
    again = load_or_make(path, make=make_authority)
    assert load_authority(first.reveal(), "a").sha256 == load_authority(again.reveal(), "b").sha256
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_ca_is_refused() -> None:
    authority = new_authority()
    key = new_key()
    leaf = authority.for_worker(request_for(key), "camserver://t/s/w", NOW_MS, NOW_MS + 1)
    for text in ("", authority.pem, key_pem(key) + leaf.pem, key_pem(new_key()) + authority.pem):
        with pytest.raises(DataUnusable, match="the file"):
            load_authority(text, "the file")


def test_a_name_that_no_certificate_can_hold_is_refused() -> None:
    with pytest.raises(BadInput, match="ASCII"):
        new_authority().for_server(["カメラ.example"], NOW_MS, NOW_MS + 1000)


def test_contexts_neither_resume_nor_speak_old_versions() -> None:
    authority = new_authority()
    chain = authority.for_server(["localhost", "127.0.0.1"], NOW_MS, NOW_MS + 1000)
    server = tls.server_context(chain, authority.pem)
    assert (server.num_tickets, server.verify_mode) == (0, ssl.CERT_OPTIONAL)
    assert server.options & ssl.OP_NO_TICKET
    for context in (server, tls.client_context(authority.pem)):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert tls.client_context(authority.pem).check_hostname
