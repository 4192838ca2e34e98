from typing import Any

import pytest

from camserver.domain.analysis import Analysis
from camserver.domain.facts import DeliveryDue, DeliveryKind, EventAction, EventChange, IncidentChange
from camserver.domain.health import Issue
from camserver.domain.notices import (
    BACK,
    CONTINUES,
    DETECTED,
    INCIDENT_OPENED,
    LATE_INCIDENT,
    LOW_CONFIDENCE,
    SEVERITY_ROSE,
    UNKNOWN,
    DeliveryPolicy,
    LlmReviewPolicy,
    NotifyPolicy,
    archive_reason,
    back_reason,
    cooldown_ends,
    cooldown_scope,
    due,
    is_notable,
    llm_reason,
    may_review,
    may_send,
    notify_reason,
    told_as,
    waits_for_cooldown,
)

from .build import MIN, SEC, T0, analysis, frame, nothing

POLICY = NotifyPolicy()


def incident_change(**changes: Any) -> IncidentChange:
    values: dict[str, Any] = {
        "incident_id": 100,
        "start_at": T0,
        "last_seen_at": T0,
        "severity_max": 2,
        "opened": False,
        "severity_rose": False,
        "adds_event": False,
    }
    return IncidentChange(**{**values, **changes})


@pytest.mark.parametrize(
    ("result", "notable"),
    [
        (analysis(severity=1), False),
        (analysis(severity=2), True),
        (analysis(severity=0, tags=("hazard.smoke_like",)), True),
        (analysis("hazard", severity=0), True),
        (analysis("camera_issue", severity=1, tags=("camera.offline",)), True),
        (analysis("camera_issue", severity=1, tags=("camera.blur",)), False),
        (analysis(severity=0, unknown_flag=True), True),
    ],
)
def test_what_may_notify(result: Analysis, notable: bool) -> None:
    assert is_notable(result, POLICY) is notable
    reason = notify_reason(frame(), result, incident_change(opened=True), None, POLICY, T0)
    assert reason == (INCIDENT_OPENED if notable else None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"opened": True}, INCIDENT_OPENED), ({"severity_rose": True}, SEVERITY_ROSE), ({}, CONTINUES)],
)
def test_when_in_an_incident_people_are_told(changes: dict[str, bool], reason: str) -> None:
    change = incident_change(**changes)
    assert notify_reason(frame(), analysis(severity=2), change, 1, POLICY, T0) == reason


def test_no_incident_no_notification() -> None:
    assert notify_reason(frame(), analysis(severity=3), None, None, POLICY, T0) is None


@pytest.mark.parametrize(
    ("before", "after", "told"), [(None, 2, True), (1, 2, True), (2, 3, False), (2, 2, False), (None, 1, False)]
)
@pytest.mark.parametrize(("late", "age_ms"), [(True, 0), (False, 601 * SEC)])
def test_a_late_or_stale_incident_notifies_once(
    before: int | None, after: int, told: bool, late: bool, age_ms: int
) -> None:
    change = incident_change(opened=before is None, severity_rose=True, severity_max=after)
    result = analysis(severity=after, unknown_flag=True)
    reason = notify_reason(frame(late=late), result, change, before, POLICY, T0 + age_ms)
    assert reason == (LATE_INCIDENT if told else None)


@pytest.mark.parametrize(
    ("same_event_ago", "camera_ago", "sent"),
    [
        (None, None, True),
        (300 * SEC, 60 * SEC, True),
        (300 * SEC - 1, 300 * SEC - 1, False),
        (None, 60 * SEC - 1, False),
        (None, 60 * SEC, True),
    ],
)
@pytest.mark.parametrize("reason", [INCIDENT_OPENED, CONTINUES])
def test_cooldowns(reason: str, same_event_ago: int | None, camera_ago: int | None, sent: bool) -> None:
    scope_until, camera_until = _ends(same_event_ago, 0), _ends(camera_ago, 1)
    assert may_send(reason, scope_until, camera_until, T0) is sent


def _ends(sent_ago: int | None, which: int) -> int | None:
    """When the cooldown of a message sent so long ago ends."""
    if sent_ago is None:
        return None
    ends = cooldown_ends(INCIDENT_OPENED, POLICY, T0 - sent_ago)
    assert ends is not None
    return ends[which]


@pytest.mark.parametrize("reason", [SEVERITY_ROSE, LATE_INCIDENT, BACK])
def test_a_rise_a_late_incident_and_an_end_do_not_wait(reason: str) -> None:
    assert may_send(reason, T0 + 1, T0 + 1, T0)


@pytest.mark.parametrize("reason", [LATE_INCIDENT, BACK])
def test_what_is_over_holds_nothing_back(reason: str) -> None:
    assert cooldown_ends(reason, POLICY, T0) is None


