"""TLS between workers and the server: both ends trust one CA and nobody else.

No handshake looks at a clock. A worker's box may wake up in 1970, and a server judges a worker's certificate by the
store's time, for each message anew (domain/certificates.py). Tickets are off: a resumed session would bring back a
certificate without showing it.
"""

import os
import ssl

# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which the ssl module has no name for.
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)


def server_context(chain_pem: str, ca_pem: str) -> ssl.SSLContext:
    """For the worker port. A certificate is asked for, and refused unless this CA signed it for clients; coming
    without one is possible, because enrolment has none yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= _NO_CHECK_TIME
    context.load_verify_locations(cadata=ca_pem)
    load_chain(context, chain_pem)
    return context


def client_context(ca_pem: str, chain_pem: str | None = None) -> ssl.SSLContext:
    """For a worker: the server must have a certificate of this CA for the name it is reached under."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION
    context.verify_flags |= _NO_CHECK_TIME
    context.load_verify_locations(cadata=ca_pem)
    if chain_pem is not None:
        load_chain(context, chain_pem)
    return context


def unverified_context() -> ssl.SSLContext:
    """For fetching the CA's certificate before it is known; what comes is checked by its fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load_chain(context: ssl.SSLContext, chain_pem: str) -> None:
    """Gives a context its key and certificate, or others than before; the ssl module takes them from files only, so
    they get one that exists in memory alone."""
    fd = os.memfd_create("chain", os.MFD_CLOEXEC)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            file.write(chain_pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
