"""Certificates for servers of tests, made on the spot."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    path: Path  # PEM, the key with it
    sha256: str  # of the DER, in hex


def self_signed(path: Path, host: str = "127.0.0.1", is_rsa: bool = False) -> Certificate:
    """As cameras make their own: nobody vouches for it. Old ones have RSA."""
    key = rsa.generate_private_key(65_537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, plain, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + pem)
    return Certificate(path, made.fingerprint(hashes.SHA256()).hex())
