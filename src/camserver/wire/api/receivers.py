"""Receivers and deliveries. What a kind of receiver can be told is one model of config and one of secrets below.

Configs are shown to those who manage deliveries; of secrets is only said whether they are set. Each kind has its
models in `CONFIGS` and `SECRETS`; whatever is not in them is refused.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, JsonValue, model_validator

from camserver.base.addresses import is_never_reached
from camserver.domain.deliveries import ReceiverKind
from camserver.wire.api import archives, mqtt, push
from camserver.wire.api.shapes import MOMENT_MAX_MS, UUID_PATTERN, Answer, Asked, Language

Kind = Literal["webhook", "slack", "email", "mqtt", "push", "folder", "s3", "drive"]
DeliveryKindName = Literal["archive", "notify", "llm_review", "summary", "message", "copy"]
DeliveryState = Literal["queued", "delayed", "running", "done", "dead", "skipped", "suppressed"]
Name = Annotated[str, Field(min_length=1, max_length=128)]


def http_address(value: str) -> str:
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must begin with https:// or http:// and name a host")
    if is_never_reached(host):
        raise ValueError("must not be link-local, where clouds keep secrets, or of several hosts")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("must not hold spaces or characters beyond ASCII")
    return value


# An address that may hold a token, so it is kept as a secret.
SecretAddress = Annotated[str, Field(min_length=1, max_length=2048), AfterValidator(http_address)]
SecretWord = Annotated[str, Field(min_length=1, max_length=1024)]
# Plain ones only: no name before it, no comment, no second address.
_MAIL_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def mail_address(value: str) -> str:
    if not _MAIL_ADDRESS.fullmatch(value):
        raise ValueError("must be a plain address such as cameras@example.org")
    return value


MailAddress = Annotated[str, Field(max_length=254), AfterValidator(mail_address)]


class SecretsAsked(Asked):
    """Shows none of its values when it is printed."""

    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return []


class TellingConfig(Asked):
    """What every receiver that people are told through can be told."""

    summaries: bool = False  # whether it gets the daily summary
    signed_link: bool = False  # whether messages carry a link that opens the picture without signing in


class WebhookConfig(TellingConfig):
    picture: bool = True  # whether the thumbnail is in the body, base64


class WebhookSecrets(SecretsAsked):
    url: SecretAddress
    # Signs what is sent, see docs/guide/deliveries.md. Without one nothing is signed.
    signing_key: Annotated[str, Field(min_length=16, max_length=256)] | None = None


class SlackConfig(TellingConfig):
    """A channel. With a bot's token it must be named here; a webhook has its own."""

    channel: Annotated[str, Field(pattern=r"^[#@]?[^\s#@]{1,80}$")] | None = None  # name or id
    picture: bool = True  # whether a bot adds the thumbnail below its message


class SlackSecrets(SecretsAsked):
    """One of them."""

    webhook_url: SecretAddress | None = None
    bot_token: Annotated[str, Field(pattern=r"^[!-~]{8,512}$")] | None = None

    @model_validator(mode="after")
    def _has_one(self) -> "SlackSecrets":
        if (self.webhook_url is None) == (self.bot_token is None):
            raise ValueError("either webhook_url or bot_token is needed")
        return self


class EmailConfig(TellingConfig):
    """A mail server and whom it is to write to; see docs/guide/notifications.md."""

    host: mqtt.Host
    port: mqtt.Port | None = None  # null: 587, with tls 465, in the clear 25
    security: Literal["starttls", "tls", "plain"] = "starttls"
    ca: mqtt.Certificate = ""  # empty: the authorities that the machine trusts
    username: Annotated[str, Field(max_length=255)] = ""
    sender: MailAddress
    to: Annotated[list[MailAddress], Field(min_length=1, max_length=50)]
    picture: bool = True  # whether the thumbnail is in the mail


class EmailSecrets(SecretsAsked):
    password: Annotated[str, Field(min_length=1, max_length=1024)] | None = None


class MqttConfig(TellingConfig):
    """A broker, and how topics on it are named; see docs/guide/mqtt.md."""

    host: mqtt.Host
    port: mqtt.Port | None = None  # null: 1883, with tls 8883
    tls: bool = False
    ca: mqtt.Certificate = ""  # empty: the authorities that the machine trusts
    username: Annotated[str, Field(max_length=255)] = ""
    prefix: mqtt.Prefix = "camserver"
    discovery_prefix: mqtt.OptionalPrefix = "homeassistant"  # empty: Home Assistant is not told
    installation: mqtt.Installation = ""  # empty: made from the tenant
    client_id: mqtt.ClientId = ""  # empty: made from the receiver


class MqttSecrets(SecretsAsked):
    password: SecretWord | None = None


class PushConfig(TellingConfig):
    """Browsers that people switched on; see docs/guide/push.md."""

    # Logins; null: all who may see the camera.
    users: Annotated[list[push.Login], Field(max_length=200)] | None = None
    contact: push.Contact | None = None  # whom push services may tell of trouble; null: server.public_url


class FolderConfig(Asked):
    """A folder on the server's machine, below one of [archive] folders; see docs/guide/archive.md."""

    path: archives.FolderPath


