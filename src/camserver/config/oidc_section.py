"""What can be set about signing in with an OpenID Connect provider."""

# ruff: noqa: RUF009
# The calls in defaults below make dataclass fields, not values that instances would share.

from dataclasses import dataclass
from typing import Literal

from camserver.base.addresses import is_protected
from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.config.fields import setting
from camserver.domain.oidc import EntryRules, parse_roles
from camserver.domain.people import Role

ISSUER_MAX_CHARS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    issuer: str | None = setting(
        None,
        "The provider's issuer, exactly as it calls itself, such as https://id.example/realms/main. Not set: people "
        "sign in with passwords only.",
        form="http_url",
    )
    client_id: str = setting("camserver", "Name of this server at the provider.", min_chars=1)
    client_secret: Secret | None = setting(None, "Its secret there. Not set: a public client, held by PKCE alone.")
    scopes: tuple[str, ...] = setting(("openid", "profile", "email"), "What is asked for; openid is always.")
    login_claim: str = setting(
        "preferred_username",
        "The claim that holds the login name; it serves linking and making people. email counts only with "
        "email_verified.",
        min_chars=1,
    )
    label_ja: str = setting(
        "組織のアカウントでサインイン", "The button on the sign-in page, in Japanese.", min_chars=1
    )
    label_en: str = setting("Sign in with your organization", "The same in English.", min_chars=1)
    link_by_login: bool = setting(
        False,
        "Whether somebody's first sign-in takes the account here that has their login name. Only where people can't "
        "choose that name at the provider themselves.",
    )
    create: bool = setting(False, "Whether people nobody has added here are added when they first sign in.")
    create_role: Literal["viewer", "site_manager", "tenant_admin"] = setting(
        "viewer", "The role they get, for all sites, where roles says nothing."
    )
    groups_claim: str | None = setting(
        None, "The claim that lists a person's groups, such as groups or realm_access.roles."
    )
    roles: tuple[str, ...] = setting(
        (),
        'Which group gives which role, such as "camera-admins=tenant_admin"; "*=viewer" is for everybody. The '
        "highest counts, and it is set at every sign-in; whoever has none is refused. Empty: roles are set here.",
    )
    passwords: bool = setting(
        True,
        "Whether people can sign in with passwords, too. Without a provider they always can; the set-up link, tokens "
        "and the local admin token always work.",
    )
    sign_out_there: bool = setting(
        True,
        "Whether who came in by the provider is led to sign out there, too, when they sign out here; only where it "
        "says how (end_session_endpoint). It must know server.public_url and /sign-in as a place to lead back to.",
    )
    allow_loopback: bool = setting(
        False, "Whether the provider may be on this machine, and may then be spoken to without TLS."
    )

    def __post_init__(self) -> None:
        if self.issuer is None:
            return
        if len(self.issuer) > ISSUER_MAX_CHARS:
            raise BadInput(f"issuer is longer than {ISSUER_MAX_CHARS} characters")
        if "?" in self.issuer or "#" in self.issuer or not is_protected(self.issuer, self.allow_loopback):
            raise BadInput(
                "issuer must begin with https:// and have no query; http:// is for this machine, with allow_loopback"
            )
        if (
            parse_roles(self.roles)
            and self.groups_claim is None
            and not all(one.startswith("*=") for one in self.roles)
        ):
            raise BadInput("roles needs groups_claim, the claim that lists a person's groups")

    @property
    def takes_passwords(self) -> bool:
        """Where there is no other way, passwords are one."""
        return self.passwords or self.issuer is None

    @property
    def entry_rules(self) -> EntryRules:
        return EntryRules(self.link_by_login, self.create, Role(self.create_role), parse_roles(self.roles))
