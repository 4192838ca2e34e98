"""Copies of pictures in a bucket of any S3-compatible store.

A copy is put with `If-None-Match: *` and carries delivery and hash as metadata, so a repeat finds the first one and
stores nothing twice. Requests go through `outgoing.py`, because people type the address.
"""

import hashlib
import re
from typing import Final
from urllib.parse import urlsplit

from camserver.base.clock import Clock
from camserver.clients.outgoing import ANSWER_MAX_BYTES, Answered, OutgoingHttp
from camserver.clients.s3_signing import S3Key, path_of, signed_headers
from camserver.domain.archive import COPY_MAX_BYTES, Copy, KeepProgress, Stored
from camserver.domain.deliveries import DeliveryError, Receiver, Trouble, trouble_of_status

_EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()
_DELIVERY: Final = "x-amz-meta-camserver-delivery"
_SHA256: Final = "x-amz-meta-sha256"
# Answers are XML. Only this one word of them is ever repeated to people.
_CODE: Final = re.compile(rb"<Code>([A-Za-z.]{1,64})</Code>")
# Nothing that waiting a few seconds would mend.
_FULL: Final = frozenset({"QuotaExceeded", "StorageFull", "XMinioStorageFull", "InsufficientStorage"})
FULL_PAUSE_SEC: Final = 3600.0
# How long a picture may take; a slow line is slower with a picture than with a message.
TIMEOUT_SEC: Final = 60.0

_ADVICE: Final = {
    "NoSuchBucket": "the bucket does not exist; make it, or check its name",
    "InvalidAccessKeyId": "the access key is unknown; check it",
    "SignatureDoesNotMatch": "the secret key is wrong; enter it again",
    "AccessDenied": "the key may not do this; allow it to put, read and delete objects of the bucket",
    "AuthorizationHeaderMalformed": "the region is wrong; check it",
    "PermanentRedirect": "the bucket is in another region; check region and endpoint",
    "RequestTimeTooSkewed": "its clock and this machine's differ by more than 15 minutes; set them right",
}


class S3Archive:
    def __init__(self, http: OutgoingHttp, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    async def store(self, receiver: Receiver, copy: Copy, keep: KeepProgress) -> Stored:
        key = _key_of(receiver, copy.path)
        headers = {
            "content-type": copy.media_type,
            "if-none-match": "*",
            _DELIVERY: copy.delivery_uuid,
            _SHA256: copy.sha256,
        }
        answer = await self._ask(receiver, "PUT", key, headers, copy.data)
        if answer.status == 501:
            # It does not know the condition. The key is of this one picture, so that writing it again does no harm.
            del headers["if-none-match"]
            answer = await self._ask(receiver, "PUT", key, headers, copy.data)
        if answer.status == 412:
            return await self._there(receiver, copy, key, repeat=True)
        if not answer.ok:
            raise _trouble(receiver, answer)
        if not answer.headers.get("ETag"):
            # Every store names what it stored. Whoever does not is asked whether it did.
            return await self._there(receiver, copy, key)
        return Stored(key, {"key": key, "status": answer.status})

    async def read(self, receiver: Receiver, external_id: str) -> bytes | None:
        answer = await self._ask(receiver, "GET", external_id, {}, answer_max_bytes=COPY_MAX_BYTES)
        if answer.status == 404 and _code_of(answer) in ("", "NoSuchKey"):
            return None
        if not answer.ok or not answer.whole:
            raise _trouble(receiver, answer)
        return answer.body

    async def remove(self, receiver: Receiver, external_id: str) -> None:
        answer = await self._ask(receiver, "DELETE", external_id, {})
        if not answer.ok and not (answer.status == 404 and _code_of(answer) in ("", "NoSuchKey")):
            raise _trouble(receiver, answer)

    async def close(self) -> None:
        """The connections are the caller's."""

    async def _there(self, receiver: Receiver, copy: Copy, key: str, repeat: bool = False) -> Stored:
        """The copy that lies there, asked for; one that is not ours is left alone."""
        answer = await self._ask(receiver, "HEAD", key, {})
        if not answer.ok:
            raise _trouble(receiver, answer)
        if answer.headers.get(_SHA256) != copy.sha256:
            raise DeliveryError(
                Trouble.REFUSED,
                f"{receiver.name}: there is another object with the key {key}; it was left as it is",
            )
        return Stored(key, {"key": key, "status": answer.status, **({"repeat": True} if repeat else {})})

    async def _ask(
        self,
        receiver: Receiver,
        method: str,
        key: str,
        headers: dict[str, str],
        data: bytes = b"",
        answer_max_bytes: int = ANSWER_MAX_BYTES,
    ) -> Answered:
        url = _url_of(receiver, key)
        body_sha256 = hashlib.sha256(data).hexdigest() if data else _EMPTY_SHA256
        signed = signed_headers(method, url, headers, body_sha256, _s3_key_of(receiver), self._clock.now_ms())
        return await self._http.request(
            method,
            url,
            headers=signed,
            data=data or None,
            timeout_sec=TIMEOUT_SEC,
            answer_max_bytes=answer_max_bytes,
        )


def _key_of(receiver: Receiver, path: str) -> str:
    prefix = str(receiver.config.get("prefix", "")).strip("/")
    return f"{prefix}/{path}" if prefix else path


def _url_of(receiver: Receiver, key: str) -> str:
    config = receiver.config
    bucket = str(config["bucket"])
    endpoint = config.get("endpoint") or f"https://s3.{config['region']}.amazonaws.com"
    parts = urlsplit(str(endpoint))
    if config.get("path_style", True):
        return f"{parts.scheme}://{parts.netloc}{path_of(parts.path, bucket, key)}"
    return f"{parts.scheme}://{bucket}.{parts.netloc}{path_of(parts.path, key)}"


def _s3_key_of(receiver: Receiver) -> S3Key:
    secret = receiver.secrets.get("secret_access_key")
    if secret is None:
        raise DeliveryError(Trouble.REFUSED, f"{receiver.name} has no secret key; enter it")
    return S3Key(str(receiver.config["access_key_id"]), secret, str(receiver.config["region"]))


def _code_of(answer: Answered) -> str:
    found = _CODE.search(answer.body)
    return found.group(1).decode() if found else ""


def _trouble(receiver: Receiver, answer: Answered) -> DeliveryError:
    code = _code_of(answer)
    said = f"{answer.status} {code}".strip()
    if code in _FULL or answer.status == 507:
        return DeliveryError(
            Trouble.RETRY,
            f"{receiver.name} has no space left ({said}); free some, or raise its quota",
            FULL_PAUSE_SEC,
        )
    if code in _ADVICE:
        return DeliveryError(Trouble.FAILED, f"{receiver.name} answered {said}: {_ADVICE[code]}")
    # Two writers of one key: the other one may well have been this delivery, before its lock was lost.
    kind = Trouble.RETRY if answer.status in (409, 500, 503) else trouble_of_status(answer.status)
    return DeliveryError(kind, f"{receiver.name} answered {said}", answer.retry_after_sec)
