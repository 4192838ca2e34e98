"""Signatures are those that the examples of Amazon's S3 reference have."""

import hashlib
from datetime import UTC, datetime

from camserver.base.secrets import Secret
from camserver.clients.s3_signing import S3Key, path_of, signed_headers

KEY = S3Key("AKIAIOSFODNN7EXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1")
NOW_MS = round(datetime(2013, 5, 24, tzinfo=UTC).timestamp() * 1000)
HOST = "https://examplebucket.s3.amazonaws.com"


def signature(headers: dict[str, str]) -> str:
    return headers["authorization"].rpartition("Signature=")[2]


def test_getting_a_part_of_an_object() -> None:
    empty = hashlib.sha256(b"").hexdigest()
    headers = signed_headers("GET", f"{HOST}/test.txt", {"Range": "bytes=0-9"}, empty, KEY, NOW_MS)
    assert signature(headers) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
    )


def test_putting_an_object_with_a_name_that_must_be_encoded() -> None:
    body = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
    given = {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}
    headers = signed_headers("PUT", f"{HOST}{path_of('test$file.text')}", given, body, KEY, NOW_MS)
    assert signature(headers) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


def test_a_path_is_encoded_once_and_as_it_is_signed() -> None:
    assert path_of("bucket", "a+b/c d/é~.jpg") == "/bucket/a%2Bb/c%20d/%C3%A9~.jpg"
    assert path_of("bucket", "", "/x/") == "/bucket/x"


def test_the_secret_is_in_no_header() -> None:
    headers = signed_headers("GET", f"{HOST}/x", {}, "0" * 64, KEY, NOW_MS)
    assert not any(KEY.secret_access_key.reveal() in value for value in headers.values())
