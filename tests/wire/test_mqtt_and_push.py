import pytest
from pydantic import ValidationError

from camserver.domain.deliveries import ReceiverKind
from camserver.wire.api.receivers import CONFIGS, SECRETS

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def mqtt(**changes: object) -> dict[str, object]:
    made = CONFIGS[ReceiverKind.MQTT].model_validate({"host": "mqtt.example.net", **changes})
    return made.model_dump(mode="json")


def test_a_host_is_all_that_a_broker_needs() -> None:
    assert mqtt() == {
        "host": "mqtt.example.net",
        "port": None,
        "tls": False,
        "ca": "",
        "username": "",
        "prefix": "camserver",
        "discovery_prefix": "homeassistant",
        "installation": "",
        "client_id": "",
        "summaries": False,
        "signed_link": False,
    }


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("host", "192.0.2.7", "192.0.2.7"),
        ("host", "fe80::1%eth0", "fe80::1%eth0"),
        ("port", 8884, 8884),
        ("prefix", "/home/cameras/", "home/cameras"),
        ("discovery_prefix", "", ""),
        ("ca", CERTIFICATE, CERTIFICATE),
        ("installation", "main-house", "main-house"),
    ],
)
def test_what_a_broker_can_be_told(name: str, value: object, kept: object) -> None:
    assert mqtt(**{name: value})[name] == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", ""),
        ("host", "mqtt://broker"),
        ("host", "two words"),
        ("port", 0),
        ("port", 65_536),
        ("prefix", ""),
        ("prefix", "a/#"),
        ("discovery_prefix", "+"),
        ("ca", "-----BEGIN PRIVATE KEY-----"),
        ("installation", "two/levels"),
        ("client_id", "日本"),
        ("password", "not here"),
    ],
)
def test_what_it_can_not(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        mqtt(**{name: value})


def test_a_password_is_not_shown() -> None:
    secrets = SECRETS[ReceiverKind.MQTT].model_validate({"password": "right horse"})
    assert "right" not in repr(secrets)
    assert SECRETS[ReceiverKind.MQTT].model_validate({}).model_dump() == {"password": None}


@pytest.mark.parametrize("contact", ["mailto:ops@cameras.example", "https://cameras.example/contact"])
def test_browsers_of_some_people(contact: str) -> None:
    made = CONFIGS[ReceiverKind.PUSH].model_validate({"users": ["ann"], "contact": contact})
    assert made.model_dump()["users"] == ["ann"]


@pytest.mark.parametrize("contact", ["ops@cameras.example", "http://cameras.example", "mailto:", "https://", ""])
def test_a_contact_that_push_services_refuse(contact: str) -> None:
    with pytest.raises(ValidationError):
        CONFIGS[ReceiverKind.PUSH].model_validate({"contact": contact})
