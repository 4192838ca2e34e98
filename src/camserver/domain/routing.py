"""Who is told of a notice, and why somebody is not: rules, quiet hours, snoozes, hourly caps (decision 24).

For each receiver the first rule, in their order, that fits the notice and names the receiver decides. A rule that
names nobody decides for everybody: what fits it is told to no one. Without any rule that is switched on, everything
notable goes to every receiver. What quiet hours, a snooze or a cap holds back is not sent later; it is counted, and
the next message says how many there were. Nothing here reads rows or a clock.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from camserver.base.errors import BadInput
from camserver.domain.phrases import Phrase
from camserver.domain.vocabulary import NO_EVENT, Vocabulary

HOUR_MS = 3_600_000
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class Verdict(StrEnum):
    """What becomes of a notice at one receiver."""

    SEND = "send"
    RECEIVER_OFF = "receiver_off"
    NO_RULE = "no_rule"  # there are rules, and none that fits names the receiver
    MUTED = "muted"  # the rule that fits names nobody
    QUIET = "quiet_hours"
    SNOOZED = "snoozed"
    CAP = "hourly_cap"
    COOLDOWN = "cooldown"
    NOT_TOLD = "beginning_not_told"  # that something is over is told to whoever heard that it began


VERDICTS: Mapping[Verdict, Phrase] = {
    Verdict.SEND: Phrase("送信されます", "It is sent"),
    Verdict.RECEIVER_OFF: Phrase("通知先がオフになっています", "The receiver is switched off"),
    Verdict.NO_RULE: Phrase("この通知先を含むルールに当てはまりません", "No rule that names this receiver fits"),
    Verdict.MUTED: Phrase("誰にも通知しないルールに当てはまります", "A rule that tells nobody fits"),
    Verdict.QUIET: Phrase("静かな時間帯です", "These are quiet hours"),
    Verdict.SNOOZED: Phrase("一時停止中です", "Notifications are snoozed"),
    Verdict.CAP: Phrase("1時間の上限に達しています", "The hourly limit is reached"),
    Verdict.COOLDOWN: Phrase("前回の通知から間もないため、件数だけを数えます", "A message was sent just before"),
    Verdict.NOT_TOLD: Phrase("発生を通知していません", "Its beginning was not told"),
}

# Held back at its time, though the receiver is meant: it counts towards the "+N" of the next message.
COUNTED = frozenset({Verdict.QUIET, Verdict.SNOOZED, Verdict.CAP, Verdict.COOLDOWN})


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told, as far as rules look at it."""

    site_id: int
    camera_key: int
    primary_event: str
    severity: int


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours of the site's local time. When they end before they begin, they end on the next day; equal ones last a
    whole day. `days` (0 is Monday) are those on which they begin."""

    from_min: int  # minutes of the day
    to_min: int
    days: frozenset[int] = frozenset(range(7))
    through_severity: int | None = 3  # this and worse gets through; None: nothing does


@dataclass(frozen=True, slots=True)
class Rule:
    """None stands for all of them."""

    rule_id: int
    position: int
    name: str
    enabled: bool = True
    site_ids: frozenset[int] | None = None
    camera_keys: frozenset[int] | None = None
    primary_events: frozenset[str] | None = None
    min_severity: int = 0
    receiver_ids: frozenset[int] | None = None  # empty: nobody
    quiet: Quiet | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Silence until then, for what it names; None stands for all."""

    until: int
    site_id: int | None = None
    camera_key: int | None = None
    receiver_id: int | None = None


@dataclass(frozen=True, slots=True)
class Recipient:
    """A receiver as routing sees it. `sent_this_hour` counts messages of the UTC hour that is running."""

    receiver_id: int
    enabled: bool = True
    hourly_cap: int | None = None
    sent_this_hour: int = 0


@dataclass(frozen=True, slots=True)
class Route:
    receiver_id: int
    verdict: Verdict
    rule: str | None = None  # the name of the rule that decided
    until: int | None = None  # of a snooze

    @property
    def is_meant(self) -> bool:
        """Whether the receiver is to hear of it at all, now or as one of "+N"."""
        return self.verdict is Verdict.SEND or self.verdict in COUNTED


def widest(routes: Sequence[Route]) -> Route:
    """Of a recipient's answers for several cameras the one that tells most: sent, then counted, then none."""
    return min(routes, key=lambda one: (one.verdict is not Verdict.SEND, not one.is_meant))


def route(
    notice: Notice,
    rules: Sequence[Rule],
    snoozes: Sequence[Snooze],
    recipients: Sequence[Recipient],
    zone: tzinfo,
    now_ms: int,
) -> tuple[Route, ...]:
    """One answer for each recipient, in their order."""
    active = sorted((rule for rule in rules if rule.enabled), key=lambda rule: (rule.position, rule.rule_id))
    return tuple(_route(notice, active, snoozes, recipient, zone, now_ms) for recipient in recipients)


