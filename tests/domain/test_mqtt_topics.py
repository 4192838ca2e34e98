import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain import home_assistant
from camserver.domain.mqtt_topics import (
    CameraTopics,
    LastEvent,
    Standing,
    Topics,
    check_prefix,
    installation_of,
    is_seen,
    level,
    state,
)

NOW_MS = 1_800_000_000_000
TOPICS = Topics("camserver", "house")


def standing(**changes: object) -> Standing:
    values: dict[str, object] = {
        "camera_key": 1,
        "camera_id": "cam_2f_19",
        "name": "2F 廊下",
        "site": "main",
        "health": "up",
        "cause": "",
        "issues": (),
        "last_look_at": NOW_MS - 5_400,
        "open_event": None,
        "open_severity": 0,
        "last_event": None,
        "picture": None,
    }
    return Standing(**{**values, **changes})  # type: ignore[arg-type]  # the names are Standing's own


def test_topics_of_a_camera() -> None:
    own = TOPICS.camera("cam_2f_19")
    assert TOPICS.availability == "camserver/house/availability"
    assert own.state == "camserver/house/cam_2f_19/state"
    assert own.events == "camserver/house/cam_2f_19/events"
    # The mark by which a camera is found again goes last: an end in between is gone on with.
    assert own.retained[-1] == own.availability
    assert own.events not in own.retained


@given(st.text(min_size=1))
def test_any_name_is_one_level_and_no_two_are_the_same(name: str) -> None:
    try:
        written = level(name)
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    assert not set(written) & set("/+#\0 ")
    own = TOPICS.camera(name)
    assert own.state.count("/") == 3
    assert TOPICS.camera_level(own.availability) == written
    assert TOPICS.camera_level(own.state) is None


@given(st.lists(st.text(alphabet="abc/+#.-_ %é", min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_topic_or_a_device(names: list[str]) -> None:
    one, other = names
    assert level(one) != level(other)
    assert home_assistant.device_id("house", one) != home_assistant.device_id("house", other)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_home_assistant_takes_every_device_id(name: str) -> None:
    assert home_assistant.device_id("house", name).isascii()
    assert home_assistant.object_id(name).replace("_", "").replace("-", "").isalnum() or not name.isalnum()


def test_an_installations_own_topic_is_no_cameras() -> None:
    assert TOPICS.camera_level("camserver/house/availability") is None
    assert TOPICS.camera_level("camserver/other/cam_1/availability") is None


@pytest.mark.parametrize(
    ("given_prefix", "kept"), [("camserver", "camserver"), ("/home/cameras/", "home/cameras"), ("a-b_c.d", "a-b_c.d")]
)
def test_prefixes_that_can_be(given_prefix: str, kept: str) -> None:
    assert check_prefix(given_prefix) == kept


@pytest.mark.parametrize("prefix", ["", "/", "a//b", "a/#", "+/a", "with space", "$SYS", "日本", "a" * 129, "a\0"])
def test_prefixes_that_can_not(prefix: str) -> None:
    with pytest.raises(BadInput):
        check_prefix(prefix)


def test_two_installations_differ_by_default() -> None:
    assert installation_of("01934e9a-8a3b-7c4d-9e5f-1a2b3c4d5e6f") == "3c4d5e6f"


def test_a_quiet_camera() -> None:
    assert state(standing(), NOW_MS) == {
        "health": "up",
        "cause": None,
        "issues": [],
        "problem": "OFF",
        "person": "OFF",
        "vehicle": "OFF",
        "animal": "OFF",
        "severity": 0,
        "last_event": None,
        "last_look_at": "2027-01-15T07:59:54+00:00",
        "last_look_age_sec": 5,
    }


@pytest.mark.parametrize(
    ("event", "sensor"), [("human", "person"), ("vehicle", "vehicle"), ("animal", "animal"), ("hazard", None)]
)
def test_what_is_seen_switches_its_sensor_on(event: str, sensor: str | None) -> None:
    shown = state(standing(open_event=event, open_severity=2), NOW_MS)
    assert [name for name in ("person", "vehicle", "animal") if shown[name] == "ON"] == ([sensor] if sensor else [])
    assert shown["severity"] == 2


@pytest.mark.parametrize(
    ("changes", "problem", "seen"),
    [
        ({}, "OFF", True),
        ({"health": "down", "cause": "timeout"}, "ON", False),
        ({"issues": ("moved",)}, "ON", True),
        ({"health": "unattended"}, "OFF", False),
        ({"health": "off"}, "OFF", False),
        ({"health": "unknown", "last_look_at": None}, "OFF", False),
    ],
)
def test_problems_and_availability(changes: dict[str, object], problem: str, seen: bool) -> None:
    shown = standing(**changes)
    assert state(shown, NOW_MS)["problem"] == problem
    assert is_seen(shown) is seen


def test_the_last_event() -> None:
    last = LastEvent("uuid", "human", 2, NOW_MS - 60_000, NOW_MS - 30_000, open=False)
    assert state(standing(last_event=last), NOW_MS)["last_event"] == {
        "event_uuid": "uuid",
        "primary_event": "human",
        "severity": 2,
        "start_at": "2027-01-15T07:59:00+00:00",
        "last_seen_at": "2027-01-15T07:59:30+00:00",
        "open": False,
    }


@pytest.mark.parametrize(("language", "name"), [("ja", "人"), ("en", "Person")])
def test_devices_are_described_in_the_receivers_language(language: str, name: str) -> None:
    device = home_assistant.camera_device(TOPICS, standing(), "1.0", "https://cameras.example", language)
    assert json.loads(json.dumps(device))["components"]["person"]["name"] == name
    assert device["device"] == {
        "identifiers": ["camserver_house_cam_2f_19"],
        "name": "2F 廊下",
        "manufacturer": "camserver",
        "model": "camserver",
        "sw_version": "1.0",
        "configuration_url": "https://cameras.example",
        "suggested_area": "main",
        "via_device": "camserver_house",
    }


def test_what_only_a_seeing_camera_knows_is_unavailable_while_it_does_not_see() -> None:
    device = home_assistant.camera_device(TOPICS, standing(), "1", "https://cameras.example", "en")
    components = device["components"]
    assert isinstance(components, dict)
    own = CameraTopics("camserver/house/cam_2f_19")
    for name, component in components.items():
        topics = [one["topic"] for one in component["availability"]]
        needs_sight = name in ("person", "vehicle", "animal")
        assert topics == [TOPICS.availability, *([own.availability] if needs_sight else [])]
        assert component.get("availability_mode") == ("all" if needs_sight else None)


def test_events_of_other_vocabularies_have_a_type_too() -> None:
    assert home_assistant.event_type("human") == "human"
    assert home_assistant.event_type("meteor") == "other"
    assert "none" not in home_assistant.EVENT_TYPES
