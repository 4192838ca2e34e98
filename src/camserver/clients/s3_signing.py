"""Signs one request to an S3-compatible store: AWS Signature Version 4 with the key in the Authorization header.

By hand, because archives are addresses that people type: a request must go to the address that was checked, without
redirects, and no S3 library lets its connections be made by others. Pure; sending is done by `archive_s3.py`.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from camserver.domain.deliveries import Hidden

_ALGORITHM = "AWS4-HMAC-SHA256"
# Everything else is percent-encoded, byte by byte; this is what the signature is computed over.
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True)
class S3Key:
    access_key_id: str
    secret_access_key: "Hidden"
    region: str


def path_of(*parts: str) -> str:
    """An absolute path as it is sent and signed, e.g. of a bucket and a key."""
    return "/" + quote("/".join(part.strip("/") for part in parts if part.strip("/")), safe=f"/{_UNRESERVED}")


def signed_headers(
    method: str, url: str, headers: Mapping[str, str], body_sha256: str, key: S3Key, now_ms: int
) -> dict[str, str]:
    """`headers` and those that prove who sends them. `url` is encoded already and has no query."""
    at = datetime.fromtimestamp(now_ms // 1000, UTC)
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(url)
    signed = {
        **{name.lower(): " ".join(value.split()) for name, value in headers.items()},
        "host": parts.netloc,
        "x-amz-content-sha256": body_sha256,
        "x-amz-date": stamp,
    }
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = "\n".join((method, parts.path or "/", "", lines, names, body_sha256))
    scope = f"{at:%Y%m%d}/{key.region}/s3/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"AWS4{key.secret_access_key.reveal()}".encode()
    for step in (f"{at:%Y%m%d}", key.region, "s3", "aws4_request", to_sign):
        secret = hmac.new(secret, step.encode(), hashlib.sha256).digest()
    proof = f"{_ALGORITHM} Credential={key.access_key_id}/{scope},SignedHeaders={names},Signature={secret.hex()}"
    return {**signed, "authorization": proof}