class S3Config(Asked):
    """A bucket of an S3-compatible store."""

    bucket: archives.BucketName
    endpoint: Annotated[str, Field(max_length=255), AfterValidator(http_address)] | None = None  # null: Amazon's
    region: archives.Region = "us-east-1"
    prefix: archives.KeyPrefix = ""
    path_style: bool = True  # false: the bucket stands in the host name
    access_key_id: archives.AccessKeyId


class S3Secrets(SecretsAsked):
    secret_access_key: SecretWord


class DriveConfig(Asked):
    """A folder of Google Drive that a service account may write to."""

    folder_id: archives.DriveFolderId
    act_as: archives.ActAs | None = None  # whom the account acts for, by domain-wide delegation


class DriveSecrets(SecretsAsked):
    credentials: archives.KeyFile


class NoSecrets(SecretsAsked):
    """Of kinds that need none."""


# By kind. A kind that is not in CONFIGS can't be added.
CONFIGS: Final[dict[ReceiverKind, type[BaseModel]]] = {
    ReceiverKind.WEBHOOK: WebhookConfig,
    ReceiverKind.SLACK: SlackConfig,
    ReceiverKind.EMAIL: EmailConfig,
    ReceiverKind.MQTT: MqttConfig,
    ReceiverKind.PUSH: PushConfig,
    ReceiverKind.FOLDER: FolderConfig,
    ReceiverKind.S3: S3Config,
    ReceiverKind.DRIVE: DriveConfig,
}
SECRETS: Final[dict[ReceiverKind, type[BaseModel]]] = {
    ReceiverKind.WEBHOOK: WebhookSecrets,
    ReceiverKind.SLACK: SlackSecrets,
    ReceiverKind.EMAIL: EmailSecrets,
    ReceiverKind.MQTT: MqttSecrets,
    ReceiverKind.PUSH: NoSecrets,
    ReceiverKind.FOLDER: NoSecrets,
    ReceiverKind.S3: S3Secrets,
    ReceiverKind.DRIVE: DriveSecrets,
}
# Only system administrators may add or change these: they reach what is on the server itself.
SYSTEM_KINDS: Final = frozenset({ReceiverKind.FOLDER})


class ReceiverAsked(Asked):
    """A new receiver. `config` and `secrets` are those of its kind, see the guide."""

    name: Name
    kind: Kind
    config: dict[str, JsonValue] = Field(default_factory=dict)
    secrets: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    language: Language = "ja"
    hourly_cap: Annotated[int, Field(ge=1, le=100_000)] | None = None
    enabled: bool = True


class ReceiverChange(Asked):
    """What is to change; a field that is not there stays as it is. Of secrets those that are named, null removes."""

    name: Name | None = None
    enabled: bool | None = None
    config: dict[str, JsonValue] | None = None  # as a whole
    secrets: Annotated[dict[str, JsonValue] | None, Field(repr=False)] = None
    language: Language | None = None
    hourly_cap: Annotated[int, Field(ge=1, le=100_000)] | None = None  # null removes it


class SecretState(Answer):
    is_set: bool


class Receiver(Answer):
    """`config`, `secrets` and `last_error` are null for those who may not manage deliveries."""

    receiver_uuid: str
    name: str
    kind: Kind
    enabled: bool
    language: str
    hourly_cap: int | None
    config: dict[str, JsonValue] | None
    secrets: dict[str, SecretState] | None
    created_at: int
    updated_at: int
    last_ok_at: int | None
    last_error: str | None
    last_error_at: int | None


class ReceiverList(Answer):
    receivers: list[Receiver]


class TrialStarted(Answer):
    """The trial is on its way; ask for the delivery until its status is done or dead."""

    delivery_uuid: str


class Delivery(Answer):
    """Something on its way out, or arrived. `last_error` is why it was put off, held back or given up."""

    delivery_uuid: str
    kind: DeliveryKindName
    reason: str
    status: DeliveryState
    attempt: int
    receiver_uuid: str | None
    receiver_name: str | None
    receiver_kind: str | None
    parent_uuid: str | None
    site: str | None
    camera_id: str | None
    event_uuid: str | None
    frame_uuid: str | None
    created_at: int
    available_at: int
    finished_at: int | None
    last_error: str | None
    result: dict[str, JsonValue] | None


class DeliveryPage(Answer):
    deliveries: list[Delivery]
    next_before: str | None  # asked again as `before`; null on the last page


class RequeueAsked(Asked):
    """Which dead deliveries are tried again. Nothing said: all of them."""

    receiver_uuid: Annotated[str, Field(pattern=UUID_PATTERN)] | None = None
    kind: DeliveryKindName | None = None
    from_ms: Annotated[int, Field(ge=0, lt=MOMENT_MAX_MS)] | None = None
    to_ms: Annotated[int, Field(ge=0, lt=MOMENT_MAX_MS)] | None = None


class Requeued(Answer):
    count: int


def secret_names(kind: ReceiverKind) -> Mapping[str, bool]:
    """The secrets of a kind, and whether each must be there."""
    return {name: field.is_required() for name, field in SECRETS[kind].model_fields.items()}
