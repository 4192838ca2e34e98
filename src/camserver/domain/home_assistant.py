"""What Home Assistant is told of cameras: one device each, by its MQTT device discovery. Publishing is elsewhere.

One message describes a device with all its entities (`components`). Single-entity discovery is never used beside it:
Home Assistant would have each entity twice.
"""

import hashlib
import re
from collections.abc import Mapping

from camserver.domain.mqtt_topics import OFFLINE, ONLINE, CameraTopics, Standing, Topics
from camserver.domain.phrases import PRIMARY_EVENTS, Phrase

# What Home Assistant calls itself, and says when it comes up.
STATUS_TOPIC = "status"
BORN = "online"
# An event of another vocabulary is told as this one: Home Assistant refuses types that were not announced.
OTHER_EVENT = "other"
EVENT_TYPES = (*(name for name in PRIMARY_EVENTS if name != "none"), OTHER_EVENT)
HEALTHS = ("up", "down", "unknown", "unattended", "off")
_OBJECT_ID = re.compile(r"[^A-Za-z0-9_-]")

_NAMES: Mapping[str, Phrase] = {
    "connection": Phrase("接続", "Connection"),
    "person": Phrase("人", "Person"),
    "vehicle": Phrase("車両", "Vehicle"),
    "animal": Phrase("動物", "Animal"),
    "problem": Phrase("異常", "Problem"),
    "health": Phrase("状態", "Health"),
    "last_event": Phrase("最新のイベント", "Last event"),
    "severity": Phrase("重要度", "Severity"),
    "last_look": Phrase("最終確認", "Last look"),
    "last_look_age": Phrase("最終確認からの経過", "Age of last look"),
    "image": Phrase("最新のイベントの画像", "Picture of last event"),
    "events": Phrase("通知", "Notifications"),
}


def object_id(name: str) -> str:
    """A name as Home Assistant allows it in discovery topics; two names never become one."""
    plain = _OBJECT_ID.sub("_", name)
    return plain if plain == name else f"{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def device_id(installation: str, camera_id: str | None = None) -> str:
    """Names the device of a camera, or of the installation itself."""
    parts = ("camserver", installation) if camera_id is None else ("camserver", installation, camera_id)
    return "_".join(object_id(part) for part in parts)


def discovery_topic(discovery_prefix: str, device: str) -> str:
    return f"{discovery_prefix}/device/{device}/config"


def event_type(primary_event: str) -> str:
    return primary_event if primary_event in EVENT_TYPES else OTHER_EVENT


def installation_device(topics: Topics, version: str, url: str, language: str) -> dict[str, object]:
    """The server itself: whether it is connected."""
    device = device_id(topics.installation)
    return {
        "device": _device(device, "camserver", version, url),
        "origin": _origin(version),
        "components": {
            "connection": {
                "platform": "binary_sensor",
                "unique_id": f"{device}_connection",
                "name": _name("connection", language),
                "device_class": "connectivity",
                "entity_category": "diagnostic",
                "state_topic": topics.availability,
                "payload_on": ONLINE,
                "payload_off": OFFLINE,
            }
        },
    }


def camera_device(topics: Topics, standing: Standing, version: str, url: str, language: str) -> dict[str, object]:
    """A camera with its entities. What only a camera that sees can know is unavailable while it does not."""
    own = topics.camera(standing.camera_id)
    device = device_id(topics.installation, standing.camera_id)
    server_up: dict[str, object] = {"availability": [{"topic": topics.availability}]}
    both_up: dict[str, object] = {
        "availability": [{"topic": topics.availability}, {"topic": own.availability}],
        "availability_mode": "all",
    }
    seen = {name: {**_sensed(own, name), **both_up} for name in ("person", "vehicle", "animal")}
    known = {name: {**entity, **server_up} for name, entity in _known(own).items()}
    components = {
        name: {**entity, "unique_id": f"{device}_{name}", "name": _name(name, language)}
        for name, entity in {**seen, **known}.items()
    }
    return {
        "device": {
            **_device(device, standing.name or standing.camera_id, version, url),
            "suggested_area": standing.site,
            "via_device": device_id(topics.installation),
        },
        "origin": _origin(version),
        "components": components,
    }


def _sensed(own: CameraTopics, name: str) -> dict[str, object]:
    return {
        "platform": "binary_sensor",
        "device_class": "occupancy",
        "state_topic": own.state,
        "value_template": f"{{{{ value_json.{name} }}}}",
    }


def _known(own: CameraTopics) -> dict[str, dict[str, object]]:
    """What the server knows of a camera, whether it sees anything or not."""
    diagnostic: dict[str, object] = {"entity_category": "diagnostic", "state_topic": own.state}
    return {
        "problem": {
            **diagnostic,
            "platform": "binary_sensor",
            "device_class": "problem",
            "value_template": "{{ value_json.problem }}",
            "json_attributes_topic": own.state,
            "json_attributes_template": "{{ {'cause': value_json.cause, 'issues': value_json.issues} | tojson }}",
        },
        "health": {
            **diagnostic,
            "platform": "sensor",
            "device_class": "enum",
            "options": list(HEALTHS),
            "value_template": "{{ value_json.health }}",
        },
        "last_event": {
            "platform": "sensor",
            "state_topic": own.state,
            "value_template": "{{ (value_json.last_event or {}).get('primary_event') }}",
            "json_attributes_topic": own.state,
            "json_attributes_template": "{{ (value_json.last_event or {}) | tojson }}",
        },
        "severity": {
            "platform": "sensor",
            "state_topic": own.state,
            "value_template": "{{ value_json.severity }}",
        },
        "last_look": {
            **diagnostic,
            "platform": "sensor",
            "device_class": "timestamp",
            "value_template": "{{ value_json.last_look_at }}",
        },
        "last_look_age": {
            **diagnostic,
            "platform": "sensor",
            "device_class": "duration",
            "unit_of_measurement": "s",
            "enabled_by_default": False,
            "value_template": "{{ value_json.last_look_age_sec }}",
        },
        "image": {"platform": "image", "image_topic": own.image, "content_type": "image/jpeg"},
        "events": {"platform": "event", "state_topic": own.events, "event_types": list(EVENT_TYPES)},
    }


def _device(device: str, name: str, version: str, url: str) -> dict[str, object]:
    return {
        "identifiers": [device],
        "name": name,
        "manufacturer": "camserver",
        "model": "camserver",
        "sw_version": version,
        "configuration_url": url,
    }


def _origin(version: str) -> dict[str, object]:
    return {"name": "camserver", "sw_version": version}


def _name(entity: str, language: str) -> str:
    phrase = _NAMES[entity]
    return phrase.ja if language == "ja" else phrase.en
