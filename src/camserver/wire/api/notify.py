"""Who is told of what: rules, snoozes, previews, and the messages that were sent."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api.names import NAME, ONE_LINE
from camserver.wire.api.shapes import CAMERA_ID_PATTERN, UUID_PATTERN, Answer, Asked, Label, Language

SNOOZE_MAX_SEC = 30 * 86_400
_NAMED_MAX = 500

Name = Annotated[str, Field(min_length=1, max_length=128), NAME]
Uuid = Annotated[str, Field(pattern=UUID_PATTERN)]
CameraId = Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
Severity = Annotated[int, Field(ge=0, le=3)]
Time = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
SiteNames = Annotated[list[Name], Field(min_length=1, max_length=_NAMED_MAX)]  # names or ids
CameraIds = Annotated[list[CameraId], Field(min_length=1, max_length=_NAMED_MAX)]
PrimaryEvents = Annotated[
    list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]], Field(min_length=1, max_length=64)
]
ReceiverNames = Annotated[list[Name], Field(max_length=_NAMED_MAX)]  # names or ids


class QuietHours(Asked):
    """Hours of the site's local time. When they end before they begin, they end on the next day; equal ones last a
    whole day. `days` (0 is Monday) are those on which they begin."""

    begin: Time = Field(alias="from")
    end: Time = Field(alias="to")
    days: Annotated[list[Annotated[int, Field(ge=0, le=6)]], Field(min_length=1, max_length=7)] = Field(
        default_factory=lambda: list(range(7))
    )
    # This and worse gets through; null: nothing does.
    through_severity: Severity | None = 3


class NotifyRuleAsked(Asked):
    """A rule. For each receiver the first one, in their order, that fits and names the receiver decides. null: all of
    them. A rule with an empty list of receivers keeps what fits it from everybody."""

    name: Name
    enabled: bool = True
    sites: SiteNames | None = None
    camera_ids: CameraIds | None = None
    primary_events: PrimaryEvents | None = None
    min_severity: Severity = 0
    receivers: ReceiverNames | None = None
    quiet: QuietHours | None = None


class NotifyRuleChange(Asked):
    """What is left out stays. null: all sites, cameras, primary events or receivers, or no quiet hours; a name,
    whether it counts and a severity stay with null, too. `quiet` is given as a whole."""

    name: Name | None = None
    enabled: bool | None = None
    sites: SiteNames | None = None
    camera_ids: CameraIds | None = None
    primary_events: PrimaryEvents | None = None
    min_severity: Severity | None = None
    receivers: ReceiverNames | None = None
    quiet: QuietHours | None = None


class QuietHoursShown(Answer):
    begin: str = Field(serialization_alias="from")
    end: str = Field(serialization_alias="to")
    days: list[int]
    through_severity: int | None


class NotifyRule(Answer):
    """`gone` counts the sites, cameras and receivers it names that are no more."""

    rule_uuid: str
    name: str
    enabled: bool
    sites: list[str] | None
    camera_ids: list[str] | None
    primary_events: list[str] | None
    min_severity: int
    receivers: list[str] | None
    quiet: QuietHoursShown | None
    gone: int
    created_at: int
    updated_at: int


class NotifyRuleList(Answer):
    """In the order they are tried. Without one that is enabled, everything notable goes to every receiver."""

    rules: list[NotifyRule]


class NotifyRuleOrder(Asked):
    """Every rule once, in their new order."""

    rule_uuids: Annotated[list[Uuid], Field(max_length=_NAMED_MAX)]


class PreviewedReceiver(Answer):
    """What a receiver would get, or why not."""

    receiver_uuid: str
    name: str
    kind: str
    verdict: Literal["send", "receiver_off", "no_rule", "muted", "quiet_hours", "snoozed", "hourly_cap", "cooldown"]
    why: Label
    rule: str | None  # the name of the rule that decides
    until: int | None  # of a snooze or cooldown
    held_back: int  # "+N"
    language: Language
    title: str
    lines: list[str]


class NotifyPreview(Answer):
    event_uuid: str
    receivers: list[PreviewedReceiver]


class SnoozeAsked(Asked):
    """Silence for so many seconds, about a site, a camera, a receiver; nothing named: about everything."""

    duration_sec: Annotated[int, Field(ge=1, le=SNOOZE_MAX_SEC)]
    site: Name | None = None
    camera_id: CameraId | None = None
    receiver_uuid: Uuid | None = None
    reason: Annotated[str, Field(max_length=255), ONE_LINE] = ""


class Snooze(Answer):
    snooze_uuid: str
    site: str | None
    camera_id: str | None
    receiver_uuid: str | None
    receiver_name: str | None
    until: int
    reason: str
    by: str | None  # who; null: from the command line
    created_at: int


class SnoozeList(Answer):
    """Those that hold, the one that ends first first."""

    snoozes: list[Snooze]


class Notification(Answer):
    """A message that was sent. `held_back` is how many it stands for besides its own."""

    delivery_uuid: str | None
    receiver_name: str | None
    channel: str
    site: str | None
    camera_id: str | None
    camera_name: str | None
    event_uuid: str | None
    incident_uuid: str | None
    body: str
    held_back: int
    sent_at: int


class NotificationPage(Answer):
    notifications: list[Notification]
    next_before: str | None  # asked again as `before`; null on the last page