def _route(
    notice: Notice,
    active: Sequence[Rule],
    snoozes: Sequence[Snooze],
    recipient: Recipient,
    zone: tzinfo,
    now_ms: int,
) -> Route:
    receiver_id = recipient.receiver_id
    if not recipient.enabled:
        return Route(receiver_id, Verdict.RECEIVER_OFF)
    rule = next((rule for rule in active if fits(rule, notice) and _decides_for(rule, receiver_id)), None)
    if rule is None and active:
        return Route(receiver_id, Verdict.NO_RULE)
    name = None if rule is None else rule.name
    if rule is not None and rule.receiver_ids == frozenset():
        return Route(receiver_id, Verdict.MUTED, name)
    until = snoozed_until(notice, snoozes, receiver_id, now_ms)
    if until is not None:
        return Route(receiver_id, Verdict.SNOOZED, name, until)
    if rule is not None and rule.quiet is not None and _is_hushed(rule.quiet, notice, zone, now_ms):
        return Route(receiver_id, Verdict.QUIET, name)
    if recipient.hourly_cap is not None and recipient.sent_this_hour >= recipient.hourly_cap:
        return Route(receiver_id, Verdict.CAP, name)
    return Route(receiver_id, Verdict.SEND, name)


def fits(rule: Rule, notice: Notice) -> bool:
    """Whether a rule is about this notice."""
    return (
        notice.severity >= rule.min_severity
        and (rule.site_ids is None or notice.site_id in rule.site_ids)
        and (rule.camera_keys is None or notice.camera_key in rule.camera_keys)
        and (rule.primary_events is None or notice.primary_event in rule.primary_events)
    )


def _decides_for(rule: Rule, receiver_id: int) -> bool:
    return not rule.receiver_ids or receiver_id in rule.receiver_ids


def snoozed_until(notice: Notice, snoozes: Sequence[Snooze], receiver_id: int, now_ms: int) -> int | None:
    """When the last of the snoozes that hold this back ends; None when none does."""
    ends = [
        snooze.until
        for snooze in snoozes
        if snooze.until > now_ms
        and snooze.site_id in (None, notice.site_id)
        and snooze.camera_key in (None, notice.camera_key)
        and snooze.receiver_id in (None, receiver_id)
    ]
    return max(ends, default=None)


def is_quiet(quiet: Quiet, zone: tzinfo, at_ms: int) -> bool:
    """Whether it is quiet then. By the clock on the wall: an hour that daylight saving repeats is quiet twice, one
    that it leaves out never."""
    local = datetime.fromtimestamp(at_ms / 1000, zone)
    minute, today = local.hour * 60 + local.minute, local.weekday()
    if quiet.from_min < quiet.to_min:
        return today in quiet.days and quiet.from_min <= minute < quiet.to_min
    began_today = minute >= quiet.from_min and today in quiet.days
    began_yesterday = minute < quiet.to_min and (today - 1) % 7 in quiet.days
    return began_today or began_yesterday


def hour_of(at_ms: int) -> int:
    """The beginning of the hour that a cap counts in."""
    return at_ms - at_ms % HOUR_MS


def _is_hushed(quiet: Quiet, notice: Notice, zone: tzinfo, now_ms: int) -> bool:
    gets_through = quiet.through_severity is not None and notice.severity >= quiet.through_severity
    return not gets_through and is_quiet(quiet, zone, now_ms)


def check_events(named: Collection[str] | None, vocabulary: Vocabulary) -> None:
    """BadInput when a rule names a primary event that no event can have."""
    known = [one for one in vocabulary.primary_events if one != NO_EVENT]
    for one in named or ():
        if one not in known:
            listed = ", ".join(known)
            raise BadInput(
                f"the rule names the event {one!r}, which the active vocabulary has not; there are: {listed}",
                reason="rule_event",
                named=one,
                known=listed,
            )


def parse_quiet(plain: Mapping[str, object] | None) -> Quiet | None:
    """Quiet hours from their JSON: `{"from": "22:00", "to": "07:00", "days": [0, …], "through_severity": 3}`."""
    if plain is None:
        return None
    days = plain.get("days", list(range(7)))
    through = plain.get("through_severity", 3)
    if not isinstance(days, list | tuple) or not days or not all(_is_within(day, 6) for day in days):
        raise BadInput(
            "quiet hours: `days` must be a list of 0 (Monday) to 6; leave it out for every day", reason="quiet_days"
        )
    if through is not None and not _is_within(through, 3):
        raise BadInput(
            "quiet hours: `through_severity` must be 0 to 3, or null to let nothing through", reason="quiet_through"
        )
    return Quiet(
        _minutes(plain.get("from"), "from"),
        _minutes(plain.get("to"), "to"),
        frozenset(days),
        through if isinstance(through, int) else None,
    )


def plain_quiet(quiet: Quiet | None) -> dict[str, object] | None:
    """What `parse_quiet` takes."""
    if quiet is None:
        return None
    return {
        "from": f"{quiet.from_min // 60:02}:{quiet.from_min % 60:02}",
        "to": f"{quiet.to_min // 60:02}:{quiet.to_min % 60:02}",
        "days": sorted(quiet.days),
        "through_severity": quiet.through_severity,
    }


def _is_within(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _minutes(value: object, name: str) -> int:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise BadInput(
            f"quiet hours: `{name}` must be a time such as 22:00, not {value!r}", reason="quiet_time", field=name
        )
    return int(found[1]) * 60 + int(found[2])
