"""Setting up and signing in; people, tokens and sites."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api.names import NAME, ONE_LINE
from camserver.wire.api.shapes import CAMERA_ID_PATTERN, Answer, Asked, Language

Login = Annotated[str, Field(min_length=1, max_length=128)]
# Short ones are refused by the rule for passwords, which says why; this only bounds.
Password = Annotated[str, Field(max_length=1024, repr=False)]


class SetUp(Asked):
    token: Annotated[str, Field(min_length=1, max_length=128, repr=False)]
    login: Login
    password: Password
    display_name: Annotated[str, Field(max_length=128), ONE_LINE] = ""
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
    features: list[Literal["scoring"]]  # of the installation, that not every one has
    may_share: bool  # by the role and `media.shares`; what is in a case nobody shares
    csrf_token: str
    expires_at: int | None


class SignedOut(Answer):
    """The browser goes to `provider_url`, if there is one, to sign out at the provider as well."""

    provider_url: str | None


class OidcOffer(Answer):
    """Signing in with an OpenID Connect provider: `start_url` is opened by the browser, with `?next=` and a page."""

    enabled: bool
    start_url: str
    label_ja: str
    label_en: str
    passwords: bool


class PasswordChange(Asked):
    password: Password
    new_password: Password


class SignInSeen(Answer):
    id: int
    created_at: int
    last_seen_at: int
    address: str
    user_agent: str
    is_this: bool


class SignInList(Answer):
    sign_ins: list[SignInSeen]


LinkToken = Annotated[str, Field(min_length=1, max_length=128, repr=False)]


class PasswordLinkLook(Asked):
    token: LinkToken


class PasswordLinkOwner(Answer):
    login: str
    display_name: str


class PasswordLinkUse(Asked):
    token: LinkToken
    password: Password


# ---------------------------------------------------------------------------------------------------------------
# People

RoleName = Literal["system_admin", "tenant_admin", "site_manager", "viewer"]
DisplayName = Annotated[str, Field(max_length=128), ONE_LINE]
SiteName = Annotated[str, Field(min_length=1, max_length=128)]
CameraId = Annotated[str, Field(pattern=CAMERA_ID_PATTERN)]
GRANTS_MAX = 1_000


class Grants(Asked):
    """What somebody reaches who does not reach everything: whole sites (by name or id), and single cameras."""

    sites: Annotated[tuple[SiteName, ...], Field(max_length=GRANTS_MAX)] = ()
    camera_ids: Annotated[tuple[CameraId, ...], Field(max_length=GRANTS_MAX)] = ()


# Who somebody is at the OpenID Connect provider, by its claim "sub".
OidcSubject = Annotated[str, Field(max_length=255)]


class UserAsked(Asked):
    """With neither a password nor `oidc_subject` the answer holds a link with which the person chooses a password."""

    login: Login
    display_name: DisplayName = ""
    role: RoleName = "viewer"
    language: Language | None = None
    password: Annotated[str | None, Field(max_length=1024, repr=False)] = None
    grants: Grants | None = None
    oidc_subject: OidcSubject | None = None


class UserChange(Asked):
    """What is left out stays. `all_sites` true: reaches every site again. `oidc_subject` empty: unlinked."""

    display_name: DisplayName | None = None
    role: RoleName | None = None
    language: Language | None = None
    disabled: bool | None = None
    all_sites: bool | None = None
    grants: Grants | None = None
    oidc_subject: OidcSubject | None = None


class GrantsShown(Answer):
    sites: list[str]
    camera_ids: list[str]


class User(Answer):
    """`grants` is null for somebody who reaches every site of the tenant."""

    user_uuid: str
    login: str
    display_name: str
    role: str
    language: str
    disabled: bool
    grants: GrantsShown | None
    has_password: bool
    oidc_subject: str | None
    created_at: int
    last_seen_at: int | None


class PasswordLink(Answer):
    url: str
    expires_at: int


class UserAdded(Answer):
    user: User
    password_link: PasswordLink | None


class UserPage(Answer):
    users: list[User]
    next_after: str | None


# ---------------------------------------------------------------------------------------------------------------
# Tokens

Scope = Literal[
    "read",
    "review",
    "investigate",
    "manage_cameras",
    "manage_workers",
    "manage_people",
    "manage_deliveries",
    "read_audit",
    "manage_system",
]


class TokenAsked(Asked):
    """`user`: login or id of whom it stands for; oneself when left out."""

    name: Annotated[str, Field(min_length=1, max_length=128), NAME]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=16)] = ("read",)
    days: Annotated[int, Field(ge=1, le=1_098)] = 90
    user: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class Token(Answer):
    token_uuid: str
    name: str
    login: str
    scopes: list[str]
    created_at: int
    expires_at: int
    last_used_at: int | None
    last_address: str


class TokenAdded(Answer):
    """`secret` is shown here and never again."""

    token: Token
    secret: str


class TokenPage(Answer):
    tokens: list[Token]
    next_after: str | None


# ---------------------------------------------------------------------------------------------------------------
# Sites


class SiteAsked(Asked):
    """`timezone` is an IANA name such as Asia/Tokyo."""

    name: SiteName
    timezone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"


class SiteChange(Asked):
    name: SiteName | None = None
    timezone: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class Site(Answer):
    site_uuid: str
    name: str
    timezone: str
    cameras: int
    workers: int
    created_at: int


class SiteList(Answer):
    sites: list[Site]
