"""Tokens: made, copied by people, read again; their secret shows nowhere."""

import pytest

from camserver.base.errors import BadInput
from camserver.wire.enrolment import Enroll, Token, secret_hash

SHA = "ab" * 32


def test_a_token_survives_being_copied() -> None:
    token = Token.make(SHA)
    again = Token.parse(f"  {token.text()}\n")
    assert again == token
    assert token.secret.reveal() not in repr(token)
    assert secret_hash(token.secret.reveal()) != secret_hash(Token.make(SHA).secret.reveal())


@pytest.mark.parametrize(
    "text", ["", "cwt1", "cwt1.short." + SHA, "cwt1." + "a" * 43, "cwt2." + "a" * 43 + "." + SHA]
)
def test_half_a_token_is_none(text: str) -> None:
    with pytest.raises(BadInput, match="copy it whole"):
        Token.parse(text)


def test_a_request_does_not_show_its_secret() -> None:
    token = Token.make(SHA)
    asked = Enroll(secret=token.secret.reveal(), worker_id="w", csr="pem")
    assert token.secret.reveal() not in repr(asked)
    assert token.secret.reveal() in asked.model_dump_json()
