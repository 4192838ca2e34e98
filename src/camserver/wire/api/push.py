"""Browser push: the server's key, and the browsers that people have switched on. And its kind of receiver."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from camserver.wire.api.shapes import Answer, Asked, Language

ENDPOINT_MAX_CHARS = 2048


class PushKey(Answer):
    """`public_key` is what a browser subscribes with (applicationServerKey). `enabled`: whether anything is sent."""

    public_key: str
    enabled: bool


class PushKeys(Asked):
    p256dh: Annotated[str, Field(min_length=1, max_length=128)]
    auth: Annotated[str, Field(min_length=1, max_length=64, repr=False)]


class PushSubscriptionAsked(Asked):
    """What a browser's PushSubscription.toJSON() gives, without what is not used."""

    endpoint: Annotated[str, Field(min_length=1, max_length=ENDPOINT_MAX_CHARS, repr=False)]
    keys: PushKeys
    language: Language | None = None  # null: that of the one who is signed in


class PushSubscription(Answer):
    """A browser. `endpoint_hash` (sha256 of its address, hex) lets a page find its own."""

    subscription_uuid: str
    endpoint_hash: str
    user_agent: str
    created_at: int
    last_ok_at: int | None
    failures: int  # in a row


class PushSubscriptionList(Answer):
    subscriptions: list[PushSubscription]


def contact_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("mailto", "https") or not (parts.path if parts.scheme == "mailto" else parts.hostname):
        raise ValueError("must begin with mailto: or https://")
    return value


Contact = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(contact_address)]
Login = Annotated[str, Field(min_length=1, max_length=128)]
