import pytest

from camserver.base.secrets import Secret
from camserver.services.simulator.digest import REALM, Digest, Login, respond

LOGIN = Login("viewer", Secret("wordofpass"))
URL = "rtsp://127.0.0.1/cam"


def header(digest: Digest, login: Login = LOGIN, method: str = "DESCRIBE", **changed: str) -> str:
    nonce = digest.challenge().split('nonce="')[1].split('"')[0]
    fields = {"username": login.user, "realm": REALM, "nonce": nonce, "uri": URL} | changed
    fields.setdefault("response", respond(login, method, fields))
    return "Digest " + ", ".join(f'{name}="{value}"' for name, value in fields.items())


def test_the_example_of_rfc_2617() -> None:
    given = {
        "realm": "testrealm@host.com",
        "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093",
        "uri": "/dir/index.html",
        "qop": "auth",
        "nc": "00000001",
        "cnonce": "0a4f113b",
    }
    assert respond(Login("Mufasa", Secret("Circle Of Life")), "GET", given) == "6629fae49393a05397450978507c4ef1"


def test_who_knows_the_password_is_let_in() -> None:
    digest = Digest(LOGIN)
    assert digest.accepts(header(digest), "DESCRIBE", URL)
    assert digest.accepts(header(digest, qop="auth", nc="00000001", cnonce="abc"), "DESCRIBE", URL)
    # Some clients name the camera also for its tracks.
    assert digest.accepts(header(digest, method="SETUP"), "SETUP", URL + "/trackID=0")


@pytest.mark.parametrize("authorization", [None, "", "Digest", "Basic dmlld2VyOndvcmRvZnBhc3M=", "Digest x=1"])
def test_others_are_not(authorization: str | None) -> None:
    assert not Digest(LOGIN).accepts(authorization, "DESCRIBE", URL)


def test_wrong_password_user_method_place_or_connection() -> None:
    digest = Digest(LOGIN)
    good = header(digest)
    assert not digest.accepts(header(digest, Login("viewer", Secret("other word"))), "DESCRIBE", URL)
    assert not digest.accepts(header(digest, Login("admin", Secret("wordofpass"))), "DESCRIBE", URL)
    assert not digest.accepts(good, "SETUP", URL)
    assert not digest.accepts(good, "DESCRIBE", "rtsp://127.0.0.1/other")
    assert not Digest(LOGIN).accepts(good, "DESCRIBE", URL)
    assert not digest.accepts(header(digest, response=""), "DESCRIBE", URL)
