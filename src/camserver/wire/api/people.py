"""Setting up and signing in."""

from typing import Annotated

from pydantic import Field

from camserver.wire.api.shapes import Answer, Asked, Language

Login = Annotated[str, Field(min_length=1, max_length=128)]
# Short ones are refused by the rule for passwords, which says why; this only bounds.
Password = Annotated[str, Field(max_length=1024, repr=False)]


class SetUp(Asked):
    token: Annotated[str, Field(min_length=1, max_length=128, repr=False)]
    login: Login
    password: Password
    display_name: Annotated[str, Field(max_length=128)] = ""
    language: Language | None = None


class SetUpDone(Answer):
    login: str


class SetUpLink(Answer):
    url: str
    expires_at: int


class SignIn(Asked):
    login: Login
    password: Password


class Session(Answer):
    """Who is signed in. `csrf_token` goes into the header X-CSRF-Token of every request that changes something."""

    login: str
    display_name: str
    role: str
    language: str
    permissions: list[str]
    csrf_token: str
    expires_at: int | None
