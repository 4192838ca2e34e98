"""What an OpenID Connect provider may be set to."""

import pytest

from camserver.base.errors import BadSettings
from camserver.config import load

ISSUER = "https://id.example/realms/main"


@pytest.mark.parametrize(
    "given",
    [
        {"issuer": "http://id.example"},
        {"issuer": "http://id.example", "allow_loopback": "true"},
        {"issuer": "http://127.0.0.1:8080"},
        {"issuer": "https://id.example/?realm=x"},
        {"issuer": "https://id.example/#x"},
        {"issuer": f"https://id.example/{'x' * 255}"},
        {"issuer": ISSUER, "roles": "guards=viewer"},
        {"issuer": ISSUER, "groups_claim": "groups", "roles": "guards"},
        {"issuer": ISSUER, "create_role": "system_admin"},
    ],
)
def test_what_can_not_work_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadSettings, match="oidc"):
        load(None, {f"CAMSERVER_OIDC_{key.upper()}": value for key, value in given.items()})


@pytest.mark.parametrize(
    ("given", "takes_passwords"),
    [
        ({}, True),
        ({"passwords": "false"}, True),
        ({"issuer": ISSUER}, True),
        ({"issuer": ISSUER, "passwords": "false", "roles": "*=viewer"}, False),
        ({"issuer": "http://localhost:8080", "allow_loopback": "true", "passwords": "false"}, False),
    ],
)
def test_passwords_are_off_only_where_there_is_another_way(given: dict[str, str], takes_passwords: bool) -> None:
    settings = load(None, {f"CAMSERVER_OIDC_{key.upper()}": value for key, value in given.items()})
    assert settings.oidc.takes_passwords is takes_passwords
