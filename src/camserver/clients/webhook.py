"""Webhooks: a message as JSON to an address that people typed, signed where they gave a key.

    POST address
    Content-Type: application/json
    X-Camserver-Delivery: uuid            the same in every attempt, so that a repeat can be dropped
    X-Camserver-Timestamp: 1790000000     seconds, when this attempt was sent
    X-Camserver-Signature: v1=hex         HMAC-SHA256(signing key, timestamp + "." + body)

Any 2xx is success. How to check a signature is in docs/guide/deliveries.md.
"""

import base64
import hashlib
import hmac
import json
from typing import Final

from camserver.base.clock import Clock
from camserver.clients.outgoing import OutgoingHttp, checked_host
from camserver.domain.deliveries import DeliveryError, Done, Hidden, Outgoing, Receiver, Trouble

DELIVERY: Final = "X-Camserver-Delivery"
TIMESTAMP: Final = "X-Camserver-Timestamp"
SIGNATURE: Final = "X-Camserver-Signature"


class WebhookSender:
    def __init__(self, http: OutgoingHttp, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done:
        url = receiver.secrets.get("url")
        if url is None:
            raise DeliveryError(Trouble.REFUSED, "the webhook has no address; enter it again")
        body = body_of(outgoing, with_picture=bool(receiver.config.get("picture", True)))
        timestamp = str(self._clock.now_ms() // 1000)
        headers = {
            "Content-Type": "application/json",
            DELIVERY: outgoing.delivery_uuid,
            TIMESTAMP: timestamp,
        }
        key = receiver.secrets.get("signing_key")
        if key is not None:
            headers[SIGNATURE] = signature(key, timestamp, body)
        answer = await self._http.request("POST", url.reveal(), data=body, headers=headers)
        if not answer.ok:
            raise answer.trouble(checked_host(url.reveal()))
        return Done({"status": answer.status})

    async def close(self) -> None:
        """The connections are whoever's who made them."""


def body_of(outgoing: Outgoing, *, with_picture: bool) -> bytes:
    """The message as sent: the facts, the text for people, and the thumbnail."""
    body: dict[str, object] = {
        "delivery": outgoing.delivery_uuid,
        **outgoing.body,
        "title": outgoing.text.title,
        "lines": list(outgoing.text.lines),
        "language": str(outgoing.text.language),
        "link": outgoing.text.link,
    }
    if outgoing.text.picture_link is not None:
        body["picture_link"] = outgoing.text.picture_link
    if with_picture and outgoing.picture is not None:
        body["picture_jpeg_base64"] = base64.b64encode(outgoing.picture).decode()
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def signature(key: Hidden, timestamp: str, body: bytes) -> str:
    signed = hmac.new(key.reveal().encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"
