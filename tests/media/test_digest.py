import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.secrets import Secret
from camserver.media.digest import Challenge, Login, strongest

# The example of RFC 7616, section 3.9.1.
LOGIN = Login("Mufasa", Secret("Circle of Life"))
FIELDS = (
    'realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, '
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"


def fields_of(header: str) -> dict[str, str]:
    return {one[1]: one[2] or one[3] for one in re.finditer(r'(\w+)=(?:"([^"]*)"|([^,\s]+))', header)}


def challenge(*headers: str) -> Challenge:
    found = strongest(headers)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_example_of_the_rfc(algorithm: str, response: str) -> None:
    made = challenge("Digest " + FIELDS.format(algorithm))._digest(LOGIN, "GET", "/dir/index.html", CNONCE)
    assert fields_of(made)["response"] == response
    assert fields_of(made)["opaque"] == "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"


def test_the_example_of_the_old_rfc_without_qop() -> None:
    """RFC 2617, 3.5 without qop is what most cameras ask for; computed by other tools."""
    made = challenge('Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"').authorization(
        Login("Mufasa", Secret("Circle Of Life")), "GET", "/dir/index.html"
    )
    assert fields_of(made)["response"] == "670fd8c2df070c60b045671b8b24ff02"
    assert "qop" not in fields_of(made)


def test_the_strongest_is_answered() -> None:
    basic, md5, sha = 'Basic realm="x"', "Digest " + FIELDS.format("MD5"), "Digest " + FIELDS.format("SHA-256")
    assert challenge(basic, sha, md5).fields["algorithm"] == "SHA-256"
    assert challenge(f"{basic}, {md5}").fields["algorithm"] == "MD5"
    assert challenge(basic).scheme == "basic"
    assert challenge("Digest " + FIELDS.format("SHA-512-256"), md5).fields["algorithm"] == "MD5"


@pytest.mark.parametrize("header", ["", "Negotiate abc", "Digest realm=x", 'Digest nonce="a", algorithm=ROT13'])
def test_what_can_not_be_answered(header: str) -> None:
    assert strongest([header]) is None


def test_a_nonce_is_counted_and_may_be_over() -> None:
    one = challenge("Digest " + FIELDS.format("MD5"))
    counts = [fields_of(one.authorization(LOGIN, "GET", "/"))["nc"] for _ in range(3)]
    assert counts == ["00000001", "00000002", "00000003"]
    assert not one.is_stale
    assert challenge("Digest stale=TRUE, " + FIELDS.format("MD5")).is_stale


def test_basic_takes_any_password() -> None:
    made = challenge('Basic realm="x"').authorization(Login("ö", Secret("a:b@c")), "GET", "/")
    assert base64.b64decode(made.removeprefix("Basic ")).decode() == "ö:a:b@c"


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=200))
def test_whatever_is_said_a_header_has_one_line(user: str, password: str, said: str) -> None:
    for header in (said, "Digest " + said, 'Digest nonce="' + said):
        found = strongest([header])
        if found is not None:
            made = found.authorization(Login(user, Secret(password)), "GET", "/x")
            assert "\n" not in made
            assert "\r" not in made