def test_a_rise_begins_the_cooldowns_anew() -> None:
    assert cooldown_ends(SEVERITY_ROSE, POLICY, T0) == (T0 + 300 * SEC, T0 + 60 * SEC)


def test_only_the_beginning_of_an_issue_waits_for_the_cooldown() -> None:
    assert waits_for_cooldown(INCIDENT_OPENED, "covered")
    assert not waits_for_cooldown(CONTINUES, "covered"), "one that comes and goes"
    assert not waits_for_cooldown(INCIDENT_OPENED, ""), "what a camera sees"


def test_each_kind_of_issue_has_its_own_cooldown() -> None:
    scopes = {cooldown_scope("camera_issue", issue.value) for issue in Issue}
    assert len(scopes) == len(Issue)
    assert cooldown_scope("human", "") == "human"
    assert all(len(scope) <= 32 for scope in scopes)


@pytest.mark.parametrize(
    ("tag_id", "severity", "policy", "reason"),
    [
        ("camera.offline", 3, POLICY, BACK),
        ("camera.offline", 1, POLICY, BACK),
        ("camera.moved", 2, POLICY, BACK),
        ("camera.moved", 1, POLICY, None),
        ("camera.offline", 3, NotifyPolicy(notify_back=False), None),
    ],
)
def test_when_the_end_of_an_issue_is_told(
    tag_id: str, severity: int, policy: NotifyPolicy, reason: str | None
) -> None:
    assert back_reason(tag_id, severity, policy) == reason


BEST = EventChange(EventAction.OPEN, is_best_frame=True)


@pytest.mark.parametrize(
    ("result", "event", "policy", "reason"),
    [
        (analysis(unknown_flag=True), BEST, LlmReviewPolicy(), UNKNOWN),
        (analysis(unknown_flag=True), EventChange(EventAction.MERGE), LlmReviewPolicy(), None),
        (analysis(unknown_flag=True), EventChange(EventAction.NONE), LlmReviewPolicy(), None),
        (analysis(severity=2, confidence=0.4), BEST, LlmReviewPolicy(), None),
        (analysis(severity=2, confidence=0.4), BEST, LlmReviewPolicy(low_confidence_too=True), LOW_CONFIDENCE),
        (analysis(severity=2, confidence=0.5), BEST, LlmReviewPolicy(low_confidence_too=True), None),
        (analysis(severity=1, confidence=0.4), BEST, LlmReviewPolicy(low_confidence_too=True), None),
        (analysis(severity=2, confidence=None), BEST, LlmReviewPolicy(low_confidence_too=True), None),
    ],
)
def test_when_an_llm_is_asked(
    result: Analysis, event: EventChange, policy: LlmReviewPolicy, reason: str | None
) -> None:
    assert llm_reason(result, event, policy) == reason


def test_an_llm_is_asked_once_in_ten_minutes_per_camera() -> None:
    assert may_review(None, LlmReviewPolicy(), T0)
    assert not may_review(T0, LlmReviewPolicy(), T0 + 10 * MIN - 1)
    assert may_review(T0, LlmReviewPolicy(), T0 + 10 * MIN)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (analysis(), DETECTED),
        (analysis("none", detected=True), DETECTED),
        (analysis(unknown_flag=True), UNKNOWN),
        (analysis("none", detected=False, unknown_flag=True), UNKNOWN),
        (nothing(), None),
    ],
)
def test_what_is_archived(result: Analysis, reason: str | None) -> None:
    assert archive_reason(result) == reason


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("notify", [True, False])
@pytest.mark.parametrize("llm_review", [True, False])
def test_no_delivery_without_its_sink(archive: bool, notify: bool, llm_review: bool) -> None:
    result = analysis("unknown", unknown_flag=True, severity=2)
    made = due(
        frame(),
        result,
        BEST,
        incident_change(opened=True),
        None,
        DeliveryPolicy(archive=archive, notify=notify, llm_review=llm_review),
        POLICY,
        LlmReviewPolicy(),
        T0,
    )
    wanted = [
        DeliveryDue(DeliveryKind.ARCHIVE, UNKNOWN) if archive else None,
        DeliveryDue(DeliveryKind.NOTIFY, INCIDENT_OPENED) if notify else None,
        DeliveryDue(DeliveryKind.LLM_REVIEW, UNKNOWN) if llm_review else None,
    ]
    assert made == tuple(entry for entry in wanted if entry)


@pytest.mark.parametrize("reason", [INCIDENT_OPENED, CONTINUES, SEVERITY_ROSE, LATE_INCIDENT, BACK])
def test_what_goes_on_begins_for_whoever_heard_nothing(reason: str) -> None:
    assert told_as(reason, was_told=True) == reason
    assert told_as(reason, was_told=False) == (INCIDENT_OPENED if reason == CONTINUES else reason)
