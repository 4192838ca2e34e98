"""What a Slack and an e-mail receiver can be told."""

from typing import Any

import pytest
from pydantic import ValidationError

from camserver.wire.api.receivers import EmailConfig, SlackConfig, SlackSecrets

MAIL = {"host": "mail.example", "sender": "cam@example.com", "to": ["a@example.com"]}
HOOK = "https://hooks.slack.com/services/T0/B0/x"


def test_what_is_usual_is_the_default() -> None:
    mail = EmailConfig.model_validate(MAIL)
    assert (mail.security, mail.port, mail.picture, mail.summaries, mail.signed_link) == (
        "starttls",
        None,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"to": []},
        {"to": ["a@example.com, b@example.com"]},
        {"to": ["a@example.com\r\nBcc: b@example.com"]},
        {"to": ["Ann <a@example.com>"]},
        {"to": ["a"]},
        {"to": ["a@"]},
        {"to": ["a@-example.com"]},
        {"to": [f"{number}@example.com" for number in range(51)]},
        {"sender": "a@b\n"},
        {"security": "none"},
        {"host": "smtp://mail.example"},
        {"port": 0},
        {"password": "in the wrong place"},
    ],
)
def test_mail_that_makes_no_sense(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmailConfig.model_validate({**MAIL, **changes})


@pytest.mark.parametrize(
    "secrets",
    [
        {},
        {"webhook_url": HOOK, "bot_token": "xoxb-123456"},
        {"webhook_url": "ftp://x"},
        {"bot_token": "a b c d e f g"},
    ],
)
def test_slack_needs_one_of_its_secrets(secrets: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        SlackSecrets.model_validate(secrets)
    assert "hooks.slack.com" not in str([one["msg"] for one in caught.value.errors()])


def test_slack() -> None:
    assert SlackSecrets.model_validate({"webhook_url": HOOK}).bot_token is None
    for channel in ("#alerts", "C0123456", "@ann", "監視"):
        assert SlackConfig.model_validate({"channel": channel}).channel == channel
    for channel in ("", "a b", "##x", "x" * 90):
        with pytest.raises(ValidationError):
            SlackConfig.model_validate({"channel": channel})
