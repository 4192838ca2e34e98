"""X.509 as camserver uses it: a CA of its own, certificates for its worker port and for workers, and requests.

All keys are EC P-256. Worker certificates are for clients only and the port's for servers only, so that neither can
stand in for the other. Who gets one, and whether it still counts, is decided elsewhere; nothing here asks a clock.
"""

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from camserver.base.errors import BadInput, DataUnusable

CA_NAME = "camserver worker CA"
# The CA has no end of its own (RFC 5280, 4.1.2.5): it is replaced when people replace it.
_CA_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
_NO_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_HASH = hashes.SHA256


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was just signed."""

    pem: str
    serial: str
    sha256: str
    not_before_ms: int
    not_after_ms: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What a certificate says of itself. That our CA signed it was checked by TLS."""

    serial: str
    uri: str  # empty: none
    not_before_ms: int
    not_after_ms: int


class Authority:
    """The CA: its key and its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        self.sha256 = certificate.fingerprint(_HASH()).hex()

    def for_server(self, names: Sequence[str], not_before_ms: int, not_after_ms: int) -> str:
        """Key, certificate and CA in one PEM text, for a server that is reached under these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(key.public_key(), "camserver", not_before_ms, not_after_ms)
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        signed = self._signed(builder, ExtendedKeyUsageOID.SERVER_AUTH)
        return key_pem(key) + signed.public_bytes(serialization.Encoding.PEM).decode() + self.pem

    def for_worker(self, request_pem: str, uri: str, not_before_ms: int, not_after_ms: int) -> Issued:
        """A certificate for the key that signed the request. What else the request says does not count."""
        builder = self._builder(_requested_key(request_pem), "camserver worker", not_before_ms, not_after_ms)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False
        )
        signed = self._signed(builder, ExtendedKeyUsageOID.CLIENT_AUTH)
        return Issued(
            signed.public_bytes(serialization.Encoding.PEM).decode(),
            _serial(signed),
            signed.fingerprint(_HASH()).hex(),
            _ms(signed.not_valid_before_utc),
            _ms(signed.not_valid_after_utc),
        )

    def _builder(
        self, key: ec.EllipticCurvePublicKey, name: str, not_before_ms: int, not_after_ms: int
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_common_name(name))
            .issuer_name(self._certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_moment(not_before_ms))
            .not_valid_after(_moment(not_after_ms))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(_usage(digital_signature=True), critical=True)
        )

    def _signed(self, builder: x509.CertificateBuilder, purpose: x509.ObjectIdentifier) -> x509.Certificate:
        public = self._key.public_key()
        return (
            builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
            .sign(self._key, _HASH())
        )


def make_authority() -> str:
    """A new CA: its key and its certificate in one PEM text."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _common_name(CA_NAME)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_CA_BEGIN)
        .not_valid_after(_NO_END)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, _HASH())
    )
    return key_pem(key) + certificate.public_bytes(serialization.Encoding.PEM).decode()


def load_authority(pem: str, where: str) -> Authority:
    """The CA of a PEM text; `where` names it in errors."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
        certificate = x509.load_pem_x509_certificate(pem.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise DataUnusable(
            f"{where} does not hold a private key and a certificate in PEM; restore it from a backup, because "
            "without it every worker must be enrolled again"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _is_ca(certificate):
        raise DataUnusable(f"{where} must hold an EC key and a certificate that may sign others")
    if key.public_key() != certificate.public_key():
        raise DataUnusable(f"key and certificate in {where} do not belong together")
    return Authority(key, certificate)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def request_for(key: ec.EllipticCurvePrivateKey) -> str:
    """A request that proves the key and asks for nothing else: the server knows whom it speaks with."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_common_name("camserver worker"))
    return builder.sign(key, _HASH()).public_bytes(serialization.Encoding.PEM).decode()


def belongs_to(certificate_pem: str, key: ec.EllipticCurvePrivateKey) -> bool:
    """Whether a certificate is for this key."""
    try:
        return x509.load_pem_x509_certificate(certificate_pem.encode()).public_key() == key.public_key()
    except ValueError:
        return False


def read_der(der: bytes) -> Seen:
    return _seen(x509.load_der_x509_certificate(der))


def read_pem(pem: str) -> Seen:
    """The first certificate of a text. BadInput when there is none."""
    try:
        return _seen(x509.load_pem_x509_certificate(pem.encode()))
    except ValueError:
        raise BadInput("there is no certificate in this text") from None


def fingerprint(pem: str) -> str:
    """sha256 of the first certificate of a text, in hex. BadInput when there is none."""
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
    except ValueError:
        raise BadInput("there is no certificate in this text") from None
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()


def _seen(certificate: x509.Certificate) -> Seen:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, ValueError):
        uris = []
    return Seen(
        _serial(certificate),
        uris[0] if len(uris) == 1 else "",
        _ms(certificate.not_valid_before_utc),
        _ms(certificate.not_valid_after_utc),
    )


def _requested_key(request_pem: str) -> ec.EllipticCurvePublicKey:
    try:
        request = x509.load_pem_x509_csr(request_pem.encode())
        key = request.public_key()
        is_proven = request.is_signature_valid
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        raise BadInput("the request for a certificate is no PEM that can be read") from None
    if not is_proven:
        raise BadInput("the request for a certificate is not signed by its own key")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadInput("the request for a certificate must be for an EC key on the curve P-256")
    return key


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError:
        raise BadInput(f"{text!r} can't be a name in a certificate; write international names in ASCII") from None


def _usage(digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _serial(certificate: x509.Certificate) -> str:
    return f"{certificate.serial_number:040x}"


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
