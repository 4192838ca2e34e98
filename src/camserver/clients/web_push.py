"""Sends a message to one browser through the push service it subscribed at. Whom to send to is decided elsewhere."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from camserver.clients.outgoing import Answered, OutgoingHttp
from camserver.clients.push_sealing import BrowserKeys, ServerKey, seal_text
from camserver.domain.deliveries import DeliveryError, Trouble

# A browser that was off for longer does not want to hear of it any more.
TTL_SEC: Final = 4 * 3600
ANSWER_MAX_BYTES: Final = 2_000
# Microsoft's service refuses a time to live without being told that it may keep the message.
_MICROSOFT: Final = {"X-WNS-Cache-Policy": "cache"}


class Pushed(StrEnum):
    SENT = "sent"
    GONE = "gone"  # the browser is not subscribed any more
    REFUSED = "refused"  # the service does not take this one, however often it is tried


@dataclass(frozen=True, slots=True)
class Target:
    endpoint: str
    keys: BrowserKeys


class WebPush:
    def __init__(self, http: OutgoingHttp, key: ServerKey) -> None:
        self._http = http
        self._key = key

    async def push(self, target: Target, text: bytes, *, contact: str, topic: str, now_ms: int) -> Pushed:
        """DeliveryError when it may go better later."""
        parts = urlsplit(target.endpoint)
        headers = {
            "Authorization": self._key.authorization(f"{parts.scheme}://{parts.netloc}", contact, now_ms),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_SEC),
            "Urgency": "high",
            **({"Topic": topic} if topic else {}),
            **(_MICROSOFT if (parts.hostname or "").endswith(".notify.windows.com") else {}),
        }
        answer = await self._http.request(
            "POST",
            target.endpoint,
            headers=headers,
            data=seal_text(text, target.keys),
            answer_max_bytes=ANSWER_MAX_BYTES,
        )
        return _judged(answer, parts.hostname or "")


def _judged(answer: Answered, host: str) -> Pushed:
    if answer.ok:
        return Pushed.SENT
    if answer.status in (404, 410):
        return Pushed.GONE
    trouble = answer.trouble(f"the push service {host}")
    if trouble.kind is Trouble.REFUSED or answer.status in (401, 403) or 300 <= answer.status < 400:
        return Pushed.REFUSED
    raise DeliveryError(trouble.kind, trouble.message, trouble.retry_after_sec)
