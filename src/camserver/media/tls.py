"""Who a camera's certificate must come from: an authority the machine trusts, or the one certificate that was pinned.

Most cameras have a certificate that they made themselves, for no name or a wrong one. A pin, the SHA-256 of the whole
certificate (DER), says which one it is, and then neither name nor authority nor date matters. There is no way to
have a certificate not checked at all.
"""

import hashlib
import hmac
import re
import socket
import ssl

from camserver.base.errors import BadInput

_PIN = re.compile(r"[0-9a-f]{64}")


class UntrustedCertificate(Exception):
    """A connection that must not be used. `sha256` is what the camera showed, to be pinned by whoever knows it."""

    def __init__(self, message: str, sha256: str) -> None:
        super().__init__(message)
        self.message = message
        self.sha256 = sha256


def clean_pin(text: str) -> str:
    """A pin as it is compared: 64 hex digits. Colons and capitals, as other tools print it, are fine."""
    pin = text.replace(":", "").replace(" ", "").lower()
    if not _PIN.fullmatch(pin):
        raise BadInput("a certificate's pin is its SHA-256, 64 hexadecimal digits")
    return pin


def fingerprint(certificate_der: bytes) -> str:
    return hashlib.sha256(certificate_der).hexdigest()


def context_for(pin: str | None) -> ssl.SSLContext:
    """For a client. With a pin the handshake takes any certificate, and `check_pin` must follow before use."""
    context = ssl.create_default_context()
    if pin is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # Cameras that made their own certificate are often as old as their ciphers.
        context.set_ciphers("DEFAULT:@SECLEVEL=1")
    return context


def check_pin(certificate_der: bytes | None, pin: str) -> None:
    shown = fingerprint(certificate_der or b"")
    if not hmac.compare_digest(shown, pin):
        raise UntrustedCertificate("the camera shows another certificate than the pinned one", shown)


def secure(sock: socket.socket, host: str, pin: str | None) -> ssl.SSLSocket:
    """TLS over a connected socket, verified. UntrustedCertificate or OSError when it can't be had."""
    try:
        secured = context_for(pin).wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise UntrustedCertificate(
            f"the camera's certificate is not trusted: {error.verify_message or 'unknown reason'}",
            # Python hands out no certificate that it did not trust; `shown_certificate` asks for it apart.
            "",
        ) from None
    if pin is not None:
        try:
            check_pin(secured.getpeercert(binary_form=True), pin)
        except UntrustedCertificate:
            secured.close()
            raise
    return secured


def shown_certificate(sock: socket.socket, host: str) -> str:
    """The SHA-256 of what a camera shows, over a connection used for nothing else; empty when it shows none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with context.wrap_socket(sock, server_hostname=host) as looked_at:
            shown = looked_at.getpeercert(binary_form=True)
    except OSError:
        return ""
    return fingerprint(shown) if shown else ""
